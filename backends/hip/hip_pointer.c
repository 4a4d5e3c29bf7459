#include "backends/hip/hip_pointer.h"

#include "backends/hip/hip_device.h"
#include "core/base/error.h"

/* HIP 6.0 moved the numbers up by one, to make room for memory that HIP does not know. Returns false for such memory.
 */
static bool pointer_kind(const gm__hip_driver *driver, const hipPointerAttribute_t *told, gm__runtime_facts *out) {
  const bool newer = driver->version >= GM__HIP_6;
  const int number = newer ? told->type : told->type + 1;
  out->managed = told->isManaged || (newer && number == 3);
  if (out->managed) return true;
  if (number == 1) out->kind = GM__RUNTIME_HOST;
  if (number == 2) out->kind = GM__RUNTIME_DEVICE;
  return out->kind != GM__RUNTIME_ELSEWHERE;
}

gm_status gm__hip_pointer_ask(gm__runtime_device *device, uint64_t pointer, gm__runtime_facts *out, gm_error *err) {
  hipPointerAttribute_t told = {.device = -1};
  const hipError_t code = gm__hip_of(device)->hipPointerGetAttributes(&told, gm__hip_at(pointer));
  if (code != hipSuccess && code != hipErrorInvalidValue) {
    return gm__runtime_fail(device, (int)code, "hipPointerGetAttributes", err);
  }
  gm__runtime_facts facts = {.ordinal = told.device, .host = (uintptr_t)told.hostPointer};
  if (code != hipSuccess || !pointer_kind((const gm__hip_driver *)device->driver, &told, &facts)) {
    return gm__bad_argument(err, "hipPointerGetAttributes", "`pointer` %#llx is no memory that HIP knows",
                            (unsigned long long)pointer);
  }
  *out = facts;
  return GM_OK;
}
