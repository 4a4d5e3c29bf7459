/* Free memory, and the largest allocation: gm's figures beside the driver's answers. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "bench/card/card_peers.h"
#include "bench/gpu/gpu_facts.h"

#define GRANULE (UINT64_C(2) << 20)

static gm_memory_info free_info(card *self) {
  gm_memory_info info = {.struct_size = sizeof info};
  if (gm_device_memory_info(self->device, &info, &self->err) != GM_OK) info.free_bytes = GM_UNKNOWN_BYTES;
  return info;
}

/* The driver's figure. */
static uint64_t free_point(card *self, const char *name, FILE *out) {
  const gm_memory_info info = free_info(self);
  const uint64_t driver = card_driver_free_bytes(&self->driver);
  fprintf(out, "{\"name\": \"%s\", \"driver_free_bytes\": %" PRIu64, name, driver);
  if (info.free_bytes != GM_UNKNOWN_BYTES) fprintf(out, ", \"gm_free_bytes\": %" PRIu64, info.free_bytes);
  fprintf(out, ", \"gm_used_by_us_bytes\": %" PRIu64 "}", info.used_by_us_bytes);
  return driver;
}

/* The largest that cuMemAlloc gives now, to a granule. */
static uint64_t free_largest(const card *self) {
  uint64_t low = 0, high = card_driver_free_bytes(&self->driver) / GRANULE + 2;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    uint64_t pointer = 0;
    const bool given = self->driver.alloc(&pointer, middle * GRANULE) == 0;
    if (given) self->driver.free(pointer);
    *(given ? &low : &high) = middle;
  }
  return low * GRANULE;
}

static void free_write(card *self, FILE *out) {
  fputs("{\"device\": {", out);
  gpu_facts_device(out, self->device);
  fprintf(out, "},\n  \"granule_bytes\": %" PRIu64 ", \"points\": [", GRANULE);
  const uint64_t before = free_point(self, "before", out);
  const uint64_t bytes = before / 4 / GRANULE * GRANULE;
  void *block = gm_malloc(self->pool, bytes, self->stream);
  fputs(", ", out);
  const uint64_t held = free_point(self, "held", out);
  gm_free_ptr(self->pool, block, bytes, self->stream);
  gm_pool_trim(self->pool, 0);
  fputs(", ", out);
  const uint64_t after = free_point(self, "after", out);
  const uint64_t took = before - held, left = before > after ? before - after : after - before;
  fprintf(out, "],\n  \"asked_bytes\": %" PRIu64 ", \"took_bytes\": %" PRIu64 ", \"left_bytes\": %" PRIu64, bytes, took,
          left);
  fprintf(out, ", \"exact_to_a_granule\": %s,\n",
          block && took - bytes <= GRANULE && left <= GRANULE ? "true" : "false");
  const uint64_t predicted = free_info(self).free_bytes, largest = free_largest(self);
  const bool known = predicted != GM_UNKNOWN_BYTES && largest > 0;
  const uint64_t error = predicted > largest ? predicted - largest : largest - predicted;
  fprintf(out, "  \"largest_bytes\": %" PRIu64 ", \"predicted_bytes\": ", largest);
  if (known) {
    fprintf(out, "%" PRIu64 ", \"error_percent\": %.3f}\n", predicted, 100.0 * (double)error / (double)largest);
  } else {
    fputs("null, \"error_percent\": null}\n", out);
  }
}

int gm_card_free(int descriptor) {
  card self;
  const char *why = card_open(&self, NULL);
  const int copy = why ? -1 : dup(descriptor);
  FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
  int result = why ? 77 : out ? 0 : 1;
  if (out) free_write(&self, out);
  if (out && fclose(out) != 0) result = 1;
  if (why) fprintf(stderr, "gm_card_free: %s\n", why);
  card_close(&self);
  return result;
}
