/* Memory: the device's, page-locked host memory, managed memory. Where host and device both reach memory, it has one
 * address. gm keeps no record: gm_memory.handle is the pointer that the driver gave. */
#include "backends/shared/native.h"
#include "backends/shared/pointer_memory.h"
#include "backends/shared/runtime/runtime_entries.h"
#include "backends/shared/runtime/runtime_native.h"
#include "backends/shared/runtime/runtime_stream.h"
#include "core/base/error.h"
#include "core/base/sized.h"

static uint32_t mem_share_kinds(const gm__runtime_device *device) {
  return device->api->share_kinds(device->driver, device->ordinal, &device->info);
}

gm_status gm__runtime_memory_type_count(void *device, uint32_t *out, gm_error *err) {
  const gm__runtime_device *opened = device;
  (void)err;
  *out = gm__pointer_types(&opened->info);
  return GM_OK;
}

gm_status gm__runtime_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  const gm__runtime_device *opened = device;
  const gm_status status = gm__pointer_type(opened->api->shown, &opened->info, type, out, err);
  if (status == GM_OK && type == GM__POINTER_DEVICE) out->share_kinds = mem_share_kinds(opened);
  return status;
}

static gm_status mem_pinned_address(gm__runtime_device *device, gm__pointer_piece *piece, gm_error *err) {
  const gm__runtime_ask *ask = &device->api->pinned_address;
  gm__runtime_word address = 0;
  const int code = ask->call(device, piece->handle, &address);
  if (code != GM__RUNTIME_SUCCESS) return gm__runtime_fail(device, code, ask->op, err);
  piece->address = address;
  return address ? GM_OK : gm__runtime_nonsense(device, ask->op, "gave no address", err);
}

/* The call tells which memory is out; the code does not. */
static gm_status mem_take(void *device, uint32_t type, uint64_t bytes, gm__pointer_piece *out, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime *api = opened->api;
  const gm__runtime_ask *take = &api->memory_alloc[type];
  gm__runtime_word pointer = 0;
  const int code = take->call(opened, bytes, &pointer);
  if (code == GM__RUNTIME_OUT_OF_MEMORY && type == GM__POINTER_PINNED) {
    return gm__code_fail_as(api->codes, err, GM_ERR_PINNED_LIMIT, code, take->op);
  }
  if (code != GM__RUNTIME_SUCCESS) return gm__runtime_fail(opened, code, take->op, err);
  if (!pointer) return gm__runtime_nonsense(opened, take->op, "gave no address", err);
  gm__pointer_piece piece = {.handle = pointer, .address = pointer};
  if (type != GM__POINTER_DEVICE) piece.host = pointer;
  const gm_status status = type == GM__POINTER_PINNED ? mem_pinned_address(opened, &piece, err) : GM_OK;
  if (status != GM_OK) {
    api->memory_free[type].call(opened, pointer);
    return status;
  }
  *out = piece;
  return GM_OK;
}

static gm_status mem_give_back(void *device, uint32_t type, uint64_t handle, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime_give *give = &opened->api->memory_free[type];
  return gm__runtime_answer(opened, give->call(opened, handle), give->op, err);
}

/* Managed memory is taken when it is touched. New memory may hold anything. */
static gm_status mem_commit(gm__runtime_device *device, const gm_memory_params *params, const gm__pointer_piece *piece,
                            gm_error *err) {
  const gm__runtime_set *set = &device->api->set_bytes;
  gm__runtime_job job;
  if (params->type != GM__POINTER_MANAGED || !(params->flags & GM_ALLOC_COMMIT)) return GM_OK;
  const gm_status status = gm__runtime_begin(device, NULL, &job, err);
  if (status != GM_OK) return status;
  const int code = set->call(device, piece->address, 0, params->bytes, job.stream);
  return gm__runtime_end(device, &job, code, set->op, NULL, err);
}

static gm_status mem_check(const gm__runtime_device *device, const gm_memory_params *params, gm_error *err) {
  const char *shown = device->api->shown;
  const gm_status status = gm__pointer_check(shown, &device->info, params, err);
  if (status != GM_OK || !params->share) return status;
  return gm__pointer_check_share(shown, mem_share_kinds(device), params, err);
}

/* An allocation is safe beside a capture where the thread's mode could be relaxed. A fill is not. */
static gm_status mem_check_captures(gm__runtime_device *device, const gm__runtime_scope *scope,
                                    const gm_memory_params *params, gm_error *err) {
  const bool safe = scope->exchanged && !(params->flags & GM_ALLOC_COMMIT);
  return safe ? GM_OK : gm__runtime_capture_check(device, err);
}

gm_status gm__runtime_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__pointer_source source = {opened->api->shown, mem_take, mem_give_back};
  gm__runtime_scope scope;
  gm__pointer_piece piece = {0};
  gm_status status = mem_check(opened, params, err);
  if (status == GM_OK && params->share == GM_SHARE_FD) {
    return gm__vmm_table_make(&opened->mapped, opened, params, out, err);
  }
  if (status == GM_OK) status = gm__runtime_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = mem_check_captures(opened, &scope, params, err);
  if (status == GM_OK) status = gm__pointer_take(&source, opened, params, opened->info.alignment, &piece, err);
  if (status == GM_OK) {
    status = mem_commit(opened, params, &piece, err);
    if (status != GM_OK) opened->api->memory_free[params->type].call(opened, piece.handle);
  }
  gm__runtime_leave(opened, &scope);
  if (status != GM_OK) return status;
  *out = gm__pointer_memory(&piece, params);
  return GM_OK;
}

/* The driver may wait for the device, which nobody relies on. */
gm_status gm__runtime_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime_give *give = &opened->api->memory_free[memory->type];
  gm__runtime_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON || memory->wrapped) return GM_OK;
  gm_status status = gm__vmm_table_free(&opened->mapped, opened, memory, &gone, err);
  if (gone) return status;
  status = gm__runtime_enter_release(opened, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const int code = give->call(opened, memory->handle);
  gm__runtime_leave(opened, &scope);
  return gm__runtime_released(opened, code, give->op, err);
}

gm_status gm__runtime_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                    gm_native_memory *out, gm_error *err) {
  const gm__runtime *api = ((const gm__runtime_device *)device)->api;
  gm__runtime_native_memory native = {.head = *out};
  const gm_status status = gm__native_check(out, sizeof native, api->api, api->name, "out", err);
  if (status != GM_OK) return status;
  native.pointer = memory->address + offset;
  native.bytes = bytes;
  gm__sized_out(out, &native, sizeof native);
  return GM_OK;
}

gm_status gm__runtime_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                          uint32_t mode, void **out, gm_error *err) {
  const gm__runtime_device *opened = device;
  return gm__pointer_map(opened->api->shown, gm__runtime_stream_sync, device, stream, memory, offset, bytes, mode, out,
                         err);
}
