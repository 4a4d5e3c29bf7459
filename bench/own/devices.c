#include <stdatomic.h>

#include "bench/micro/crew.h"
#include "bench/own/own.h"
#include "gm/tools.h"

enum { DEVICES_MOST = 2, DEVICES_BYTES = 1 << 20 };

typedef struct devices_work {
  gm_context *ctx;
  gm_device *devices[DEVICES_MOST];
  gm_pool *pools[DEVICES_MOST];
  unsigned used; /* of the pools: thread number N takes number N modulo this */
  size_t pairs;
  atomic_bool failed;
  gm_error err;
} devices_work;

static int devices_begin(devices_work *self) {
  const gm_context_params params = {
      .struct_size = sizeof params, .backend_options = "null:devices=2", .ignore_environment = true};
  gm_status status = gm_context_create(&params, &self->ctx, &self->err);
  for (uint32_t i = 0; i < DEVICES_MOST && status == GM_OK; i++) {
    status = gm_device_open_index(self->ctx, "null", i, &self->devices[i], &self->err);
    if (status == GM_OK) status = gm_pool_create(self->devices[i], NULL, &self->pools[i], &self->err);
  }
  return status == GM_OK ? 0 : -1;
}

static int devices_end(devices_work *self, int result) {
  if (result != 0) fprintf(stderr, "gm_bench: %s\n", self->err.message[0] ? self->err.message : "no memory");
  for (int i = 0; i < DEVICES_MOST; i++) {
    if (self->pools[i]) gm_pool_destroy(self->pools[i], &self->err);
    if (self->devices[i]) gm_device_close(self->devices[i], &self->err);
  }
  if (self->ctx) gm_context_destroy(self->ctx, &self->err);
  return result;
}

static void devices_pairs(void *user, unsigned thread) {
  devices_work *self = user;
  gm_pool *pool = self->pools[thread % self->used];
  const gm_request request = {.bytes = DEVICES_BYTES};
  gm_block block;
  for (size_t i = 0; i < self->pairs; i++) {
    if (gm_alloc(pool, &request, &block) > GM_ACQUIRE_FRESH || gm_free(pool, &block, NULL) != GM_OK) {
      self->failed = true;
    }
  }
}

static int devices_time(devices_work *self, unsigned threads, unsigned used, unsigned runs, const char *name,
                        FILE *out) {
  uint64_t least = UINT64_MAX;
  self->used = used;
  for (unsigned run = 0; run <= runs; run++) {
    const uint64_t took = crew_run(threads, devices_pairs, self);
    if (took == 0 || self->failed) return -1;
    if (run > 0 && took < least) least = took;
  }
  fprintf(out, "%s %.17g\n", name, (double)least / (2.0 * (double)self->pairs * threads));
  return 0;
}

int own_devices(size_t pairs, unsigned runs, FILE *out) {
  devices_work self = {.pairs = pairs};
  int result = devices_begin(&self);
  if (result == 0) result = devices_time(&self, 1, 1, runs, "one_ns", out);
  if (result == 0) result = devices_time(&self, 2, 1, runs, "shared_ns", out);
  if (result == 0) result = devices_time(&self, 2, 2, runs, "two_ns", out);
  return devices_end(&self, result);
}
