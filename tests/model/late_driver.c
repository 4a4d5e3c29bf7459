#include "model/late_driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/random.h"

_Thread_local late_driver *late_next;

void late_fault(late_driver *driver, const char *format, ...) {
  va_list args;
  if (driver->faults++) return;
  va_start(args, format);
  vsnprintf(driver->fault, sizeof driver->fault, format, args);
  va_end(args);
}

gm_status late_fail(gm_error *err, gm_status status, const char *why) {
  if (!err) return status;
  *err = (gm_error){.status = status};
  snprintf(err->message, sizeof err->message, "%s", why);
  return status;
}

void late_reset(late_driver *driver, uint64_t seed) {
  driver->random = seed;
  driver->faults = 0;
  driver->fault[0] = 0;
}

/* ---- driver and device ---- */

static gm_status late_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err) {
  (void)host, (void)level, (void)err;
  out->simulated = true;
  out->device_count = 1;
  return GM_OK;
}

static gm_status late_init(const gm_backend_host *host, void **out, gm_error *err) {
  (void)host;
  if (!late_next) return late_fail(err, GM_ERR_UNAVAILABLE, "this thread has no late driver");
  *out = late_next;
  return GM_OK;
}

static void late_fini(void *driver, gm_close_mode mode) { (void)driver, (void)mode; }

static gm_status late_device_count(void *driver, uint32_t *out, gm_error *err) {
  (void)driver, (void)err;
  *out = 1;
  return GM_OK;
}

static gm_status late_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  (void)driver, (void)index, (void)device, (void)err;
  *out = (gm_device_info){.struct_size = sizeof *out,
                          .api = GM_API_OTHER,
                          .type = GM_DEVICE_TYPE_DISCRETE,
                          .name = "late",
                          .uuid = {1},
                          .simulated = true,
                          .numa_node = -1,
                          .total_bytes = LATE_CAPACITY,
                          .alignment = LATE_GRANULE,
                          .map_atom_bytes = 1,
                          .capabilities = GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_VMM | GM_CAP_ADDRESS};
  return GM_OK;
}

static gm_status late_device_open(void *driver, uint32_t index, void **out, gm_error *err) {
  (void)index, (void)err;
  *out = driver;
  return GM_OK;
}

static void late_device_close(void *device, gm_close_mode mode) { (void)device, (void)mode; }

static gm_status late_device_state(void *device, gm_error *err) {
  (void)device, (void)err;
  return GM_OK;
}

static gm_status late_no(gm_error *err) {
  return late_fail(err, GM_ERR_NOT_SUPPORTED, "the late driver has no such thing");
}

static gm_status late_device_native(void *device, gm_native_device *out, gm_error *err) {
  (void)device, (void)out;
  return late_no(err);
}

static gm_status late_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  (void)index, (void)device, (void)err;
  out->rules = GM_RAW_DRIVER;
  out->driver = (gm_raw_reply){GM_RAW_OK, 0, LATE_CAPACITY, LATE_CAPACITY - ((late_driver *)driver)->used};
  return GM_OK;
}

static gm_status late_type_count(void *device, uint32_t *out, gm_error *err) {
  (void)device, (void)err;
  *out = LATE_TYPES;
  return GM_OK;
}

static gm_status late_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  (void)device, (void)err;
  const uint32_t seen = GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT | GM_MEMORY_PERSISTENT_MAP;
  *out = (gm_memory_type){.struct_size = sizeof *out,
                          .flags = GM_MEMORY_DEVICE_LOCAL | (type == LATE_WINDOW ? seen : 0),
                          .heap_bytes = LATE_CAPACITY,
                          .atom_bytes = 1};
  return GM_OK;
}

static gm_status late_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                             gm_native_memory *out, gm_error *err) {
  (void)device, (void)memory, (void)offset, (void)bytes, (void)out;
  return late_no(err);
}

/* ---- streams and points ---- */

static gm_status late_stream_create(void *device, void **out, gm_stream_kind *out_kind, gm_error *err) {
  late_driver *driver = device;
  for (uint32_t slot = 0; slot < LATE_STREAMS; slot++) {
    late_stream *stream = &driver->streams[slot];
    if (stream->id) continue;
    stream->id = ++driver->next_id * LATE_STREAMS + slot;
    stream->kind = *out_kind = driver->kind;
    stream->mute = driver->mute;
    stream->left = false;
    stream->submitted = stream->passed = 0;
    driver->newest = slot;
    if (driver->stream_end <= slot) driver->stream_end = slot + 1;
    *out = stream;
    return GM_OK;
  }
  return late_fail(err, GM_ERR_DRIVER, "no more streams");
}

static gm_status late_may_submit(const late_stream *stream, gm_error *err) {
  return stream->mute ? late_fail(err, GM_ERR_NOT_SUPPORTED, "gm may not submit there") : GM_OK;
}

static gm_status late_stream_sync(void *device, void *stream, gm_error *err) {
  const gm_status status = late_may_submit(stream, err);
  if (status) return status;
  const gm_backend_point point = late_record(stream);
  late_reach(device, &point);
  return GM_OK;
}

/* gm only lets go of a mute one, the engine's. */
static void late_stream_close(void *device, void *handle, gm_close_mode mode) {
  late_stream *stream = handle;
  if (mode == GM_CLOSE_NORMAL) late_stream_sync(device, stream, NULL);
  stream->left = stream->passed < stream->submitted;
  if (!stream->left || mode != GM_CLOSE_NORMAL) stream->id = 0;
}

static gm_status late_stream_flush(void *device, void *stream, gm_error *err) {
  const gm_status status = late_may_submit(stream, err);
  late_drift(device);
  return status;
}

static gm_backend_point late_hand_out(late_driver *driver, const gm_backend_point *point) {
  if (point->handle) driver->points++;
  return *point;
}

static gm_status late_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  const gm_status status = late_may_submit(stream, err);
  const gm_backend_point point = late_record(stream);
  if (status) return status;
  *out = late_hand_out(device, &point);
  late_drift(device);
  return GM_OK;
}

static gm_status late_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err) {
  (void)err;
  *out = late_hand_out(device, point);
  return GM_OK;
}

static gm_status late_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  (void)err;
  late_drift(device);
  *out = late_passed(device, point);
  return GM_OK;
}

/* With a limit of time it is a matter of chance. */
static gm_status late_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  late_driver *driver = device;
  if (timeout_ns != UINT64_MAX) late_drift(driver);
  if (timeout_ns == UINT64_MAX || test_random(&driver->random) % 16 < driver->eagerness) late_reach(driver, point);
  if (late_passed(driver, point)) return GM_OK;
  return late_fail(err, GM_ERR_TIMEOUT, "not yet");
}

static gm_status late_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  const gm_status status = late_may_submit(stream, err);
  const late_work work = {.kind = LATE_WAIT, .point = *point};
  if (!status) late_submit(device, stream, &work);
  return status;
}

static gm_status late_stream_barrier(void *device, void *stream, gm_error *err) {
  const gm_status status = late_may_submit(stream, err);
  const late_work work = {.kind = LATE_BARRIER};
  if (!status) late_submit(device, stream, &work);
  return status;
}

static void late_point_release(void *device, const gm_backend_point *point, gm_close_mode mode) {
  (void)mode;
  if (point->handle) ((late_driver *)device)->points--;
}

/* ---- copies ---- */

static gm_status late_write(void *device, void *stream, uint64_t address, uint64_t bytes, const void *from,
                            gm_backend_point *out, gm_error *err) {
  const gm_status status = late_may_submit(stream, err);
  late_work work = {.kind = LATE_WRITE, .address = address, .bytes = bytes};
  work.bytes = (bytes + LATE_GRANULE - 1) / LATE_GRANULE * LATE_GRANULE;
  if (status) return status;
  memcpy(&work.word, from, bytes < sizeof work.word ? bytes : sizeof work.word);
  late_submit(device, stream, &work);
  const gm_backend_point point = late_record(stream);
  if (out) *out = late_hand_out(device, &point);
  if (!out) late_reach(device, &point);
  return GM_OK;
}

static gm_status late_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                uint64_t bytes, gm_backend_point *out, gm_error *err) {
  return late_write(device, stream, dst->address + offset, bytes, src, out, err);
}

static gm_status late_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                           const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  unsigned char four[sizeof(uint32_t)];
  for (uint32_t i = 0; i < sizeof four; i++) four[i] = ((const unsigned char *)pattern)[i % pattern_bytes];
  return late_write(device, stream, dst->address + offset, bytes < sizeof four ? sizeof four : bytes, four, out, err);
}

static gm_status late_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                              uint64_t bytes, gm_backend_point *out, gm_error *err) {
  (void)device, (void)stream, (void)src, (void)offset, (void)dst, (void)bytes, (void)out;
  return late_no(err);
}

static gm_status late_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err) {
  (void)device, (void)stream, (void)item, (void)out;
  return late_no(err);
}

const gm_backend_ops late_ops = {.abi = GM_BACKEND_ABI,
                                 .struct_size = sizeof(gm_backend_ops),
                                 .name = "late",
                                 .api = GM_API_OTHER,
                                 .capabilities = GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_VMM | GM_CAP_ADDRESS,
                                 .probe = late_probe,
                                 .init = late_init,
                                 .fini = late_fini,
                                 .device_count = late_device_count,
                                 .device_info = late_device_info,
                                 .device_open = late_device_open,
                                 .device_close = late_device_close,
                                 .device_state = late_device_state,
                                 .device_native = late_device_native,
                                 .figures = late_figures,
                                 .memory_type_count = late_type_count,
                                 .memory_type = late_type,
                                 .memory_alloc = late_memory_alloc,
                                 .memory_free = late_memory_free,
                                 .memory_native = late_native,
                                 .map = late_host_map,
                                 .unmap = late_host_unmap,
                                 .flush = late_host_sync,
                                 .invalidate = late_host_sync,
                                 .stream_create = late_stream_create,
                                 .stream_close = late_stream_close,
                                 .stream_flush = late_stream_flush,
                                 .stream_sync = late_stream_sync,
                                 .point_record = late_point_record,
                                 .point_done = late_point_done,
                                 .point_wait = late_point_wait,
                                 .point_wait_on = late_point_wait_on,
                                 .stream_barrier = late_stream_barrier,
                                 .point_release = late_point_release,
                                 .point_copy = late_point_copy,
                                 .copy_to_device = late_to_device,
                                 .copy_to_host = late_to_host,
                                 .copy = late_copy,
                                 .fill = late_fill,
                                 .vmm_granularity = late_granularity,
                                 .vmm_reserve = late_reserve,
                                 .vmm_unreserve = late_unreserve,
                                 .vmm_create = late_create,
                                 .vmm_destroy = late_destroy,
                                 .vmm_map = late_map,
                                 .vmm_unmap = late_unmap,
                                 .vmm_access = late_access};
