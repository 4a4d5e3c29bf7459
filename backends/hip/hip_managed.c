#include "backends/hip/hip_managed.h"

#include "backends/hip/hip_mem.h"
#include "backends/hip/hip_stream.h"
#include "core/base/error.h"

/* On an integrated device managed memory is charged to the process's group, and hipMalloc's is not: what fits as one
 * need not fit as the other. */

static const void *hip_managed_at(const gm_memory *memory, uint64_t offset) {
  return (const void *)(uintptr_t)(memory->address + offset);
}

static int hip_managed_place(const gm__hip_device *device, gm_managed_place place) {
  return place == GM_MANAGED_ON_DEVICE ? (int)device->info.index : hipCpuDeviceId;
}

gm_status gm__hip_managed_prefetch(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                   gm_managed_place place, gm_backend_point *out, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_job job;
  hipError_t code = hipSuccess;
  gm_status status = gm__pointer_check_managed("HIP", &opened->info, memory, place, err);
  if (status == GM_OK) status = gm__hip_begin(opened, stream, &job, err);
  if (status != GM_OK) return status;
  if (bytes) {
    code = opened->hip->hipMemPrefetchAsync(hip_managed_at(memory, offset), (size_t)bytes,
                                            hip_managed_place(opened, place), job.stream);
  }
  return gm__hip_end(opened, &job, code, "hipMemPrefetchAsync", out, err);
}

static const hipMemoryAdvise hip_advices[][2] = {
    /* taken back, given */
    [GM_ADVICE_READ_MOSTLY] = {hipMemAdviseUnsetReadMostly, hipMemAdviseSetReadMostly},
    [GM_ADVICE_STAY_ON] = {hipMemAdviseUnsetPreferredLocation, hipMemAdviseSetPreferredLocation},
    [GM_ADVICE_ACCESSED_FROM] = {hipMemAdviseUnsetAccessedBy, hipMemAdviseSetAccessedBy},
};

gm_status gm__hip_managed_advise(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                 gm_managed_advice advice, gm_managed_place place, bool give, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  gm_status status = gm__pointer_check_managed("HIP", &opened->info, memory, place, err);
  if (status != GM_OK || bytes == 0) return status;
  if ((unsigned)advice >= sizeof hip_advices / sizeof hip_advices[0]) {
    return gm__bad_argument(err, "hip", "`advice` is %d, none of gm_managed_advice", (int)advice);
  }
  status = gm__hip_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const hipError_t code = opened->hip->hipMemAdvise(hip_managed_at(memory, offset), (size_t)bytes,
                                                    hip_advices[advice][give], hip_managed_place(opened, place));
  if (code != hipSuccess) status = gm__hip_device_fail(opened, code, "hipMemAdvise", err);
  gm__hip_leave(&scope);
  return status;
}
