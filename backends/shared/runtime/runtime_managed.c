/* Managed memory: where it shall lie. The entries of the seam, group 19. */
#include "backends/shared/pointer_memory.h"
#include "backends/shared/runtime/runtime_entries.h"
#include "backends/shared/runtime/runtime_stream.h"
#include "core/base/error.h"

gm_status gm__runtime_managed_prefetch(void *device, void *stream, const gm_memory *memory, uint64_t offset,
                                       uint64_t bytes, gm_managed_place place, gm_backend_point *out, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime *api = opened->api;
  gm__runtime_job job;
  int code = GM__RUNTIME_SUCCESS;
  gm_status status = gm__pointer_check_managed(api->shown, &opened->info, memory, place, err);
  if (status == GM_OK) status = gm__runtime_begin(opened, stream, &job, err);
  if (status != GM_OK) return status;
  if (bytes) code = api->prefetch(opened, memory->address + offset, bytes, place, job.stream);
  return gm__runtime_end(opened, &job, code, api->prefetch_op, out, err);
}

/* Both APIs number the advices in this way. */
static const int managed_advices[][2] = {
    /* taken back, given */
    [GM_ADVICE_READ_MOSTLY] = {2, 1},
    [GM_ADVICE_STAY_ON] = {4, 3},
    [GM_ADVICE_ACCESSED_FROM] = {6, 5},
};

gm_status gm__runtime_managed_advise(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                     gm_managed_advice advice, gm_managed_place place, bool give, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime *api = opened->api;
  gm__runtime_scope scope;
  gm_status status = gm__pointer_check_managed(api->shown, &opened->info, memory, place, err);
  if (status != GM_OK || bytes == 0) return status;
  if ((unsigned)advice >= sizeof managed_advices / sizeof managed_advices[0]) {
    return gm__bad_argument(err, api->name, "`advice` is %d, none of gm_managed_advice", (int)advice);
  }
  status = gm__runtime_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const int code = api->advise(opened, memory->address + offset, bytes, managed_advices[advice][give], place);
  gm__runtime_leave(opened, &scope);
  return gm__runtime_answer(opened, code, api->advise_op, err);
}
