/* gm_gpu_bench [--backend B] [--device I] [--mib N]
 *
 * Prints one JSON object: what the device is, and measures of it through gm. They are copies of N MiB (64) to, from and
 * on the device, and fills. Small copies stand beside a large one, and both directions run at once. A driver allocation
 * stands beside a pooled one. Each figure is the best of several rounds.
 * Exit code 77 and a reason when there is no such device. Figures of a simulated device say nothing of any card. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gm/copy.h"
#include "gm/pool.h"
#include "gm/stream.h"
#include "gpu_facts.h"

enum { BENCH_ROUNDS = 7, BENCH_MANY = 200, BENCH_SMALL = 100, BENCH_SMALL_BYTES = 4096 };

typedef struct bench {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_stream *stream, *beside;
  gm_block block, other, host, back;
  bool has_host; /* host-visible memory of the device's API, to copy from and to */
  unsigned char *pageable;
  uint64_t bytes;
  const char *comma; /* before the next measure */
  gm_error err;
} bench;

typedef gm_status bench_work(bench *b);

static double bench_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool bench_take(bench *b, uint64_t bytes, uint32_t flags, gm_block *out) {
  const gm_request request = {.bytes = bytes,
                              .flags = flags | GM_INSERT_WAIT,
                              .stream = b->stream,
                              .must_be = flags & GM_HOST_VISIBLE ? GM_ANYWHERE : GM_DEVICE_LOCAL};
  return gm_alloc(b->pool, &request, out) <= GM_ACQUIRE_FRESH;
}

static gm_status work_write(bench *b) {
  return gm_block_write(b->pool, &b->block, 0, b->pageable, b->bytes, b->stream, NULL, &b->err);
}

static gm_status work_read(bench *b) {
  return gm_block_read(b->pool, &b->block, 0, b->pageable, b->bytes, b->stream, NULL, &b->err);
}

static gm_status bench_copy(bench *b, const gm_block *to, const gm_block *from) {
  return gm_block_copy(b->pool, to, 0, b->pool, from, 0, b->bytes, b->stream, NULL, &b->err);
}

static gm_status work_copy(bench *b) { return bench_copy(b, &b->other, &b->block); }

static gm_status work_to_device(bench *b) { return bench_copy(b, &b->block, &b->host); }

static gm_status work_to_host(bench *b) { return bench_copy(b, &b->host, &b->block); }

static gm_status work_fill(bench *b) {
  const uint32_t pattern = 0x5a5a1234;
  return gm_block_fill(b->pool, &b->block, 0, b->bytes, &pattern, 4, b->stream, NULL, &b->err);
}

static gm_status work_pooled(bench *b) {
  gm_status status = GM_OK;
  for (int i = 0; i < BENCH_MANY && status == GM_OK; i++) {
    gm_block block;
    if (!bench_take(b, 1 << 20, 0, &block)) return GM_ERR_OUT_OF_DEVICE_MEMORY;
    status = gm_free(b->pool, &block, b->stream);
  }
  return status;
}

/* Freed memory is trimmed, so that the next one is the driver's again. */
static gm_status work_driver(bench *b) {
  gm_block block;
  if (!bench_take(b, UINT64_C(48) << 20, 0, &block)) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  const gm_status status = gm_free(b->pool, &block, NULL);
  gm_pool_trim(b->pool, 0);
  return status;
}

static gm_status work_point(bench *b) {
  gm_status status = GM_OK;
  for (int i = 0; i < BENCH_MANY && status == GM_OK; i++) {
    gm_point point = {0};
    status = gm_stream_record(b->stream, &point, &b->err);
    if (status == GM_OK) status = gm_point_wait(b->device, &point, UINT64_MAX, &b->err);
    gm_point_release(b->device, &point);
  }
  return status;
}

/* One copy that a point ends, on a stream. */
static gm_status bench_submit(bench *b, const gm_block *to, const gm_block *from, uint64_t offset, uint64_t bytes,
                              gm_stream *stream, gm_point *out) {
  return gm_block_copy(b->pool, to, offset, b->pool, from, offset, bytes, stream, out, &b->err);
}

static gm_status bench_finish(bench *b, gm_status status, gm_point *point) {
  if (status == GM_OK) status = gm_point_wait(b->device, point, UINT64_MAX, &b->err);
  gm_point_release(b->device, point);
  *point = (gm_point){0};
  return status;
}

/* Parts of 4 KiB, submitted one after the other and waited for at the end. */
static gm_status work_small(bench *b) {
  gm_status status = GM_OK;
  gm_point point = {0};
  for (uint64_t i = 0; i < BENCH_SMALL && status == GM_OK; i++) {
    gm_point_release(b->device, &point);
    point = (gm_point){0};
    status = bench_submit(b, &b->block, &b->host, i * BENCH_SMALL_BYTES, BENCH_SMALL_BYTES, b->stream, &point);
  }
  return bench_finish(b, status, &point);
}

/* Together so many bytes as one copy. */
static gm_status work_gathered(bench *b) {
  gm_point point = {0};
  const gm_status status = bench_submit(b, &b->block, &b->host, 0, BENCH_SMALL * BENCH_SMALL_BYTES, b->stream, &point);
  return bench_finish(b, status, &point);
}

/* Both directions at once, on two streams. */
static gm_status work_both(bench *b) {
  gm_point there = {0}, back = {0};
  gm_status status = bench_submit(b, &b->block, &b->host, 0, b->bytes, b->stream, &there);
  gm_status other = bench_submit(b, &b->back, &b->other, 0, b->bytes, b->beside, &back);
  status = bench_finish(b, status, &there);
  other = bench_finish(b, other, &back);
  return status == GM_OK ? other : status;
}

static gm_status work_back(bench *b) { return bench_copy(b, &b->back, &b->other); }

static bool bench_best(bench *b, bench_work *work, double *out) {
  double best = 0;
  for (int i = 0; i < BENCH_ROUNDS; i++) {
    const double start = bench_now();
    if (work(b) != GM_OK) return false;
    const double took = bench_now() - start;
    if (i == 0 || took < best) best = took;
  }
  *out = best;
  return true;
}

/* `bytes` 0: the figure is a time, of one of `count`. */
static void bench_measure(bench *b, const char *name, bench_work *work, uint64_t bytes, int count) {
  double seconds = 0;
  printf("%s\n    {\"name\": \"%s\", ", b->comma, name);
  b->comma = ",";
  if (!bench_best(b, work, &seconds) || seconds <= 0) {
    printf("\"value\": null, \"why\": ");
    gpu_facts_text(stdout, b->err.message);
    printf("}");
  } else if (bytes) {
    printf("\"value\": %.3f, \"unit\": \"GiB/s\"}", (double)bytes / seconds / 1073741824.0);
  } else {
    printf("\"value\": %.3f, \"unit\": \"us\"}", seconds * 1e6 / count);
  }
}

/* The share of what can overlap that does: (busy - wall) / (busy - longest), of the two directions. */
static void bench_overlap(bench *b) {
  double there = 0, back = 0, wall = 0;
  printf("%s\n    {\"name\": \"overlap_of_directions\", ", b->comma);
  const bool good = bench_best(b, work_to_device, &there) && bench_best(b, work_back, &back) &&
                    bench_best(b, work_both, &wall) && there > 0 && back > 0;
  if (good) {
    printf("\"value\": %.3f, \"unit\": \"of 1\"}", (there + back - wall) / (there < back ? there : back));
  } else {
    printf("\"value\": null, \"why\": ");
    gpu_facts_text(stdout, b->err.message);
    printf("}");
  }
}

/* Copies from and to memory that the host sees, too. */
static void bench_run_host(bench *b) {
  bench_measure(b, "write_host_visible", work_to_device, b->bytes, 1);
  bench_measure(b, "read_host_visible", work_to_host, b->bytes, 1);
  if (b->bytes >= BENCH_SMALL * BENCH_SMALL_BYTES) {
    bench_measure(b, "write_small_100_of_4kib", work_small, 0, 1);
    bench_measure(b, "write_gathered_400kib", work_gathered, 0, 1);
  }
  bench_overlap(b);
}

static void bench_run(bench *b) {
  printf("{\"device\": {");
  gpu_facts_device(stdout, b->device);
  printf("},\n  \"copy_bytes\": %" PRIu64 ", \"rounds\": %d, \"measures\": [", b->bytes, (int)BENCH_ROUNDS);
  bench_measure(b, "write_pageable", work_write, b->bytes, 1);
  bench_measure(b, "read_pageable", work_read, b->bytes, 1);
  if (b->has_host) bench_run_host(b);
  bench_measure(b, "copy_on_device", work_copy, b->bytes, 1);
  bench_measure(b, "fill", work_fill, b->bytes, 1);
  bench_measure(b, "alloc_free_pooled_1mib", work_pooled, 0, BENCH_MANY);
  bench_measure(b, "alloc_free_driver_48mib", work_driver, 0, 1);
  bench_measure(b, "record_and_wait", work_point, 0, BENCH_MANY);
  printf("]}\n");
}

static bool bench_open(bench *b, const char *backend, uint32_t index) {
  gm_status status = gm_context_create(NULL, &b->ctx, &b->err);
  if (status == GM_OK) status = gm_device_open_index(b->ctx, backend, index, &b->device, &b->err);
  if (status == GM_OK) status = gm_pool_create(b->device, NULL, &b->pool, &b->err);
  if (status == GM_OK) status = gm_stream_create(b->device, &b->stream, &b->err);
  if (status == GM_OK) status = gm_stream_create(b->device, &b->beside, &b->err);
  if (status != GM_OK) return false;
  b->has_host =
      bench_take(b, b->bytes, GM_HOST_VISIBLE, &b->host) && bench_take(b, b->bytes, GM_HOST_VISIBLE, &b->back);
  b->pageable = calloc(1, b->bytes);
  return b->pageable && bench_take(b, b->bytes, 0, &b->block) && bench_take(b, b->bytes, 0, &b->other);
}

static void bench_close(bench *b) {
  if (b->host.bytes) gm_free(b->pool, &b->host, b->stream);
  if (b->back.bytes) gm_free(b->pool, &b->back, b->stream);
  if (b->block.bytes) gm_free(b->pool, &b->block, b->stream);
  if (b->other.bytes) gm_free(b->pool, &b->other, b->stream);
  if (b->stream) gm_stream_close(b->stream, NULL);
  if (b->beside) gm_stream_close(b->beside, NULL);
  if (b->pool) gm_pool_destroy(b->pool, NULL);
  if (b->device) gm_device_close(b->device, NULL);
  if (b->ctx) gm_context_destroy(b->ctx, NULL);
  free(b->pageable);
}

int main(int argc, char **argv) {
  const char *backend = "cuda";
  unsigned long index = 0, mib = 64;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--backend") == 0) backend = argv[i + 1];
    if (strcmp(argv[i], "--device") == 0) index = strtoul(argv[i + 1], NULL, 10);
    if (strcmp(argv[i], "--mib") == 0) mib = strtoul(argv[i + 1], NULL, 10);
  }
  if (argc % 2 == 0 || mib == 0 || mib > 65536) {
    fprintf(stderr, "usage: gm_gpu_bench [--backend B] [--device I] [--mib N]\n");
    return 2;
  }
  bench b = {.bytes = (uint64_t)mib << 20, .comma = ""};
  const bool open = bench_open(&b, backend, (uint32_t)index);
  if (open) bench_run(&b);
  if (!open) fprintf(stderr, "gm_gpu_bench: %s: %s\n", backend, b.err.message[0] ? b.err.message : "too little memory");
  bench_close(&b);
  return open ? 0 : 77;
}
