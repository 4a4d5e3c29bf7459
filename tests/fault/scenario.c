#include "fault/scenario.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/device/device.h"
#include "fault/fault.h"
#include "gm/buffer.h"
#include "gm/config.h"
#include "gm/copy.h"
#include "gm/debug.h"
#include "gm/load.h"
#include "gm/pressure.h"
#include "gm/report.h"
#include "gm/scope.h"
#include "gm/share.h"
#include "support/named_libraries.h"
#include "test_data.h"

/* Host memory of copies stays valid to the end of the program: a wait that was made to fail leaves work behind. */
enum { SCENARIO_BYTES = 40000 };
static unsigned char scenario_source[SCENARIO_BYTES], scenario_target[SCENARIO_BYTES];

static gm_status scenario_context(session *s, gm_error *err) {
  const gm_context_params params = {.struct_size = sizeof params,
                                    .services = &fault_services,
                                    .preset = "inference",
                                    .host_root = GM_TEST_DATA "/fault/host", /* the machine's has ever so many files */
                                    .backend_options = named_options("null:capacity=256M"),
                                    .libraries = named_libraries(),
                                    .symbol_hook = fault_hook,
                                    .ignore_environment = true};
  return gm_context_create(&params, &s->ctx, err);
}

static gm_status scenario_device(session *s, gm_error *err) {
  gm_status status = scenario_context(s, err);
  if (status == GM_OK) status = gm_device_open_index(s->ctx, s->backend, 0, &s->device, err);
  if (status == GM_OK) fault_opened();
  return status;
}

static gm_status scenario_pool(session *s, gm_error *err) {
  const gm_pool_params params = {.struct_size = sizeof params, .name = "sweep", .checked = true, .track = true};
  gm_status status = scenario_device(s, err);
  if (status == GM_OK) status = gm_pool_create(s->device, &params, &s->pool, err);
  if (status == GM_OK) fault_opened();
  return status;
}

/* The status of a call that has no gm_error of its own. */
static gm_status scenario_say(gm_status status, const char *op, gm_error *err) {
  err->status = status;
  snprintf(err->op, sizeof err->op, "%s", op);
  snprintf(err->message, sizeof err->message, "%s", gm_status_text(status));
  return status;
}

static gm_status scenario_refused(const session *s, const gm_request *request, gm_acquire acquire, gm_error *err) {
  gm_explanation why = {.struct_size = sizeof why};
  const gm_status status = gm_explain(s->pool, request, &why, err);
  if (status != GM_OK) return status;
  snprintf(err->op, sizeof err->op, "gm_alloc");
  snprintf(err->message, sizeof err->message, "answer %d: %.400s", (int)acquire, why.text);
  err->status = why.last_failure.status ? why.last_failure.status : GM_ERR_OUT_OF_DEVICE_MEMORY;
  return err->status;
}

static gm_status scenario_take(session *s, uint64_t bytes, uint32_t flags, gm_stream *stream, gm_error *err) {
  gm_request request = {.bytes = bytes, .flags = flags, .stream = stream, .tag = gm_tag(s->ctx, "sweep")};
  if (flags & GM_HOST_VISIBLE) request.must_be = GM_DEVICE_ACCESSIBLE; /* few devices' own memory can be mapped */
  const gm_acquire acquire = gm_alloc(s->pool, &request, &s->blocks[s->block_count]);
  if (acquire > GM_ACQUIRE_FRESH) return scenario_refused(s, &request, acquire, err);
  s->block_count++;
  return GM_OK;
}

static gm_status scenario_give(session *s, gm_stream *stream) {
  const gm_status status = gm_free(s->pool, &s->blocks[s->block_count - 1], stream);
  if (status == GM_OK) s->block_count--;
  return status;
}

static gm_status settings(session *s, gm_error *err) {
  gm_status status = scenario_context(s, err);
  if (status == GM_OK) status = gm_config_set(s->ctx, "max_pooled_per_bucket", "4", err);
  if (status == GM_OK) status = gm_config_preset(s->ctx, "training", err);
  if (status == GM_OK) status = gm_config_lock(s->ctx, "memory_fraction", err);
  for (int i = 0; i < 20 && status == GM_OK; i++) {
    char name[16];
    snprintf(name, sizeof name, "tag%d", i);
    gm_tag(s->ctx, name); /* 0 when there is no memory: no failure of the program */
  }
  if (status == GM_OK) status = gm_tracker_create(s->ctx, &s->tracker, err);
  for (uint64_t i = 1; i < 40 && status == GM_OK; i++) {
    const gm_track_entry entry = {.bytes = i};
    gm_tracker_untrack(s->tracker, gm_tracker_track(s->tracker, &entry) / 2);
  }
  return status;
}

static void discovery_text(void *user, const char *text, size_t bytes) { (void)user, (void)text, (void)bytes; }

static gm_status discovery(session *s, gm_error *err) {
  static gm_backend_info infos[16] = {{.struct_size = sizeof *infos}};
  static gm_device_entry entries[32] = {{.struct_size = sizeof *entries}};
  static gm_selection selection;
  size_t count;
  for (int i = 0; i < 16; i++) infos[i].struct_size = sizeof infos[i];
  for (int i = 0; i < 32; i++) entries[i].struct_size = sizeof entries[i];
  selection.struct_size = sizeof selection;
  gm_status status = scenario_context(s, err);
  if (status == GM_OK) status = gm_discover_backends(s->ctx, GM_PROBE_PASSIVE, infos, 16, &count, err);
  if (status == GM_OK) status = gm_discover_backends(s->ctx, GM_PROBE_ACTIVE, infos, 16, &count, err);
  if (status == GM_OK) status = gm_discover_devices(s->ctx, entries, 32, &count, err);
  if (status == GM_OK) status = gm_select_backend_for_bytes(s->ctx, 1 << 20, NULL, &selection, err);
  if (status == GM_OK) status = gm_summary(s->ctx, GM_PROBE_ACTIVE, discovery_text, NULL, err);
  return status;
}

static gm_status opening(session *s, gm_error *err) {
  gm_memory_info memory = {.struct_size = sizeof memory};
  gm_point point = {0};
  uint32_t types = 0;
  gm_status status = scenario_device(s, err);
  if (status == GM_OK) status = gm_device_memory_info(s->device, &memory, err);
  if (status == GM_OK) status = gm_device_memory_type_count(s->device, &types, err);
  if (status == GM_OK) status = gm_device_state(s->device, err);
  if (status == GM_OK) status = gm_stream_create(s->device, &s->streams[0], err);
  if (status == GM_OK) status = gm_stream_create(s->device, &s->streams[1], err);
  if (status == GM_OK) status = gm_stream_record(s->streams[0], &point, err);
  if (status == GM_OK) status = gm_stream_wait(s->streams[1], &point, err);
  if (status == GM_OK) status = gm_point_wait(s->device, &point, UINT64_MAX, err);
  if (s->device) gm_point_release(s->device, &point);
  if (status == GM_OK) status = gm_stream_barrier(s->streams[1], err);
  if (status == GM_OK) status = gm_stream_sync(s->streams[1], err);
  return status;
}

static gm_status allocation(session *s, gm_error *err) {
  gm_status status = scenario_pool(s, err);
  for (int round = 0; round < 2 && status == GM_OK; round++) {
    for (uint64_t i = 0; i < SESSION_BLOCKS && status == GM_OK; i++) {
      status = scenario_take(s, (i + 1) * 3000 + 100000 * i, i % 2 ? GM_COMMIT : 0, NULL, err);
    }
    while (status == GM_OK && s->block_count) status = scenario_give(s, NULL);
  }
  if (status == GM_OK) gm_pool_trim(s->pool, 0);
  return status;
}

static gm_status transfers(session *s, gm_error *err) {
  gm_status status = scenario_pool(s, err);
  for (int i = 0; i < 2 && status == GM_OK; i++) status = scenario_take(s, SCENARIO_BYTES, 0, NULL, err);
  if (status) return status;
  for (unsigned i = 0; i < SCENARIO_BYTES; i++) scenario_source[i] = (unsigned char)(i * 7);
  memset(scenario_target, 0, SCENARIO_BYTES);
  gm_pool *pool = s->pool;
  const gm_block *a = &s->blocks[0], *b = &s->blocks[1];
  status = gm_block_write(pool, a, 0, scenario_source, SCENARIO_BYTES, NULL, NULL, err);
  if (status == GM_OK) status = gm_block_fill(pool, a, 5, 1001, "ab", 2, NULL, NULL, err);
  if (status == GM_OK) status = gm_block_copy(pool, b, 0, pool, a, 0, SCENARIO_BYTES, NULL, NULL, err);
  if (status == GM_OK) status = gm_block_read(pool, b, 0, scenario_target, SCENARIO_BYTES, NULL, NULL, err);
  if (status) return status;
  for (unsigned i = 0; i < 1001; i++) scenario_source[5 + i] = (unsigned char)"ab"[i % 2];
  if (memcmp(scenario_source, scenario_target, SCENARIO_BYTES) == 0) return GM_OK;
  snprintf(err->message, sizeof err->message, "every call succeeded, and the bytes are wrong");
  return GM_ERR_FORMAT;
}

/* Mapping and views are missing on some devices: that answer counts as done. */
static gm_status native_access(session *s, gm_error *err) {
  void *host = NULL;
  uint64_t view = 0;
  gm_status status = scenario_pool(s, err);
  if (status == GM_OK) status = scenario_take(s, SCENARIO_BYTES, GM_HOST_VISIBLE, NULL, err);
  if (status) return status;
  const gm_block *block = &s->blocks[0];
  status = gm_block_map(s->pool, block, 100, 4000, GM_MAP_READ | GM_MAP_WRITE, NULL, &host, err);
  if (status == GM_OK) {
    memset(host, 1, 4000);
    status = gm_block_unmap(s->pool, block, host, NULL, err);
    if (status) gm_block_unmap(s->pool, block, host, NULL, NULL);
  }
  if (status == GM_OK) status = gm_block_view_create(s->pool, block, 0, 4096, &view, err);
  if (status == GM_OK) status = gm_block_view_destroy(s->pool, view, err);
  return status == GM_ERR_NOT_SUPPORTED ? GM_OK : status;
}

static gm_status reuse_use_on(session *s, const gm_block *block, gm_stream *stream, gm_error *err) {
  const gm_status status = gm_use_on(s->pool, block, stream);
  return status == GM_OK ? GM_OK : scenario_say(status, "gm_use_on", err);
}

static gm_status reuse_round(session *s, gm_error *err) {
  gm_stream *a = s->streams[0], *b = s->streams[1];
  gm_point point = {0};
  gm_status status = scenario_take(s, SCENARIO_BYTES, GM_ZERO, a, err);
  if (status) return status;
  const gm_block *block = &s->blocks[s->block_count - 1];
  status = gm_block_write(s->pool, block, 0, scenario_source, SCENARIO_BYTES, a, &point, err);
  if (status == GM_OK) status = gm_stream_wait(b, &point, err);
  if (status == GM_OK) status = gm_block_fill(s->pool, block, 3, 999, "abcd", 4, b, NULL, err);
  if (status == GM_OK) status = reuse_use_on(s, block, b, err);
  gm_point_release(s->device, &point);
  if (status == GM_OK) status = scenario_give(s, a);
  if (status == GM_OK) status = scenario_take(s, SCENARIO_BYTES, GM_INSERT_WAIT, b, err);
  if (status == GM_OK) status = scenario_give(s, b);
  return status;
}

static gm_status reuse(session *s, gm_error *err) {
  gm_status status = scenario_pool(s, err);
  for (int i = 0; i < 2 && status == GM_OK; i++) status = gm_stream_create(s->device, &s->streams[i], err);
  for (int i = 0; i < 3 && status == GM_OK; i++) status = reuse_round(s, err);
  return status;
}

static gm_status guarded(session *s, gm_error *err) {
  gm_status status = scenario_device(s, err);
  if (status == GM_OK) status = gm_config_set(s->ctx, "debug.red_zone_bytes", "100", err);
  if (status == GM_OK) status = gm_config_set(s->ctx, "debug.check_freed", "true", err);
  if (status == GM_OK) status = gm_pool_create(s->device, NULL, &s->pool, err);
  for (int i = 0; i < 2 && status == GM_OK; i++) status = gm_stream_create(s->device, &s->streams[i], err);
  for (int i = 0; i < 2 && status == GM_OK; i++) status = reuse_round(s, err);
  if (status == GM_OK) status = scenario_take(s, SCENARIO_BYTES, 0, NULL, err);
  return status == GM_OK ? gm_pool_check(s->pool, NULL, err) : status;
}

static gm_status loading(session *s, gm_error *err) {
  gm_model *model = NULL;
  gm_loaded_model *loaded = NULL;
  const gm_load_params params = {.struct_size = sizeof params, .verify = true, .chunk_bytes = 4096};
  gm_status status = scenario_pool(s, err);
  if (status == GM_OK) status = gm_model_open(&fault_services, s->model, &model, err);
  if (status == GM_OK) status = gm_model_load(model, s->pool, &params, &loaded, NULL, err);
  gm_loaded_model_release(loaded, NULL);
  gm_model_close(model);
  return status;
}

static gm_status buffers_use(gm_buffer *buffer, gm_error *err) {
  gm_status status = gm_buffer_write(buffer, 1, scenario_source, SCENARIO_BYTES - 1, NULL, err);
  if (status == GM_OK) status = gm_buffer_read(buffer, 0, scenario_target, SCENARIO_BYTES, NULL, err);
  return status;
}

static gm_status scope_count(void *object, gm_stream *stream) {
  (void)stream;
  ++*(int *)object;
  return GM_OK;
}

/* An object that a scope owns goes on every path: IO if it did not. */
static gm_status buffers_in_scope(session *s, const gm_buffer_params *params, gm_error *err) {
  const gm_request requests[2] = {{.bytes = 5000}, {.bytes = 600}};
  const gm_batch_params batch = {.struct_size = sizeof batch, .requests = requests, .count = 2};
  gm_buffer *buffer = NULL;
  gm_scope *scope = NULL, *inner = NULL;
  gm_part parts[2];
  gm_block block;
  int deferred = 0, released = 0;
  gm_status status = gm_scope_create(s->pool, &scope, err);
  for (int i = 0; i < 3 && status == GM_OK; i++) status = gm_scope_buffer(scope, params, &buffer, err);
  if (status == GM_OK) status = gm_scope_nest(scope, &inner, err);
  if (status == GM_OK) status = gm_scope_alloc(inner, NULL, &requests[0], &block, err);
  if (status == GM_OK) status = gm_scope_batch(inner, NULL, &batch, parts, NULL, err);
  if (status == GM_OK) status = gm_scope_defer(inner, scope_count, &released, err);
  deferred = status == GM_OK;
  gm_scope_end(scope, NULL);
  return released == deferred ? status : GM_ERR_IO;
}

/* The second buffer finds no room on the device, falls back to the host, and moves when there is room. */
static gm_status buffers(session *s, gm_error *err) {
  const gm_buffer_params params = {
      .struct_size = sizeof params, .request = {.bytes = SCENARIO_BYTES}, .fallback = GM_FALLBACK_HOST};
  gm_buffer *made[2] = {NULL, NULL};
  gm_status status = scenario_pool(s, err);
  if (status == GM_OK) status = gm_pool_set_max_bytes(s->pool, 100000, err);
  for (int i = 0; i < 2 && status == GM_OK; i++) {
    status = gm_buffer_create(s->pool, &params, &made[i], err);
    if (status == GM_OK) status = buffers_use(made[i], err);
  }
  if (status == GM_OK) status = gm_pool_set_max_bytes(s->pool, 0, err);
  if (status == GM_OK) status = gm_buffer_promote(made[1], NULL, err);
  if (status == GM_OK) status = buffers_use(made[1], err);
  if (status == GM_OK) status = buffers_in_scope(s, &params, err);
  for (int i = 0; i < 2; i++) {
    if (made[i]) gm_buffer_release(made[i], NULL);
  }
  return status;
}

static gm_status pressure(session *s, gm_error *err) {
  gm_pressure got = {.struct_size = sizeof got};
  gm_status status = scenario_pool(s, err);
  if (status == GM_OK) status = gm_device_pressure(s->device, &got, err);
  if (status == GM_OK) status = gm_pool_pressure(s->pool, &got, err);
  if (status == GM_OK) status = gm_host_pressure(s->ctx, &got, err);
  return status;
}

/* Over a socket to ourselves. An IPC handle its exporter need not be able to open. */
static gm_status share_send_and_import(session *s, const gm_shared *shared, gm_error *err) {
  int ends[2];
  gm_shared got = {.struct_size = sizeof got};
  gm_block *block = &s->blocks[s->block_count];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return GM_ERR_SYSTEM;
  gm_status status = gm_shared_send(ends[0], shared, err);
  if (status == GM_OK) status = gm_shared_receive(ends[1], &got, err);
  if (status == GM_OK) status = gm_block_import(s->pool, &got, block, err);
  if (status == GM_OK) s->block_count++;
  const bool of_another_process = shared->kind == GM_SHARE_IPC && status != GM_ERR_OUT_OF_HOST_MEMORY;
  gm_shared_close(&got);
  close(ends[0]);
  close(ends[1]);
  return of_another_process ? GM_OK : status;
}

static gm_status share_round(session *s, gm_share_kind kind, gm_error *err) {
  const gm_pool_params params = {.struct_size = sizeof params, .name = "share", .share = kind, .track = true};
  gm_shared shared = {.struct_size = sizeof shared};
  gm_status status = gm_pool_create(s->device, &params, &s->pool, err);
  if (status == GM_ERR_NOT_SUPPORTED) return GM_OK; /* not in this way */
  if (status == GM_OK) status = scenario_take(s, SCENARIO_BYTES, GM_SHAREABLE, NULL, err);
  if (status == GM_OK) status = gm_block_export(s->pool, &s->blocks[0], &shared, err);
  for (int i = 0; i < 2 && status == GM_OK; i++) status = share_send_and_import(s, &shared, err);
  gm_shared_close(&shared);
  while (status == GM_OK && s->block_count) status = scenario_give(s, NULL);
  if (status == GM_OK) status = gm_pool_destroy(s->pool, err);
  if (status == GM_OK) s->pool = NULL;
  return status;
}

static gm_status share(session *s, gm_error *err) {
  gm_status status = scenario_device(s, err);
  for (int kind = GM_SHARE_IPC; kind <= GM_SHARE_DMABUF && status == GM_OK; kind++) {
    status = share_round(s, (gm_share_kind)kind, err);
  }
  return status;
}

gm_status session_open(session *s, gm_error *err) { return scenario_pool(s, err); }

gm_status session_open_context(session *s, gm_error *err) { return scenario_context(s, err); }

gm_status session_open_device(session *s, gm_error *err) { return scenario_device(s, err); }

gm_status session_take(session *s, uint64_t bytes, gm_error *err) { return scenario_take(s, bytes, 0, NULL, err); }

gm_status session_take_on(session *s, uint64_t bytes, gm_stream *stream, gm_error *err) {
  return scenario_take(s, bytes, GM_INSERT_WAIT, stream, err);
}

gm_status session_take_spanned(session *s, uint64_t bytes, gm_stream *stream, gm_error *err) {
  return scenario_take(s, bytes, GM_ALLOW_SPANS, stream, err);
}

gm_status session_give(session *s, gm_stream *stream, gm_error *err) {
  const gm_status status = scenario_give(s, stream);
  return status == GM_OK ? GM_OK : scenario_say(status, "gm_free", err);
}

const scenario scenarios[] = {
    {"settings", settings, false, true, false, NULL},
    {"discovery", discovery, false, true, false, NULL},
    {"opening", opening, false, false, true, NULL},
    {"allocation", allocation, false, false, true, NULL},
    {"transfers", transfers, true, false, false, NULL},
    {"native_access", native_access, true, false, false, NULL},
    {"buffers", buffers, true, false, false, NULL},
    {"pressure", pressure, false, false, false, NULL},
    {"reuse", reuse, false, false, false, NULL},
    {"loading", loading, true, false, false, NULL},
    {"guarded", guarded, true, false, false, NULL},
    {"peer", scenario_peer, true, false, false, NULL},
    {"staged", scenario_staged, true, false, false, NULL},
    {"transfer", scenario_transfer, true, false, false, NULL},
    {"scatter", scenario_scatter, true, false, false, NULL},
    {"managed", scenario_managed, true, false, false, NULL},
    {"share", share, true, false, false, NULL},
    {"warm_up", scenario_warm_up, false, false, false, NULL},
    {"batch", scenario_batch, false, false, false, NULL},
    {"batch_contents", scenario_batch_contents, true, false, false, NULL},
    {"quota", scenario_quota, false, false, false, NULL},
    {"pool_set", scenario_pool_set, false, false, false, NULL},
    {"spanned", scenario_spanned, true, false, false, NULL},
    {"record", scenario_record, false, false, false, NULL},
#if GM_HAVE_BACKEND_VULKAN
    {"fences", scenario_fences, true, false, false, "vulkan"},
    {"fences_no_leave", scenario_fences_no_leave, true, false, false, "vulkan"},
#endif
};
const unsigned scenario_count = sizeof scenarios / sizeof scenarios[0];

/* After all pools are gone. A device that cannot be asked counts nothing. */
static gm_status session_holds_nothing(const session *s, gm_error *err) {
  uint32_t count = 0;
  if (!s->device || gm_device_heap_count(s->device, &count, err)) return GM_OK;
  for (uint32_t i = 0; i < count; i++) {
    gm_heap_info heap = {.struct_size = sizeof heap};
    if (gm_device_heap(s->device, i, &heap, err)) continue;
    if (!heap.reserved_bytes && !heap.allocation_count) continue;
    snprintf(err->message, sizeof err->message, "gm counts %llu bytes in %llu allocations of a device without pools",
             (unsigned long long)heap.reserved_bytes, (unsigned long long)heap.allocation_count);
    return GM_ERR_BUSY;
  }
  return GM_OK;
}

/* The memory that copies went through is the device's, and goes when the device closes: here a little before. */
static gm_status session_end_staging(const session *s, gm_error *err) {
  gm_device *device = s->device;
  if (!device || !device->end_stock || device->end_stock(device, err) == GM_OK) return GM_OK;
  return device->end_stock(device, err);
}

gm_status session_end(session *s, gm_error *err) {
  gm_status status = GM_OK;
  gm_tracker_destroy(s->tracker);
  /* Blocks go back in host order, which says that no work uses them any more. */
  for (int i = 0; i < 2; i++) {
    if (s->streams[i] && gm_stream_sync(s->streams[i], err)) gm_stream_sync(s->streams[i], err);
  }
  status = session_end_devices(s, err);
  while (s->block_count && status == GM_OK) {
    status = scenario_give(s, NULL);
    if (status) status = scenario_give(s, NULL);
  }
  if (status == GM_OK && s->pool && gm_pool_destroy(s->pool, err)) status = gm_pool_destroy(s->pool, err);
  if (status == GM_OK) status = session_end_staging(s, err);
  if (status == GM_OK) status = session_holds_nothing(s, err);
  for (int i = 0; i < 2 && status == GM_OK; i++) {
    if (s->streams[i] && gm_stream_close(s->streams[i], err)) status = gm_stream_close(s->streams[i], err);
  }
  if (status == GM_OK && s->device && gm_device_close(s->device, err)) status = gm_device_close(s->device, err);
  if (status == GM_OK && s->ctx && gm_context_destroy(s->ctx, err)) status = gm_context_destroy(s->ctx, err);
  return status;
}
