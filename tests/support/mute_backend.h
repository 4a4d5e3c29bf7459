/* The null backend with streams that are mute at times. gm is told nothing of a mute stream: no point can be recorded
 * there and nothing can wait. A queue that gm may not submit to is such a stream, and so is another thread's own
 * stream. Work that was submitted to a mute stream runs until it speaks again. Needs cmocka.h included before.
 *
 *   mute_open(&bench, GM_STREAM_FIFO, GM_STRATEGY_BUCKET); ... mute(stream, true); ... mute_close(&bench); */
#ifndef GM_TESTS_SUPPORT_MUTE_BACKEND_H
#define GM_TESTS_SUPPORT_MUTE_BACKEND_H

#include <string.h>

#include "backends/null/null_backend.h"
#include "core/base/error.h"
#include "core/device/stream.h"
#include "support/pool_bench.h"

enum { MUTE_MOST = 128 };

static struct {
  gm_stream_kind kind; /* of streams created from now on */
  gm_status answer;    /* of a mute stream */
  const void *mute[MUTE_MOST];
  int waits;              /* of the host, for streams and points */
  long records, releases; /* of points */
  uint64_t memories;      /* that are out */
  void (*waiting)(void);  /* called in a wait for a point */
  uint64_t copy_ns;       /* of virtual time, which a copy of a point takes */
} mute_shape;

static inline const void **mute_place(const void *stream) {
  for (int i = 0; i < MUTE_MOST; i++) {
    if (mute_shape.mute[i] == stream) return &mute_shape.mute[i];
  }
  return NULL;
}

static inline void mute(const gm_stream *stream, bool on) {
  const void **place = mute_place(on ? NULL : stream->handle);
  if (place) *place = on ? stream->handle : NULL;
}

static gm_status mute_check(const void *stream, gm_error *err) {
  if (!stream || !mute_place(stream)) return GM_OK;
  return gm__fail(err, mute_shape.answer, "mute", "the stream is mute");
}

static gm_status mute_stream_create(void *device, void **out, gm_stream_kind *kind, gm_error *err) {
  const gm_status status = gm__null_backend.stream_create(device, out, kind, err);
  *kind = mute_shape.kind;
  return status;
}

static gm_status mute_stream_sync(void *device, void *stream, gm_error *err) {
  const gm_status status = mute_check(stream, err);
  mute_shape.waits++;
  return status ? status : gm__null_backend.stream_sync(device, stream, err);
}

static gm_status mute_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  const gm_status status = mute_check(stream, err);
  if (status) return status;
  mute_shape.records++;
  return gm__null_backend.point_record(device, stream, out, err);
}

static gm_status mute_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err) {
  mute_shape.records++;
  gm__null_advance(device, mute_shape.copy_ns);
  return gm__null_backend.point_copy(device, point, out, err);
}

static void mute_point_release(void *device, const gm_backend_point *point, gm_close_mode mode) {
  mute_shape.releases++;
  gm__null_backend.point_release(device, point, mode);
}

static gm_status mute_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  mute_shape.waits++;
  if (mute_shape.waiting) mute_shape.waiting();
  return gm__null_backend.point_wait(device, point, timeout_ns, err);
}

static gm_status mute_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  const gm_status status = mute_check(stream, err);
  return status ? status : gm__null_backend.point_wait_on(device, stream, point, err);
}

static gm_status mute_barrier(void *device, void *stream, gm_error *err) {
  (void)device;
  return mute_check(stream, err);
}

static gm_status mute_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  const gm_status status = gm__null_backend.memory_alloc(device, params, out, err);
  mute_shape.memories += status == GM_OK;
  return status;
}

static gm_status mute_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  mute_shape.memories--;
  return gm__null_backend.memory_free(device, memory, mode, err);
}

static inline gm_backend_ops mute_ops(void) {
  gm_backend_ops ops = gm__null_backend;
  ops.name = "mute";
  ops.api = GM_API_OTHER;
  ops.stream_create = mute_stream_create;
  ops.stream_sync = mute_stream_sync;
  ops.stream_barrier = mute_barrier;
  ops.point_record = mute_point_record;
  ops.point_copy = mute_point_copy;
  ops.point_release = mute_point_release;
  ops.point_wait = mute_point_wait;
  ops.point_wait_on = mute_point_wait_on;
  ops.memory_alloc = mute_alloc;
  ops.memory_free = mute_free;
  return ops;
}

/* A pool of that strategy on a device whose streams are of that kind. Work takes a second of virtual time. */
static inline void mute_open(pool_bench *bench, gm_stream_kind kind, gm_strategy strategy) {
  const gm_backend_ops ops = mute_ops();
  memset(&mute_shape, 0, sizeof mute_shape);
  mute_shape.kind = kind;
  mute_shape.answer = GM_ERR_NOT_SUPPORTED;
  counted_services_init(&bench->host);
  const gm_context_params context = {.struct_size = sizeof context,
                                     .services = &bench->host.services,
                                     .backend_options = "mute:capacity=64M,latency=1000000000",
                                     .ignore_environment = true};
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy};
  pool_bench_ok(gm_context_create(&context, &bench->ctx, err));
  pool_bench_ok(gm_backend_register(bench->ctx, &ops, err));
  pool_bench_ok(gm_config_set(bench->ctx, "memory_fraction", "1", err));
  pool_bench_ok(gm_config_set(bench->ctx, "min_free_bytes", "0", err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "mute", 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, &params, &bench->pool, err));
}

static inline void mute_close(pool_bench *bench) {
  pool_bench_close(bench);
  assert_int_equal(mute_shape.records, mute_shape.releases);
  assert_int_equal(mute_shape.memories, 0);
}

#endif
