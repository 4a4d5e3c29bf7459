#include "backends/cuda/cuda_managed.h"

#include "backends/cuda/cuda_mem.h"
#include "backends/cuda/cuda_status.h"
#include "backends/cuda/cuda_stream.h"
#include "core/base/error.h"

/* CUDA 12.2 gave both calls a location in place of a device number; the older forms are used where the newer ones are
 * not. */

static CUmemLocation cuda_managed_location(const gm__cuda_device *device, gm_managed_place place) {
  CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_HOST};
  if (place == GM_MANAGED_ON_DEVICE) {
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device->ordinal;
  }
  return location;
}

static CUdevice cuda_managed_device(const gm__cuda_device *device, gm_managed_place place) {
  return place == GM_MANAGED_ON_DEVICE ? device->ordinal : CU_DEVICE_CPU;
}

gm_status gm__cuda_managed_prefetch(void *device, void *stream, const gm_memory *memory, uint64_t offset,
                                    uint64_t bytes, gm_managed_place place, gm_backend_point *out, gm_error *err) {
  gm__cuda_device *opened = device;
  const gm__cuda_syms *cu = opened->cu;
  gm__cuda_job job;
  CUresult code = CUDA_SUCCESS;
  const CUdeviceptr at = memory->address + offset;
  gm_status status = gm__pointer_check_managed("CUDA", &opened->info, memory, place, err);
  if (status == GM_OK) status = gm__cuda_begin(opened, stream, &job, err);
  if (status != GM_OK) return status;
  if (bytes && cu->cuMemPrefetchAsync_v2) {
    code = cu->cuMemPrefetchAsync_v2(at, (size_t)bytes, cuda_managed_location(opened, place), 0, job.stream);
  } else if (bytes) {
    code = cu->cuMemPrefetchAsync(at, (size_t)bytes, cuda_managed_device(opened, place), job.stream);
  }
  return gm__cuda_end(opened, &job, code, "cuMemPrefetchAsync", out, err);
}

static const CUmem_advise cuda_advices[][2] = {
    /* taken back, given */
    [GM_ADVICE_READ_MOSTLY] = {CU_MEM_ADVISE_UNSET_READ_MOSTLY, CU_MEM_ADVISE_SET_READ_MOSTLY},
    [GM_ADVICE_STAY_ON] = {CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, CU_MEM_ADVISE_SET_PREFERRED_LOCATION},
    [GM_ADVICE_ACCESSED_FROM] = {CU_MEM_ADVISE_UNSET_ACCESSED_BY, CU_MEM_ADVISE_SET_ACCESSED_BY},
};

gm_status gm__cuda_managed_advise(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                  gm_managed_advice advice, gm_managed_place place, bool give, gm_error *err) {
  gm__cuda_device *opened = device;
  const gm__cuda_syms *cu = opened->cu;
  gm__cuda_scope scope;
  const CUdeviceptr at = memory->address + offset;
  gm_status status = gm__pointer_check_managed("CUDA", &opened->info, memory, place, err);
  if (status != GM_OK || bytes == 0) return status;
  if ((unsigned)advice >= sizeof cuda_advices / sizeof cuda_advices[0]) {
    return gm__bad_argument(err, "cuda", "`advice` is %d, none of gm_managed_advice", (int)advice);
  }
  status = gm__cuda_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const CUmem_advise said = cuda_advices[advice][give];
  const CUresult code = cu->cuMemAdvise_v2
                            ? cu->cuMemAdvise_v2(at, (size_t)bytes, said, cuda_managed_location(opened, place))
                            : cu->cuMemAdvise(at, (size_t)bytes, said, cuda_managed_device(opened, place));
  gm__cuda_leave(&scope);
  return code == CUDA_SUCCESS ? GM_OK : gm__cuda_device_fail(opened, code, "cuMemAdvise", err);
}
