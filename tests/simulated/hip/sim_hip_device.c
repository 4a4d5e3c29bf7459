/* Devices: those of the simulated CUDA, under HIP's names. SIM_HIP_VERSION is the library's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulated/cuda/sim_control.h"
#include "tests/simulated/hip/sim_hip_thread.h"

/* Without a device HIP says that the device is invalid. */
hipError_t hipInit(unsigned int flags) {
  const CUresult result = cuInit(flags);
  return sim_hip_answer(result == CUDA_ERROR_NO_DEVICE ? CUDA_ERROR_INVALID_DEVICE : result);
}

hipError_t hipRuntimeGetVersion(int *version) {
  if (!version) return sim_hip_answer(CUDA_ERROR_INVALID_VALUE);
  *version = SIM_HIP_VERSION;
  return hipSuccess;
}

hipError_t hipGetDeviceCount(int *count) {
  CUresult result = cuInit(0);
  if (!result) result = cuDeviceGetCount(count);
  return sim_hip_answer(result);
}

hipError_t hipDeviceGetName(char *name, int capacity, hipDevice_t device) {
  char text[64];
  const CUresult result = cuDeviceGetName(text, (int)sizeof text, device);
  if (result || !name || capacity <= 0) return sim_hip_answer(result ? result : CUDA_ERROR_INVALID_VALUE);
  if (memchr(text, 0, sizeof text)) {
    snprintf(name, (size_t)capacity, "%s (HIP)", text);
  } else {
    memset(name, text[0], (size_t)capacity); /* scripted: a name without an end */
  }
  return hipSuccess;
}

static CUdevice_attribute device_attribute(hipDeviceAttribute_t what) {
  const bool new = SIM_HIP_VERSION >= 60000000;
  switch (what) {
    case hipDeviceAttributeConcurrentManagedAccess: return CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
    case hipDeviceAttributeIntegrated: return CU_DEVICE_ATTRIBUTE_INTEGRATED;
    case hipDeviceAttributeManagedMemory: return CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY;
    case hipDeviceAttributeVirtualMemoryManagementSupported:
      return new ? CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED : 0;
    case hipDeviceAttributeHostRegisterSupported: return new ? CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED : 0;
  }
  return 0;
}

hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t what, int device) {
  const CUdevice_attribute attribute = device_attribute(what);
  if (!attribute) return sim_hip_answer(CUDA_ERROR_INVALID_VALUE);
  return sim_hip_answer(cuDeviceGetAttribute(value, attribute, device));
}

hipError_t hipDeviceGetPCIBusId(char *address, int capacity, int device) {
  return sim_hip_answer(cuDeviceGetPCIBusId(address, capacity, device));
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
  return sim_hip_answer(cuDeviceTotalMem_v2(bytes, device));
}

/* SIMHIP_UUID=none: what is left of the "GPU-XX" of a card without a number. */
hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device) {
  CUuuid own;
  const CUresult result = cuDeviceGetUuid(&own, device);
  const char *wanted = getenv("SIMHIP_UUID");
  if (result) return sim_hip_answer(result);
  memcpy(uuid->bytes, own.bytes, sizeof own.bytes);
  if (wanted && strcmp(wanted, "none") == 0) memcpy(uuid->bytes, "XX\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
  return hipSuccess;
}

/* Drops the lines "contexts N" and "primary_references N"; what is left are leaks. */
static int device_leaks(char *reply, size_t capacity) {
  char all[2048];
  size_t length = 0;
  if (reply && capacity) reply[0] = 0;
  if (simCudaControl("leaks", all, sizeof all) != 2) return 0;
  int answer = 0;
  for (char *line = strtok(all, "\n"); line; line = strtok(NULL, "\n")) {
    if (strncmp(line, "contexts ", 9) == 0 || strncmp(line, "primary_references ", 19) == 0) continue;
    answer = 2;
    if (!reply || length >= capacity) continue;
    const int more = snprintf(reply + length, capacity - length, "%s\n", line);
    length += more > 0 ? (size_t)more : 0;
  }
  return answer;
}

uint64_t simHipJournal(gm__link_entry *out, uint64_t capacity) { return simCudaJournal(out, capacity); }

int simHipControl(const char *command, char *reply, size_t capacity) {
  if (command && strcmp(command, "leaks") == 0) return device_leaks(reply, capacity);
  return simCudaControl(command, reply, capacity);
}
