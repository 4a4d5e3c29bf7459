#include "backends/opencl/opencl_entries.h"
#include "backends/opencl/opencl_mem.h"
#include "backends/opencl/opencl_point.h"
#include "backends/opencl/opencl_queue.h"
#include "core/base/error.h"

static gm_status managed_check(const gm__opencl_device *device, const gm_memory *memory, gm_managed_place place,
                               gm_error *err) {
  if (!(device->info.capabilities & GM_CAP_MANAGED)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "opencl", "%s has no memory that migrates", device->info.name);
  }
  if (gm__opencl_memory_of(memory)->kind != GM__OPENCL_USM_SHARED) {
    return gm__bad_argument(err, "opencl", "only shared unified memory migrates");
  }
  if (place == GM_MANAGED_ON_DEVICE || place == GM_MANAGED_ON_HOST) return GM_OK;
  return gm__bad_argument(err, "opencl", "`place` is %d, none of gm_managed_place", (int)place);
}

/* A prefetch is a hint. Drivers of the extension before version 1.2 refuse flags of 0 (to the device). No driver must
 * know the way to the host. After such a refusal nothing moves, and that is no failure. */
gm_status gm__opencl_managed_prefetch(void *device, void *stream, const gm_memory *memory, uint64_t offset,
                                      uint64_t bytes, gm_managed_place place, gm_backend_point *out, gm_error *err) {
  gm__opencl_device *opened = device;
  gm__opencl_queue queue;
  cl_int code = CL_SUCCESS;
  gm_status status = managed_check(opened, memory, place, err);
  if (status == GM_OK) status = gm__opencl_queue_of(opened, stream, &queue, err);
  if (status != GM_OK) return status;
  if (bytes > 0) {
    const void *from = (const void *)(gm__opencl_memory_of(memory)->pointer + (uintptr_t)offset);
    const cl_mem_migration_flags flags = place == GM_MANAGED_ON_HOST ? CL_MIGRATE_MEM_OBJECT_HOST : 0;
    code = opened->kinds.usm.clEnqueueMigrateMemINTEL(queue.handle, from, (size_t)bytes, flags, 0, NULL, NULL);
  }
  if (code != CL_SUCCESS && code != CL_INVALID_VALUE) {
    return gm__opencl_device_fail(opened, code, false, "clEnqueueMigrateMemINTEL", err);
  }
  return gm__opencl_point_mark(opened, queue.handle, out, err);
}

/* The advice is checked and then ignored: the extension has a call for advice, and defines no advice. */
gm_status gm__opencl_managed_advise(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                    gm_managed_advice advice, gm_managed_place place, bool give, gm_error *err) {
  (void)offset;
  (void)bytes;
  (void)give;
  if ((unsigned)advice > GM_ADVICE_ACCESSED_FROM) {
    return gm__bad_argument(err, "opencl", "`advice` is %d, none of gm_managed_advice", (int)advice);
  }
  return managed_check(device, memory, place, err);
}
