#include "tests/simulated/cuda/sim_vmm.h"

#include <string.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_device.h"
#include "tests/simulated/cuda/sim_range.h"
#include "tests/simulated/cuda/sim_slab.h"
#include "tests/simulated/cuda/sim_span.h"

enum { VMM_MAPPING_MOST = 65536 };

static sim_slab vmm_slab = {.item_bytes = sizeof(sim_handle)};
static sim_span_list vmm_reserved = {.end = UINT64_MAX};

int sim_vmm_handles(void) { return vmm_slab.live_count; }
uint64_t sim_vmm_reservations(void) { return vmm_reserved.count; }

sim_handle *sim_vmm_handle(CUmemGenericAllocationHandle handle) {
  sim_handle *item = (sim_handle *)(uintptr_t)handle;
  return sim_slab_is_live(&vmm_slab, item) ? item : NULL;
}

CUmemGenericAllocationHandle sim_vmm_make(sim_phys *phys, uint64_t bytes, const CUmemAllocationProp *prop) {
  sim_handle *item = sim_slab_take(&vmm_slab);
  if (!item) {
    sim_phys_release(phys);
    return 0;
  }
  *item = (sim_handle){.phys = phys, .bytes = bytes, .references = 1, .prop = *prop};
  return (uintptr_t)item;
}

static void vmm_free_if_over(sim_handle *item) {
  if (item->references || item->mappings) return;
  sim_phys_release(item->phys);
  sim_slab_give(&vmm_slab, item);
}

static CUresult vmm_check_prop(const CUmemAllocationProp *prop) {
  if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && !sim_device_exists(prop->location.id))
    return CUDA_ERROR_INVALID_DEVICE;
  if (prop->location.type < CU_MEM_LOCATION_TYPE_DEVICE || prop->location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
    return CUDA_ERROR_INVALID_VALUE;
  if (prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  return CUDA_SUCCESS;
}

static uint64_t vmm_granularity(const CUmemAllocationProp *prop) {
  return prop->requestedHandleTypes ? sim_script_now.exportable_granularity : sim_script_now.granularity;
}

CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option) {
  CUresult result = sim_enter(sim_id_cuMemGetAllocationGranularity);
  if (result) return result;
  result = vmm_check_prop(prop);
  if (!result && (!out || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) result = CUDA_ERROR_INVALID_VALUE;
  if (!result) *out = sim_script_now.hostile_granularity ? 0 : vmm_granularity(prop);
  return sim_leave(result);
}

static CUresult vmm_create(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop,
                           unsigned long long flags) {
  CUresult result = vmm_check_prop(prop);
  if (result) return result;
  if (!out || flags || !bytes || bytes % vmm_granularity(prop)) return CUDA_ERROR_INVALID_VALUE;
  if (sim_script_now.hostile_null) return *out = 0, CUDA_SUCCESS;
  bool device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  sim_phys *phys = NULL;
  result = sim_phys_create(device ? prop->location.id : -1, bytes, prop->requestedHandleTypes != 0, &phys);
  if (result) return result;
  CUmemGenericAllocationHandle handle = sim_vmm_make(phys, bytes, prop);
  if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = handle;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop,
                     unsigned long long flags) {
  CUresult result = sim_enter(sim_id_cuMemCreate);
  if (result) return result;
  return sim_leave(vmm_create(out, bytes, prop, flags));
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  CUresult result = sim_enter(sim_id_cuMemRelease);
  if (result) return result;
  sim_handle *item = sim_vmm_handle(handle);
  if (!item || !item->references) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  item->references--;
  vmm_free_if_over(item);
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out, CUmemGenericAllocationHandle handle) {
  CUresult result = sim_enter(sim_id_cuMemGetAllocationPropertiesFromHandle);
  if (result) return result;
  const sim_handle *item = sim_vmm_handle(handle);
  if (!out || !item) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  *out = item->prop;
  return sim_leave(CUDA_SUCCESS);
}

static CUresult vmm_reserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr wish) {
  uint64_t granularity = sim_script_now.granularity;
  if (!out || !bytes || bytes % granularity || (alignment & (alignment - 1))) return CUDA_ERROR_INVALID_VALUE;
  if (alignment < granularity) alignment = granularity;
  if (sim_script_now.hostile_null) return *out = 0, CUDA_SUCCESS;
  uint64_t at = wish;
  bool got = wish && wish % alignment == 0 && sim_range_claim_at(wish, bytes);
  if (!got && !sim_range_claim(bytes, alignment, &at)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!sim_span_take_at(&vmm_reserved, at, bytes)) {
    sim_range_unclaim(at);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = at;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags) {
  CUresult result = sim_enter(sim_id_cuMemAddressReserve);
  if (result) return result;
  return sim_leave(flags ? CUDA_ERROR_INVALID_VALUE : vmm_reserve(out, bytes, alignment, wish));
}

/* The reservation that contains `at`, NULL: none. */
static const sim_span *vmm_reservation(uint64_t at) {
  for (size_t i = 0; i < vmm_reserved.count; i++) {
    const sim_span *span = &vmm_reserved.spans[i];
    if (at >= span->at && at - span->at < span->bytes) return span;
  }
  return NULL;
}

CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes) {
  CUresult result = sim_enter(sim_id_cuMemAddressFree);
  if (result) return result;
  const sim_span *span = vmm_reservation(at);
  if (!span || span->at != at || span->bytes != bytes || !sim_range_is_free(at, bytes))
    return sim_leave(CUDA_ERROR_INVALID_VALUE);
  sim_span_give(&vmm_reserved, at);
  sim_range_unclaim(at);
  return sim_leave(CUDA_SUCCESS);
}

static CUresult vmm_map(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle) {
  sim_handle *item = sim_vmm_handle(handle);
  if (!item || !item->references || offset || !bytes) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > item->bytes || bytes % vmm_granularity(&item->prop) || at % sim_script_now.granularity)
    return CUDA_ERROR_INVALID_VALUE;
  const sim_span *span = vmm_reservation(at);
  if (!span || bytes > span->bytes - (at - span->at) || !sim_range_is_free(at, bytes)) return CUDA_ERROR_INVALID_VALUE;
  sim_range like = {.at = at, .bytes = bytes, .kind = SIM_MAPPED, .phys = item->phys, .handle = handle};
  like.device = item->phys->device;
  if (!sim_range_add(&like)) return CUDA_ERROR_OUT_OF_MEMORY;
  sim_phys_retain(item->phys);
  item->mappings++;
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  CUresult result = sim_enter(sim_id_cuMemMap);
  if (result) return result;
  return sim_leave(flags ? CUDA_ERROR_INVALID_VALUE : vmm_map(at, bytes, offset, handle));
}

/* Is [at, at + bytes) made of whole mappings (`whole`), or covered by them? Fills `found`. */
static size_t vmm_mappings(uint64_t at, uint64_t bytes, sim_range **found) {
  size_t count = 0;
  for (uint64_t next = at; next < at + bytes;) {
    sim_range *range = sim_range_find(next);
    if (!range || range->kind != SIM_MAPPED || range->at != next || count == VMM_MAPPING_MOST) return 0;
    next = range->at + range->bytes;
    if (next > at + bytes) return 0;
    if (found) found[count] = range;
    count++;
  }
  return count;
}

/* Does not wait: work that still uses the memory faults. */
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes) {
  CUresult result = sim_enter(sim_id_cuMemUnmap);
  if (result) return result;
  static sim_range *found[VMM_MAPPING_MOST];
  size_t count = vmm_mappings(at, bytes, found);
  if (!count) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < count; i++) {
    sim_handle *item = sim_vmm_handle(found[i]->handle);
    sim_range_remove(found[i]);
    item->mappings--;
    vmm_free_if_over(item);
  }
  return sim_leave(CUDA_SUCCESS);
}

static CUresult vmm_set_access(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *list, size_t count) {
  static sim_range *found[VMM_MAPPING_MOST];
  size_t mappings = bytes && list && count ? vmm_mappings(at, bytes, found) : 0;
  if (!mappings) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    int device = list[i].location.id;
    if (list[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device_exists(device)) return CUDA_ERROR_INVALID_DEVICE;
    for (size_t m = 0; m < mappings; m++) {
      bool own = found[m]->device < 0 || found[m]->device == device;
      const sim_handle *item = sim_vmm_handle(found[m]->handle);
      if (sim_script_now.wsl && item->prop.allocFlags.gpuDirectRDMACapable) return CUDA_ERROR_NOT_SUPPORTED;
      if (!own && !sim_device_reaches(device, found[m]->device)) return CUDA_ERROR_INVALID_DEVICE;
      found[m]->access[device] = (unsigned char)list[i].flags;
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *list, size_t count) {
  CUresult result = sim_enter(sim_id_cuMemSetAccess);
  if (result) return result;
  return sim_leave(vmm_set_access(at, bytes, list, count));
}

CUresult cuMemGetAccess(unsigned long long *out, const CUmemLocation *place, CUdeviceptr at) {
  CUresult result = sim_enter(sim_id_cuMemGetAccess);
  if (result) return result;
  const sim_range *range = sim_range_find(at);
  bool good = out && place && range && range->kind == SIM_MAPPED && place->type == CU_MEM_LOCATION_TYPE_DEVICE &&
              sim_device_exists(place->id);
  if (good) *out = range->access[place->id];
  return sim_leave(good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address) {
  CUresult result = sim_enter(sim_id_cuMemRetainAllocationHandle);
  if (result) return result;
  const sim_range *range = sim_range_find((uintptr_t)address);
  if (!out || !range || range->kind != SIM_MAPPED) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  sim_vmm_handle(range->handle)->references++;
  *out = range->handle;
  return sim_leave(CUDA_SUCCESS);
}
