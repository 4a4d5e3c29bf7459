/* A stranger's backend that adopts devices: the null backend under another name, with structs of its own under
 * GM_API_OTHER. Two of them can be registered side by side.
 *
 *   gm_backend_ops ops = lender_ops("lender");
 *   gm_backend_register(ctx, &ops, NULL);
 *   lender_device native = lender_native(1);
 *   gm_device_adopt_as(ctx, "lender", &native.head, &device, NULL); */
#ifndef GM_TESTS_SUPPORT_LENDER_BACKEND_H
#define GM_TESTS_SUPPORT_LENDER_BACKEND_H

#include "backends/null/null_backend.h"
#include "core/base/error.h"

typedef struct lender_device {
  gm_native_device head;
  uint32_t card;
  uint32_t word; /* LENDER_WORD: only a lender knows it */
} lender_device;

typedef struct lender_stream {
  gm_native_stream head;
  uint64_t queue;
} lender_stream;

typedef struct lender_point {
  gm_native_point head;
  uint64_t handle, value;
} lender_point;

typedef struct lender_memory {
  gm_native_memory head;
  uint64_t address, bytes;
} lender_memory;

enum { LENDER_WORD = 0x1e4de5 };

static inline lender_device lender_native(uint32_t card) {
  return (lender_device){{sizeof(lender_device), GM_API_OTHER}, card, LENDER_WORD};
}

static gm_status lender_check(uint32_t size, gm_api api, uint32_t wanted, const char *op, gm_error *err) {
  if (api == GM_API_OTHER && size == wanted) return GM_OK;
  return gm__fail(err, GM_ERR_INVALID_ARGUMENT, op, "not a struct of a lender");
}

static gm_status lender_device_adopt(void *driver, const gm_native_device *native, void **out, gm_error *err) {
  const lender_device *given = (const lender_device *)(const void *)native;
  const gm_status status = lender_check(native->struct_size, native->api, sizeof *given, "device_adopt", err);
  if (status != GM_OK) return status;
  if (given->word != LENDER_WORD) return gm__fail(err, GM_ERR_INVALID_ARGUMENT, "device_adopt", "a wrong word");
  return gm__null_backend.device_open(driver, given->card, out, err);
}

static gm_status lender_stream_adopt(void *device, const gm_native_stream *native, void **out, gm_stream_kind *out_kind,
                                     gm_error *err) {
  const gm_status status = lender_check(native->struct_size, native->api, sizeof(lender_stream), "stream_adopt", err);
  return status == GM_OK ? gm__null_backend.stream_create(device, out, out_kind, err) : status;
}

static gm_status lender_point_import(void *device, const gm_native_point *native, gm_backend_point *out,
                                     gm_error *err) {
  const lender_point *given = (const lender_point *)(const void *)native;
  (void)device;
  const gm_status status = lender_check(native->struct_size, native->api, sizeof *given, "point_import", err);
  if (status == GM_OK) *out = (gm_backend_point){given->handle, given->value};
  return status;
}

static gm_status lender_memory_wrap(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err) {
  const lender_memory *given = (const lender_memory *)(const void *)native;
  (void)device;
  const gm_status status = lender_check(native->struct_size, native->api, sizeof *given, "memory_wrap", err);
  if (status == GM_OK)
    *out = (gm_memory){.handle = given->address, .address = given->address, .bytes = given->bytes, .wrapped = true};
  return status;
}

static gm_status lender_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  return memory->wrapped ? GM_OK : gm__null_backend.memory_free(device, memory, mode, err);
}

static gm_status lender_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                      gm_native_memory *out, gm_error *err) {
  lender_memory *asked = (lender_memory *)(void *)out;
  (void)device;
  const gm_status status = lender_check(out->struct_size, out->api, sizeof *asked, "memory_native", err);
  if (status != GM_OK) return status;
  asked->address = memory->address + offset;
  asked->bytes = bytes;
  return GM_OK;
}

static gm_status lender_device_native(void *device, gm_native_device *out, gm_error *err) {
  (void)device;
  const gm_status status = lender_check(out->struct_size, out->api, sizeof(lender_device), "device_native", err);
  if (status == GM_OK) ((lender_device *)(void *)out)->word = LENDER_WORD;
  return status;
}

static gm_status lender_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  const gm_status status = gm__null_backend.device_info(driver, index, device, out, err);
  if (status != GM_OK) return status;
  out->api = GM_API_OTHER;
  out->capabilities |= GM_CAP_ADOPT;
  return GM_OK;
}

static inline gm_backend_ops lender_ops(const char *name) {
  gm_backend_ops ops = gm__null_backend;
  ops.name = name;
  ops.api = GM_API_OTHER;
  ops.capabilities |= GM_CAP_ADOPT;
  ops.device_info = lender_device_info;
  ops.device_native = lender_device_native;
  ops.device_adopt = lender_device_adopt;
  ops.stream_adopt = lender_stream_adopt;
  ops.point_import = lender_point_import;
  ops.memory_wrap = lender_memory_wrap;
  ops.memory_free = lender_memory_free;
  ops.memory_native = lender_memory_native;
  return ops;
}

#endif
