#include "core/device/memory_answer.h"

#include <inttypes.h>

#include "core/base/error.h"
#include "core/discovery/answer.h"

/* Memory of the type has a pointer, and its bytes end before the last address. */
static bool answer_host_can_be(const gm_device *device, const gm_memory *memory) {
  const uintptr_t host = (uintptr_t)memory->host;
  if (!host) return true;
  const bool has_pointer =
      memory->type < device->type_count && device->types[memory->type].flags & GM_MEMORY_HOST_POINTER;
  return has_pointer && host <= UINTPTR_MAX - memory->bytes;
}

/* The flaw in the memory; NULL: there is none. */
static const char *answer_memory_flaw(const gm_device *device, const gm__answer_asked *asked, const gm_memory *memory) {
  if (memory->handle == 0) return "its handle is 0";
  if (memory->bytes < asked->bytes) return "it has fewer bytes";
  if (memory->bytes - asked->bytes > GM__ANSWER_UNIT_MOST) return "it has far more bytes";
  if (memory->address > UINT64_MAX - memory->bytes) return "it ends behind all addresses";
  if (asked->address && memory->address != asked->address) return "it is at another address";
  if (asked->address && memory->bytes != asked->bytes) return "it is not the whole range";
  if (asked->align && memory->address % asked->align) return "its address is not aligned as asked";
  if (memory->type != asked->type) return "it is of another type";
  if (!answer_host_can_be(device, memory)) return "its host pointer cannot be";
  return NULL;
}

gm_status gm__answer_check_memory(const gm_device *device, const gm__answer_asked *asked, gm_memory *memory,
                                  gm_error *err) {
  gm__answer_mend_bool(&memory->wrapped);
  const char *flaw = answer_memory_flaw(device, asked, memory);
  if (!flaw) return GM_OK;
  if (memory->handle) device->ops->memory_free(device->handle, memory, GM_CLOSE_NORMAL, NULL);
  return gm__fail(err, GM_ERR_DRIVER, asked->op, "backend %s answered success without the memory: %s",
                  device->info.backend, flaw);
}

gm_status gm__answer_check_range(const gm_device *device, uint64_t address, uint64_t bytes, uint64_t align,
                                 gm_error *err) {
  if (address != 0 && address % align == 0 && address <= UINT64_MAX - bytes) return GM_OK;
  return gm__fail(err, GM_ERR_DRIVER, "vmm_reserve", "backend %s gives 0x%" PRIx64 " as the address of a range",
                  device->info.backend, address);
}

gm_status gm__answer_check_wrapped(const gm_device *device, gm_memory *memory, gm_error *err) {
  memory->wrapped = true;
  const bool fits = memory->bytes && memory->address <= UINT64_MAX - memory->bytes;
  if (memory->handle && fits && answer_host_can_be(device, memory)) return GM_OK;
  if (memory->handle) device->ops->memory_free(device->handle, memory, GM_CLOSE_NORMAL, NULL);
  return gm__fail(err, GM_ERR_DRIVER, "memory_wrap", "backend %s answered success without the memory",
                  device->info.backend);
}

gm_status gm__answer_check_import(const gm_device *device, uint64_t bytes, gm_memory *memory, gm_error *err) {
  gm__answer_mend_bool(&memory->wrapped);
  const bool fits = memory->bytes >= bytes && memory->address <= UINT64_MAX - memory->bytes;
  if (memory->handle && fits && answer_host_can_be(device, memory)) return GM_OK;
  if (memory->handle) device->ops->share_close(device->handle, memory, GM_CLOSE_NORMAL, NULL);
  return gm__fail(err, GM_ERR_DRIVER, "share_import", "backend %s answered success without the memory",
                  device->info.backend);
}

gm_status gm__answer_check_word(const gm_device *device, const char *op, gm_status status, uint64_t word,
                                gm_error *err) {
  if (status != GM_OK || word) return status;
  return gm__fail(err, GM_ERR_DRIVER, op, "backend %s answered success with 0", device->info.backend);
}
