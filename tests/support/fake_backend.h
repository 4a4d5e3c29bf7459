/* A scripted backend for tests of the layers above the seam: devices with the figures and answers that a test says, no
 * memory behind them. Not a simulated driver: it stands at the seam itself. Set `fake` up before the context discovers.
 *
 *   fake_backend_reset();
 *   fake.device_count = 2; fake.total[0] = …; gm_backend_register(ctx, &fake_ops, NULL); */
#ifndef GM_TESTS_SUPPORT_FAKE_BACKEND_H
#define GM_TESTS_SUPPORT_FAKE_BACKEND_H

#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "gm/backend.h"

enum { FAKE_DEVICES = 8 };

typedef struct fake_backend {
  uint32_t device_count;
  uint64_t total[FAKE_DEVICES];
  uint64_t free_bytes[FAKE_DEVICES];
  gm_status init_status, figures_status, open_status, alloc_status, stream_status, sync_status;
  gm_device_info info; /* what device_info starts from */
  uint32_t type_count;
  gm_memory_type types[4];
  gm_status type_status[4]; /* what memory_alloc answers for the type */
  gm_stream_kind kind;
  bool no_driver, no_device, no_stream; /* success without an object */
  bool broken_alloc;                    /* success without a handle */
  uint64_t short_by;                    /* bytes that an allocation lacks */
  uint64_t crooked;                     /* added to each address */
  int inits, opens, closes, allocs, frees, streams, abandons;
  uint64_t recorded;             /* last point's value */
  uint64_t passed;               /* points up to here have passed */
  void (*meanwhile)(void *user); /* called once, by the next stream_create: what another thread does at that time */
  void *meanwhile_user;
} fake_backend;

static fake_backend fake;

static inline void fake_backend_reset(void) {
  memset(&fake, 0, sizeof fake);
  fake.device_count = 1;
  fake.total[0] = 1000u << 20;
  fake.free_bytes[0] = 900u << 20;
  fake.type_count = 1;
  fake.types[0] = (gm_memory_type){.flags = GM_MEMORY_DEVICE_LOCAL, .atom_bytes = 1};
  fake.info = (gm_device_info){.api = GM_API_OTHER, .type = GM_DEVICE_TYPE_DISCRETE, .alignment = 256, .numa_node = -1};
}

static gm_status fake_answer(gm_status status, const char *op, gm_error *err) {
  return status == GM_OK ? GM_OK : gm__fail_native(err, status, 77, op, "scripted");
}

static gm_status fake_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err) {
  (void)host, (void)level, (void)err;
  snprintf(out->library, sizeof out->library, "libfake.so");
  out->simulated = true;
  return GM_OK;
}

static gm_status fake_init(const gm_backend_host *host, void **out, gm_error *err) {
  (void)host;
  if (fake.init_status != GM_OK) return fake_answer(fake.init_status, "fake_init", err);
  fake.inits++;
  *out = fake.no_driver ? NULL : &fake;
  return GM_OK;
}

static void fake_fini(void *driver, gm_close_mode mode) {
  (void)driver;
  fake.inits--;
  fake.abandons += mode == GM_CLOSE_ABANDON;
}

static gm_status fake_device_count(void *driver, uint32_t *out, gm_error *err) {
  (void)driver, (void)err;
  *out = fake.device_count;
  return GM_OK;
}

static gm_status fake_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  (void)driver, (void)err;
  if (device) index = *(uint32_t *)device;
  *out = fake.info;
  out->index = index;
  if (!out->name[0]) snprintf(out->name, sizeof out->name, "fake %u", index);
  if (!out->uuid[0]) out->uuid[0] = (uint8_t)(index + 1);
  out->total_bytes = fake.total[index % FAKE_DEVICES];
  return GM_OK;
}

static uint32_t fake_handles[FAKE_DEVICES] = {0, 1, 2, 3, 4, 5, 6, 7};

static gm_status fake_device_open(void *driver, uint32_t index, void **out, gm_error *err) {
  (void)driver;
  if (fake.open_status != GM_OK) return fake_answer(fake.open_status, "fake_open", err);
  fake.opens++;
  *out = fake.no_device ? NULL : &fake_handles[index % FAKE_DEVICES];
  return GM_OK;
}

static void fake_device_close(void *device, gm_close_mode mode) {
  (void)device;
  fake.closes++;
  fake.abandons += mode == GM_CLOSE_ABANDON;
}

static gm_status fake_device_state(void *device, gm_error *err) {
  (void)device, (void)err;
  return GM_OK;
}

static gm_status fake_device_native(void *device, gm_native_device *out, gm_error *err) {
  (void)device, (void)out;
  return fake_answer(GM_ERR_NOT_SUPPORTED, "fake_native", err);
}

static gm_status fake_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  (void)driver;
  if (device) index = *(uint32_t *)device;
  if (fake.figures_status != GM_OK) return fake_answer(fake.figures_status, "fake_figures", err);
  out->rules = GM_RAW_DRIVER;
  out->driver = (gm_raw_reply){GM_RAW_OK, 0, fake.total[index % FAKE_DEVICES], fake.free_bytes[index % FAKE_DEVICES]};
  return GM_OK;
}

static gm_status fake_type_count(void *device, uint32_t *out, gm_error *err) {
  (void)device, (void)err;
  *out = fake.type_count;
  return GM_OK;
}

static gm_status fake_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  (void)device, (void)err;
  *out = fake.types[type];
  return GM_OK;
}

static gm_status fake_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  (void)device;
  fake.allocs++;
  if (fake.type_status[params->type] != GM_OK) return fake_answer(fake.type_status[params->type], "fake_alloc", err);
  *out = (gm_memory){.handle = fake.broken_alloc ? 0 : (uint64_t)fake.allocs,
                     .address = ((uint64_t)fake.allocs << 40) + fake.crooked,
                     .bytes = params->bytes - fake.short_by,
                     .type = params->type};
  return GM_OK;
}

static gm_status fake_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  (void)device, (void)memory, (void)err;
  fake.frees++;
  fake.abandons += mode == GM_CLOSE_ABANDON;
  return GM_OK;
}

static gm_status fake_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                             gm_native_memory *out, gm_error *err) {
  (void)device, (void)memory, (void)offset, (void)bytes, (void)out;
  return fake_answer(GM_ERR_NOT_SUPPORTED, "fake_native", err);
}

static gm_status fake_stream_create(void *device, void **out, gm_stream_kind *kind, gm_error *err) {
  (void)device;
  if (fake.stream_status != GM_OK) return fake_answer(fake.stream_status, "fake_stream", err);
  fake.streams++;
  void (*meanwhile)(void *user) = fake.meanwhile;
  fake.meanwhile = NULL;
  if (meanwhile) meanwhile(fake.meanwhile_user);
  *out = fake.no_stream ? NULL : &fake;
  *kind = fake.kind;
  return GM_OK;
}

static void fake_stream_close(void *device, void *stream, gm_close_mode mode) {
  (void)device, (void)stream;
  fake.streams--;
  fake.abandons += mode == GM_CLOSE_ABANDON;
}

static gm_status fake_stream_any(void *device, void *stream, gm_error *err) {
  (void)device, (void)stream;
  return fake_answer(fake.sync_status, "fake_sync", err);
}

static gm_status fake_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  (void)device, (void)stream, (void)err;
  *out = (gm_backend_point){1, ++fake.recorded};
  return GM_OK;
}

static gm_status fake_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  (void)device, (void)err;
  *out = point->value <= fake.passed;
  return GM_OK;
}

static gm_status fake_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  (void)device;
  if (timeout_ns == UINT64_MAX) fake.passed = point->value;
  return point->value <= fake.passed ? GM_OK : fake_answer(GM_ERR_TIMEOUT, "fake_wait", err);
}

static gm_status fake_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  (void)device, (void)stream, (void)point, (void)err;
  return GM_OK;
}

static void fake_release(void *device, const gm_backend_point *point, gm_close_mode mode) {
  (void)device, (void)point, (void)mode;
}

static gm_status fake_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                uint64_t bytes, gm_backend_point *out, gm_error *err) {
  (void)device, (void)stream, (void)dst, (void)offset, (void)src, (void)bytes, (void)out;
  return fake_answer(GM_ERR_NOT_SUPPORTED, "fake_copy", err);
}

static gm_status fake_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                              uint64_t bytes, gm_backend_point *out, gm_error *err) {
  (void)device, (void)stream, (void)src, (void)offset, (void)dst, (void)bytes, (void)out;
  return fake_answer(GM_ERR_NOT_SUPPORTED, "fake_copy", err);
}

static gm_status fake_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err) {
  (void)device, (void)stream, (void)item, (void)out;
  return fake_answer(GM_ERR_NOT_SUPPORTED, "fake_copy", err);
}

static gm_status fake_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                           const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  (void)device, (void)stream, (void)dst, (void)offset, (void)bytes, (void)pattern, (void)pattern_bytes, (void)out;
  return fake_answer(GM_ERR_NOT_SUPPORTED, "fake_fill", err);
}

static const gm_backend_ops fake_ops = {.abi = GM_BACKEND_ABI,
                                        .struct_size = sizeof(gm_backend_ops),
                                        .name = "fake",
                                        .api = GM_API_OTHER,
                                        .capabilities = GM_CAP_STREAMS | GM_CAP_POINTS,
                                        .probe = fake_probe,
                                        .init = fake_init,
                                        .fini = fake_fini,
                                        .device_count = fake_device_count,
                                        .device_info = fake_device_info,
                                        .device_open = fake_device_open,
                                        .device_close = fake_device_close,
                                        .device_state = fake_device_state,
                                        .device_native = fake_device_native,
                                        .figures = fake_figures,
                                        .memory_type_count = fake_type_count,
                                        .memory_type = fake_type,
                                        .memory_alloc = fake_alloc,
                                        .memory_free = fake_free,
                                        .memory_native = fake_native,
                                        .stream_create = fake_stream_create,
                                        .stream_close = fake_stream_close,
                                        .stream_flush = fake_stream_any,
                                        .stream_sync = fake_stream_any,
                                        .point_record = fake_record,
                                        .point_done = fake_done,
                                        .point_wait = fake_wait,
                                        .point_wait_on = fake_wait_on,
                                        .stream_barrier = fake_stream_any,
                                        .point_release = fake_release,
                                        .copy_to_device = fake_to_device,
                                        .copy_to_host = fake_to_host,
                                        .copy = fake_copy,
                                        .fill = fake_fill};

#endif
