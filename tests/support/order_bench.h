/* A pool on a backend of the tests' own: the null backend's virtual time, streams of any kind, and counted, breakable
 * points. `shape` counts and breaks them.
 *
 *   order_bench bench;
 *   order_open(&bench, GM_STREAM_FIFO, 0);
 *   ... bench.base.pool, bench.a, bench.b ...
 *   order_close(&bench);   // every point was given back
 *
 * Needs cmocka.h. */
#ifndef GM_TESTS_SUPPORT_ORDER_BENCH_H
#define GM_TESTS_SUPPORT_ORDER_BENCH_H

#include <string.h>

#include "backends/null/null_backend.h"
#include "core/device/stream.h"
#include "support/pool_bench.h"

#define SECOND UINT64_C(1000000000)

static struct {
  gm_stream_kind kind; /* of streams created from now on */
  uint64_t records, releases, waits, barriers;
  void (*submit)(void); /* called where an engine's hook would be */
  gm_status record_status, done_status, wait_status;
  gm_status memory_status; /* what a request for new memory answers; GM_OK: memory */
} shape;

static inline void shape_submit(void) {
  if (shape.submit) shape.submit();
}

static inline gm_status shape_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err) {
  gm_status status = gm__null_backend.stream_create(device, out_stream, out_kind, err);
  *out_kind = shape.kind;
  return status;
}

static inline gm_status shape_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  if (shape.record_status) return shape.record_status;
  shape.records++;
  shape_submit();
  return gm__null_backend.point_record(device, stream, out, err);
}

static inline gm_status shape_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  if (shape.done_status) return shape.done_status;
  return gm__null_backend.point_done(device, point, out, err);
}

static inline void shape_point_release(void *device, const gm_backend_point *point, gm_close_mode mode) {
  shape.releases++;
  gm__null_backend.point_release(device, point, mode);
}

static inline gm_status shape_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  shape.waits++;
  if (shape.wait_status && point->handle) return shape.wait_status;
  shape_submit();
  return gm__null_backend.point_wait_on(device, stream, point, err);
}

static inline gm_status shape_stream_barrier(void *device, void *stream, gm_error *err) {
  (void)device, (void)stream, (void)err;
  shape.barriers++;
  shape_submit();
  return GM_OK;
}

static inline gm_status shape_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                                   const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  shape.records += out != NULL; /* a point to release */
  shape_submit();
  return gm__null_backend.fill(device, stream, dst, offset, bytes, pattern, pattern_bytes, out, err);
}

static inline gm_status shape_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out,
                                           gm_error *err) {
  if (shape.memory_status) return shape.memory_status;
  return gm__null_backend.memory_alloc(device, params, out, err);
}

typedef struct order_bench {
  pool_bench base;
  gm_stream *a, *b;
} order_bench;

static inline void order_open_as(order_bench *bench, gm_stream_kind kind, uint64_t max_bytes, gm_strategy strategy) {
  memset(&shape, 0, sizeof shape);
  shape.kind = kind;
  gm_backend_ops ops = gm__null_backend;
  ops.name = "shape";
  ops.api = GM_API_OTHER;
  ops.stream_create = shape_stream_create;
  ops.point_record = shape_point_record;
  ops.point_done = shape_point_done;
  ops.point_release = shape_point_release;
  ops.point_wait_on = shape_point_wait_on;
  ops.stream_barrier = shape_stream_barrier;
  ops.fill = shape_fill;
  ops.memory_alloc = shape_memory_alloc;
  pool_bench *base = &bench->base;
  counted_services_init(&base->host);
  gm_context_params context = {.struct_size = sizeof context,
                               .services = &base->host.services,
                               .backend_options = "shape:capacity=64M,latency=1000000000",
                               .ignore_environment = true};
  gm_pool_params params = {
      .struct_size = sizeof params, .strategy = strategy, .no_vmm = true, .max_bytes = max_bytes, .checked = true};
  pool_bench_ok(gm_context_create(&context, &base->ctx, err));
  pool_bench_ok(gm_backend_register(base->ctx, &ops, err));
  pool_bench_ok(gm_config_set(base->ctx, "memory_fraction", "1", err));
  pool_bench_ok(gm_config_set(base->ctx, "min_free_bytes", "0", err));
  pool_bench_ok(gm_device_open_index(base->ctx, "shape", 0, &base->device, err));
  pool_bench_ok(gm_pool_create(base->device, &params, &base->pool, err));
  pool_bench_ok(gm_stream_create(base->device, &bench->a, err));
  pool_bench_ok(gm_stream_create(base->device, &bench->b, err));
}

static inline void order_open(order_bench *bench, gm_stream_kind kind, uint64_t max_bytes) {
  order_open_as(bench, kind, max_bytes, GM_STRATEGY_BUCKET);
}

static inline void order_close(order_bench *bench) {
  pool_bench_ok(gm_stream_close(bench->a, err));
  pool_bench_ok(gm_stream_close(bench->b, err));
  pool_bench_close(&bench->base);
  assert_int_equal(shape.records, shape.releases);
}

/* A second of virtual work on a stream. */
static inline void work(const order_bench *bench, const gm_stream *stream) {
  gm_memory nowhere = {.handle = 1, .bytes = 64};
  gm_backend_point point;
  assert_int_equal(
      gm__null_backend.fill(bench->base.device->handle, stream->handle, &nowhere, 0, 64, "", 1, &point, NULL), GM_OK);
}

static inline void pass_time(const order_bench *bench) { gm__null_advance(bench->base.device->handle, 10 * SECOND); }

static inline gm_block take(order_bench *bench, gm_stream *stream, uint32_t flags, gm_acquire expected) {
  gm_request request = {.bytes = 4096, .stream = stream, .flags = flags};
  gm_block block = {0};
  assert_int_equal(gm_alloc(bench->base.pool, &request, &block), expected);
  return block;
}

static inline void give(order_bench *bench, const gm_block *block, gm_stream *stream) {
  assert_int_equal(gm_free(bench->base.pool, block, stream), GM_OK);
}

/* A block taken and used on `a`, and freed there while the work still runs. */
static inline gm_block busy_block(order_bench *bench) {
  gm_block block = take(bench, bench->a, 0, GM_ACQUIRE_FRESH);
  work(bench, bench->a);
  give(bench, &block, bench->a);
  return block;
}

#endif
