/* The calls of gm that open, read, write, wait or ask a driver: each on things that are there already. Tests run them
 * on threads of a certain kind: one that is cancelled, one with a small stack. */
#ifndef GM_TESTS_SUPPORT_SLOW_CALLS_H
#define GM_TESTS_SUPPORT_SLOW_CALLS_H

#include <stdlib.h>
#include <string.h>

#include "gm/advice.h"
#include "gm/buffer.h"
#include "gm/cleanup.h"
#include "gm/config.h"
#include "gm/copy.h"
#include "gm/explain.h"
#include "gm/model.h"
#include "gm/pressure.h"
#include "gm/record.h"
#include "gm/relocation.h"
#include "gm/report.h"
#include "gm/reserve.h"
#include "gm/share.h"
#include "gm/store.h"
#include "gm/tier.h"
#include "gm/warm_up.h"
#include "support/temp_folder.h"
#include "test_data.h"

enum { SLOW_BYTES = 8 << 20 };

static struct {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool, *buckets, *guarded, *small; /* `small` has a cap of one block, which is out */
  gm_stream *stream;
  gm_block block, last;
  gm_tier *tier;
  temp_folder folder;
  const char *backend;
} slow;

static inline void slow_must(gm_status status, const char *what, const gm_error *err) {
  if (!status) return;
  fprintf(stderr, "%s: %s: %s\n", what, gm_status_name(status), err->message);
  exit(3);
}

static inline gm_pool *slow_pool(gm_pool_params params) {
  gm_error err;
  gm_pool *pool = NULL;
  params.struct_size = sizeof params;
  slow_must(gm_pool_create(slow.device, &params, &pool, &err), "gm_pool_create", &err);
  return pool;
}

static inline void slow_alloc_in(gm_pool *pool, gm_stream *stream, gm_block *out) {
  const gm_request request = {.bytes = SLOW_BYTES, .stream = stream};
  const gm_acquire answer = gm_alloc(pool, &request, out);
  if (!gm_acquired(answer)) fprintf(stderr, "gm_alloc: %s\n", gm_acquire_name(answer)), exit(3);
}

static inline void slow_open(const char *backend) {
  gm_error err;
  const gm_context_params params = {.struct_size = sizeof params, .backends = backend};
  slow.backend = backend;
  temp_folder_make(&slow.folder);
  setenv("GM_RESERVE_FOLDER", slow.folder.path, 1); /* no other test's promises */
  slow_must(gm_context_create(&params, &slow.ctx, &err), "gm_context_create", &err);
  slow_must(gm_device_open_index(slow.ctx, backend, 0, &slow.device, &err), "gm_device_open_index", &err);
  slow_must(gm_stream_create(slow.device, &slow.stream, &err), "gm_stream_create", &err);
  slow.pool = slow_pool((gm_pool_params){.name = "pool"});
  slow.buckets = slow_pool((gm_pool_params){.name = "buckets", .strategy = GM_STRATEGY_BUCKET});
  if (strcmp(backend, "null") != 0) /* its memory cannot be read */
    slow.guarded = slow_pool((gm_pool_params){.name = "guarded", .debug = GM_DEBUG_CHECK_FREED});
  slow.small = slow_pool((gm_pool_params){.name = "small", .max_bytes = SLOW_BYTES});
  slow_alloc_in(slow.pool, NULL, &slow.block);
  slow_alloc_in(slow.small, NULL, &slow.last);
  slow_must(gm_tier_open(slow.ctx, "disk", temp_folder_join(&slow.folder, "tier"), NULL, &slow.tier, &err),
            "gm_tier_open", &err);
}

static inline void slow_close(void) {
  gm_error err;
  gm_free(slow.pool, &slow.block, NULL);
  gm_free(slow.small, &slow.last, NULL);
  slow_must(gm_tier_close(slow.tier, &err), "gm_tier_close", &err);
  slow_must(gm_pool_destroy(slow.small, &err), "gm_pool_destroy", &err);
  if (slow.guarded) slow_must(gm_pool_destroy(slow.guarded, &err), "gm_pool_destroy", &err);
  slow_must(gm_pool_destroy(slow.buckets, &err), "gm_pool_destroy", &err);
  slow_must(gm_pool_destroy(slow.pool, &err), "gm_pool_destroy", &err);
  slow_must(gm_stream_close(slow.stream, &err), "gm_stream_close", &err);
  slow_must(gm_device_close(slow.device, &err), "gm_device_close", &err);
  slow_must(gm_context_destroy(slow.ctx, &err), "gm_context_destroy", &err);
  temp_folder_remove(&slow.folder);
}

/* ---- the calls ---- */

static inline void slow_alloc_free(gm_pool *pool, gm_stream *stream) {
  gm_block block;
  slow_alloc_in(pool, stream, &block);
  gm_free(pool, &block, stream);
  gm_pool_clear(pool);
}

static inline void slow_alloc(void) { slow_alloc_free(slow.pool, NULL); }
static inline void slow_alloc_bucket(void) { slow_alloc_free(slow.buckets, NULL); }
static inline void slow_alloc_guarded(void) {
  if (slow.guarded) slow_alloc_free(slow.guarded, NULL);
}
static inline void slow_alloc_stream(void) { slow_alloc_free(slow.pool, slow.stream); }

static inline void slow_alloc_zeroed(void) {
  const gm_request request = {.bytes = SLOW_BYTES, .flags = GM_ZERO | GM_INSERT_WAIT, .stream = slow.stream};
  gm_block block;
  if (gm_acquired(gm_alloc(slow.pool, &request, &block))) gm_free(slow.pool, &block, slow.stream);
  gm_pool_trim(slow.pool, 0);
}

static inline void slow_malloc(void) {
  void *pointer = gm_malloc(slow.pool, SLOW_BYTES, NULL);
  if (pointer) gm_free_ptr(slow.pool, pointer, SLOW_BYTES, NULL);
  gm_pool_clear(slow.pool);
}

static inline void slow_alloc_waits(void) {
  const gm_request request = {.bytes = SLOW_BYTES, .deadline_ns = 3000000};
  gm_block block;
  gm_alloc(slow.small, &request, &block);
}

static inline void slow_explain(void) {
  const gm_request request = {.bytes = SLOW_BYTES};
  gm_explanation explanation = {.struct_size = sizeof explanation};
  gm_block block;
  gm_error err;
  gm_alloc(slow.small, &request, &block);
  gm_explain(slow.small, &request, &explanation, &err);
}

static inline void slow_host_info(void) {
  gm_host_info host = {.struct_size = sizeof host};
  gm_error err;
  slow_must(gm_host_info_read(NULL, &host, &err), "gm_host_info_read", &err);
}

static inline void slow_memory_info(void) {
  gm_memory_info info = {.struct_size = sizeof info};
  gm_error err;
  slow_must(gm_device_memory_info(slow.device, &info, &err), "gm_device_memory_info", &err);
}

static inline void slow_pressure(void) {
  gm_pressure pressure = {.struct_size = sizeof pressure};
  gm_error err;
  gm_device_pressure(slow.device, &pressure, &err);
  gm_host_pressure(slow.ctx, &pressure, &err);
  gm_pool_pressure(slow.pool, &pressure, &err);
  gm_context_poll(slow.ctx, &err);
}

static inline void slow_monitor(void) {
  gm_error err;
  slow_must(gm_monitor_start(slow.ctx, 1000000, &err), "gm_monitor_start", &err);
  slow_must(gm_monitor_stop(slow.ctx, &err), "gm_monitor_stop", &err);
}

static inline void slow_pool_create(void) {
  gm_error err;
  slow_must(gm_pool_destroy(slow_pool((gm_pool_params){.name = "another"}), &err), "gm_pool_destroy", &err);
}

static inline void slow_reserve(void) {
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = SLOW_BYTES};
  gm_reservation *reservation;
  gm_error err;
  if (!gm_reserve(slow.device, &params, &reservation, &err)) gm_reservation_cancel(reservation);
}

static inline void slow_select(void) {
  gm_error err;
  gm_selection *selection = calloc(1, sizeof *selection);
  selection->struct_size = sizeof *selection;
  gm_select_backend_for_bytes(slow.ctx, 1, NULL, selection, &err);
  free(selection);
}

static inline void slow_discover(void) {
  gm_error err;
  size_t count;
  gm_discover_backends(slow.ctx, GM_PROBE_ACTIVE, NULL, 0, &count, &err);
  gm_discover_devices(slow.ctx, NULL, 0, &count, &err);
}

static inline void slow_context(void) {
  const gm_context_params params = {.struct_size = sizeof params, .backends = slow.backend};
  gm_context *ctx;
  gm_device *device;
  gm_error err;
  slow_must(gm_context_create(&params, &ctx, &err), "gm_context_create", &err);
  slow_must(gm_device_open_index(ctx, slow.backend, 0, &device, &err), "gm_device_open_index", &err);
  slow_must(gm_device_close(device, &err), "gm_device_close", &err);
  slow_must(gm_context_destroy(ctx, &err), "gm_context_destroy", &err);
}

static inline void slow_stream(void) {
  gm_stream *stream;
  gm_point point;
  gm_error err;
  slow_must(gm_stream_create(slow.device, &stream, &err), "gm_stream_create", &err);
  slow_must(gm_stream_record(stream, &point, &err), "gm_stream_record", &err);
  slow_must(gm_point_wait(slow.device, &point, UINT64_MAX, &err), "gm_point_wait", &err);
  gm_point_release(slow.device, &point);
  slow_must(gm_stream_sync(stream, &err), "gm_stream_sync", &err);
  slow_must(gm_stream_close(stream, &err), "gm_stream_close", &err);
}

static inline void slow_copy(void) {
  static unsigned char data[1 << 16];
  gm_error err;
  gm_block_write(slow.pool, &slow.block, 0, data, sizeof data, NULL, NULL, &err);
  gm_block_read(slow.pool, &slow.block, 0, data, sizeof data, NULL, NULL, &err);
}

static inline void slow_buffer(void) {
  const gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = SLOW_BYTES}};
  gm_buffer *buffer;
  gm_error err;
  if (gm_buffer_create(slow.pool, &params, &buffer, &err)) return;
  gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, &err);
  gm_buffer_promote(buffer, NULL, &err);
  gm_buffer_release(buffer, NULL);
}

static inline void slow_record(void) {
  gm_recording recording = {.struct_size = sizeof recording};
  gm_error err;
  slow_must(gm_pool_record_begin(slow.pool, temp_folder_join(&slow.folder, "trace"), &err), "gm_pool_record_begin",
            &err);
  for (int i = 0; i < 2000; i++) { /* more than the part that is kept in host memory */
    void *pointer = gm_malloc(slow.pool, 4096, NULL);
    if (pointer) gm_free_ptr(slow.pool, pointer, 4096, NULL);
  }
  slow_must(gm_pool_record_end(slow.pool, &recording, &err), "gm_pool_record_end", &err);
}

static inline void slow_tier(void) {
  static const char text[4096] = "value";
  const gm_tier_part part = {text, sizeof text};
  gm_tier_value *value;
  uint64_t bytes;
  gm_error err;
  slow_must(gm_tier_put(slow.tier, "key", 3, &part, 1, &err), "gm_tier_put", &err);
  slow_must(gm_tier_flush(slow.tier, &err), "gm_tier_flush", &err);
  slow_must(gm_tier_value_open(slow.tier, "key", 3, &value, &bytes, &err), "gm_tier_value_open", &err);
  gm_tier_value_close(value);
  slow_must(gm_tier_remove(slow.tier, "key", 3, &err), "gm_tier_remove", &err);
}

static inline void slow_tier_open(void) {
  gm_tier *tier;
  gm_error err;
  slow_must(gm_tier_open(slow.ctx, "disk", temp_folder_join(&slow.folder, "other"), NULL, &tier, &err), "gm_tier_open",
            &err);
  slow_must(gm_tier_close(tier, &err), "gm_tier_close", &err);
}

static inline void slow_share(void) {
  gm_pool *pool;
  const gm_pool_params params = {.struct_size = sizeof params, .share = GM_SHARE_FD};
  gm_shared shared = {.struct_size = sizeof shared};
  gm_block block, other;
  gm_error err;
  if (gm_pool_create(slow.device, &params, &pool, &err)) return; /* this driver shares nothing */
  slow_alloc_in(pool, NULL, &block);
  if (!gm_block_export(pool, &block, &shared, &err)) {
    if (!gm_block_import(pool, &shared, &other, &err)) gm_free(pool, &other, NULL);
    gm_shared_close(&shared);
  }
  gm_free(pool, &block, NULL);
  gm_pool_destroy(pool, &err);
}

static inline void slow_text(void *user, const char *text, size_t bytes) { (void)user, (void)text, (void)bytes; }
static inline void slow_summary(void) {
  gm_error err;
  gm_summary_brief(slow.ctx, GM_PROBE_PASSIVE, slow_text, NULL, &err);
}

static inline void slow_files(void) {
  gm_model *model;
  gm_error err;
  gm_model_open(NULL, temp_folder_join(&slow.folder, "none.gguf"), &model, &err);
  gm_config_load(slow.ctx, "/proc/self/status", &err);
}

static inline void slow_store(void) {
  const gm_store_params params = {
      .struct_size = sizeof params, .pool = slow.pool, .tiers = &slow.tier, .tier_count = 1};
  const gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = GM_DTYPE_F32, .rank = 1, .shape = {4096}};
  static const float data[4096];
  gm_store *store;
  gm_value *value;
  gm_error err;
  uint64_t bytes;
  if (strcmp(slow.backend, "null") == 0) return; /* its memory cannot be read */
  slow_must(gm_store_create(&params, &store, &err), "gm_store_create", &err);
  if (!gm_store_put_tensor(store, "a", &desc, data, &err)) {
    gm_store_demote(store, UINT64_MAX, &bytes, &err);
    slow_must(gm_store_flush(store, &err), "gm_store_flush", &err);
    if (!gm_store_get(store, "a", &value, &err)) gm_value_release(value, NULL);
    slow_must(gm_store_delete(store, "a", &err), "gm_store_delete", &err);
  }
  slow_must(gm_store_destroy(store, &err), "gm_store_destroy", &err);
}

static inline void slow_heaps(void) {
  gm_heap_info heap = {.struct_size = sizeof heap};
  gm_error err;
  gm_device_heap(slow.device, 0, &heap, &err);
}

static inline void slow_sleep(void) {
  gm_error err;
  uint64_t bytes;
  if (!gm_pool_sleep_whole(slow.pool, true, NULL, &bytes, &err)) gm_pool_wake(slow.pool, NULL, &err);
}

static inline void slow_cleanup(void) {
  gm_compact_report report = {.struct_size = sizeof report};
  gm_error err;
  uint64_t bytes;
  gm_pool_compact(slow.pool, NULL, &report, &err);
  gm_device_cleanup(slow.device, &bytes, &err);
  gm_context_cleanup(slow.ctx, &bytes, &err);
}

static inline void slow_profile(void) {
  gm_trace_profile profile = {.struct_size = sizeof profile};
  gm_warm_up_result result = {.struct_size = sizeof result};
  gm_error err;
  gm_trace_profile_read(NULL, GM_TEST_DATA "/../../bench/traces/resnet50_train.gmtrace.gz", &profile, &err);
  gm_pool_warm_up_from_trace(slow.pool, GM_TEST_DATA "/../../bench/traces/none", NULL, &result, &err);
}

static const struct slow_call {
  const char *name;
  void (*run)(void);
} slow_calls[] = {
    {"host_info", slow_host_info},
    {"memory_info", slow_memory_info},
    {"alloc", slow_alloc},
    {"alloc_bucket", slow_alloc_bucket},
    {"alloc_guarded", slow_alloc_guarded},
    {"alloc_stream", slow_alloc_stream},
    {"alloc_zeroed", slow_alloc_zeroed},
    {"alloc_waits", slow_alloc_waits},
    {"malloc", slow_malloc},
    {"explain", slow_explain},
    {"pressure", slow_pressure},
    {"monitor", slow_monitor},
    {"pool_create", slow_pool_create},
    {"reserve", slow_reserve},
    {"select", slow_select},
    {"discover", slow_discover},
    {"context", slow_context},
    {"stream", slow_stream},
    {"copy", slow_copy},
    {"buffer", slow_buffer},
    {"record", slow_record},
    {"tier", slow_tier},
    {"tier_open", slow_tier_open},
    {"share", slow_share},
    {"summary", slow_summary},
    {"files", slow_files},
    {"store", slow_store},
    {"heaps", slow_heaps},
    {"sleep", slow_sleep},
    {"cleanup", slow_cleanup},
    {"profile", slow_profile},
};

enum { SLOW_CALLS = sizeof slow_calls / sizeof *slow_calls };

#endif
