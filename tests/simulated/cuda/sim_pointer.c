/* The driver's knowledge of an address. */
#include <string.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_pool.h"
#include "tests/simulated/cuda/sim_range.h"

typedef union pointer_value {
  CUcontext context;
  unsigned number;
  int ordinal;
  unsigned long long wide;
  CUdeviceptr address;
  CUmemoryPool pool;
  unsigned char flag;
} pointer_value;

static bool pointer_on_host(const sim_range *range) {
  return range->kind == SIM_HOST || range->kind == SIM_REGISTERED || range->kind == SIM_SHARED;
}

/* Bytes of the answer; 0: there is no such attribute, or none for this memory. */
static size_t pointer_ask(const sim_range *range, CUpointer_attribute attribute, CUdeviceptr address,
                          pointer_value *out) {
  bool host = pointer_on_host(range);
  *out = (pointer_value){0};
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return out->context = range->context, sizeof out->context;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      out->number = host && range->kind != SIM_SHARED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return sizeof out->number;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return out->address = address, sizeof out->address;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: return out->address = address, host ? sizeof out->address : 0;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return sizeof out->flag;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return out->wide = range->id, sizeof out->wide;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return out->flag = range->kind == SIM_SHARED, sizeof out->flag;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return out->ordinal = range->device, sizeof out->ordinal;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return out->flag = range->kind == SIM_DEVICE, sizeof out->flag;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return out->address = range->at, sizeof out->address;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return out->wide = range->bytes, sizeof out->wide;
    case CU_POINTER_ATTRIBUTE_MAPPED: return out->flag = 1, sizeof out->flag;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return sizeof out->wide;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      out->number = range->kind == SIM_MAPPED ? range->access[sim_context_current()->device] : 3;
      return sizeof out->number;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return out->pool = range->pool, sizeof out->pool;
    default: return 0;
  }
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr address) {
  CUresult result = sim_enter(sim_id_cuPointerGetAttribute);
  if (result) return result;
  const sim_range *range = sim_range_find(address);
  if (!out || !range || range->freed) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  pointer_value value;
  size_t bytes = pointer_ask(range, attribute, address, &value);
  if (!bytes) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  memcpy(out, &value, bytes);
  return sim_leave(CUDA_SUCCESS);
}

/* Every answer for an unknown address is 0, except for the ordinal, and the call succeeds. */
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **out, CUdeviceptr address) {
  CUresult result = sim_enter(sim_id_cuPointerGetAttributes);
  if (result) return result;
  if (!count || !attributes || !out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  static const sim_range nothing = {.device = -2};
  const sim_range *range = sim_range_find(address);
  bool known = range && !range->freed;
  for (unsigned i = 0; i < count; i++) {
    pointer_value value;
    size_t bytes = pointer_ask(known ? range : &nothing, attributes[i], address, &value);
    if (!known && attributes[i] != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) value = (pointer_value){0};
    if (bytes) memcpy(out[i], &value, bytes);
  }
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address) {
  CUresult result = sim_enter(sim_id_cuPointerSetAttribute);
  if (result) return result;
  const sim_range *range = sim_range_find(address);
  bool good = value && range && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
  return sim_leave(good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
