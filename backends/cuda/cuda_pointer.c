#include "backends/cuda/cuda_pointer.h"

#include "backends/cuda/cuda_device.h"
#include "core/base/error.h"

gm_status gm__cuda_pointer_ask(gm__runtime_device *device, uint64_t pointer, gm__runtime_facts *out, gm_error *err) {
  const gm__cuda_syms *cu = gm__cuda_of(device);
  gm__runtime_facts facts = {.kind = GM__RUNTIME_ELSEWHERE, .ordinal = -1};
  unsigned int kind = 0;
  int managed = 0;
  void *host = NULL;
  CUresult code = cu->cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer);
  if (code == CUDA_ERROR_INVALID_VALUE) {
    return gm__bad_argument(err, "cuPointerGetAttribute", "`pointer` %#llx is no memory that CUDA knows",
                            (unsigned long long)pointer);
  }
  if (code == CUDA_SUCCESS) {
    code = cu->cuPointerGetAttribute(&facts.ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer);
  }
  if (code != CUDA_SUCCESS) return gm__runtime_fail(device, (int)code, "cuPointerGetAttribute", err);
  if (kind == CU_MEMORYTYPE_HOST) facts.kind = GM__RUNTIME_HOST;
  if (kind == CU_MEMORYTYPE_DEVICE) facts.kind = GM__RUNTIME_DEVICE;
  /* Some memory has no answer to these two. */
  code = cu->cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer);
  facts.managed = code == CUDA_SUCCESS && managed;
  code = cu->cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer);
  if (code == CUDA_SUCCESS) facts.host = (uintptr_t)host;
  *out = facts;
  return GM_OK;
}
