#include "tests/simulated/cuda/sim_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_identity.h"
#include "tests/simulated/cuda/sim_script.h"

static uint64_t device_charged[SIM_MAX_DEVICES];

bool sim_device_exists(int device) { return device >= 0 && device < sim_script_now.devices; }

static bool device_iommu_refuses(void) {
  const char *off = getenv("CUDA_DISABLE_IOMMU_ACS_P2P_CAPABILITY_CHECK");
  return sim_script_now.iommu && sim_script_now.version >= 13050 && !(off && strcmp(off, "1") == 0);
}

bool sim_device_reaches(int from, int to) {
  if (device_iommu_refuses()) return false;
  return from != to && sim_device_exists(from) && sim_device_exists(to) && !(sim_script_now.without & SIM_PEER);
}

uint64_t sim_device_used(int device) {
  return device_charged[device] + (uint64_t)sim_context_count(device) * sim_script_now.context_bytes;
}

uint64_t sim_device_left(int device) {
  uint64_t gone = sim_device_used(device) + sim_script_now.others[device];
  return gone < sim_script_now.total[device] ? sim_script_now.total[device] - gone : 0;
}

bool sim_device_has_room(int device, uint64_t bytes) { return bytes <= sim_device_left(device); }

bool sim_device_charge(int device, uint64_t bytes) {
  if (sim_script_now.fragment && bytes > sim_script_now.fragment) return false;
  if (sim_script_now.oom_after && sim_script_now.oom_done >= sim_script_now.oom_after) return false;
  if (!sim_device_has_room(device, bytes)) return false;
  sim_script_now.oom_done++;
  device_charged[device] += bytes;
  return true;
}

void sim_device_refund(int device, uint64_t bytes) { device_charged[device] -= bytes; }

CUresult cuInit(unsigned flags) {
  CUresult result = sim_enter(sim_id_cuInit);
  if (result) return result;
  return sim_leave(flags ? CUDA_ERROR_INVALID_VALUE : sim_call_init());
}

CUresult cuDriverGetVersion(int *out) {
  CUresult result = sim_enter(sim_id_cuDriverGetVersion);
  if (result) return result;
  if (!out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  *out = sim_script_now.version;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetCount(int *out) {
  CUresult result = sim_enter(sim_id_cuDeviceGetCount);
  if (result) return result;
  if (!out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  *out = sim_script_now.hostile_count ? sim_script_now.hostile_count : sim_script_now.devices;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGet(CUdevice *out, int ordinal) {
  CUresult result = sim_enter(sim_id_cuDeviceGet);
  if (result) return result;
  if (!out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if (!sim_device_exists(ordinal)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  *out = ordinal;
  return sim_leave(CUDA_SUCCESS);
}

/* Fills all of `out`; a hostile driver leaves out the terminator. */
static CUresult device_text(const char *text, bool hostile, char *out, int length) {
  if (!out || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(out, (size_t)length, "%s", text);
  if (hostile) memset(out, 'S', (size_t)length);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *out, int length, CUdevice device) {
  CUresult result = sim_enter(sim_id_cuDeviceGetName);
  if (result) return result;
  if (!sim_device_exists(device)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  char name[SIM_NAME_BYTES];
  sim_identity_name(device, sim_script_now.mig, name);
  return sim_leave(device_text(name, sim_script_now.hostile_names, out, length));
}

CUresult cuDeviceGetPCIBusId(char *out, int length, CUdevice device) {
  CUresult result = sim_enter(sim_id_cuDeviceGetPCIBusId);
  if (result) return result;
  if (!sim_device_exists(device)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  char pci[SIM_PCI_BYTES];
  sim_identity_pci(device, pci);
  return sim_leave(device_text(pci, sim_script_now.hostile_pci, out, length));
}

static CUresult device_by_pci(CUdevice *out, const char *id) {
  unsigned domain = 0, bus = 0, slot = 0;
  if (!out || !id || sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) return CUDA_ERROR_INVALID_VALUE;
  for (int device = 0; device < sim_script_now.devices; device++) {
    if (domain || slot || bus != sim_identity_bus(device)) continue;
    *out = device;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *id) {
  CUresult result = sim_enter(sim_id_cuDeviceGetByPCIBusId);
  if (result) return result;
  return sim_leave(device_by_pci(out, id));
}

static CUresult device_uuid(CUuuid *out, CUdevice device, bool mig) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_device_exists(device)) return CUDA_ERROR_INVALID_DEVICE;
  unsigned char bytes[16];
  sim_identity_uuid(device, mig, bytes);
  memcpy(out->bytes, bytes, sizeof bytes);
  return CUDA_SUCCESS;
}

/* The first form names the card even where the device is a part of it. */
CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device) {
  CUresult result = sim_enter(sim_id_cuDeviceGetUuid);
  if (result) return result;
  return sim_leave(device_uuid(out, device, false));
}

CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice device) {
  CUresult result = sim_enter(sim_id_cuDeviceGetUuid_v2);
  if (result) return result;
  return sim_leave(device_uuid(out, device, sim_script_now.mig));
}

/* Linux drivers have none. */
CUresult cuDeviceGetLuid(char *out, unsigned *mask, CUdevice device) {
  CUresult result = sim_enter(sim_id_cuDeviceGetLuid);
  if (result) return result;
  (void)out, (void)mask, (void)device;
  return sim_leave(CUDA_ERROR_NOT_SUPPORTED);
}

CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice device) {
  CUresult result = sim_enter(sim_id_cuDeviceTotalMem_v2);
  if (result) return result;
  if (!out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if (!sim_device_exists(device)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  *out = sim_script_now.total[device];
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuDeviceCanAccessPeer(int *out, CUdevice device, CUdevice peer) {
  CUresult result = sim_enter(sim_id_cuDeviceCanAccessPeer);
  if (result) return result;
  if (!out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if (!sim_device_exists(device) || !sim_device_exists(peer)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  *out = sim_device_reaches(device, peer);
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetP2PAttribute(int *out, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer) {
  CUresult result = sim_enter(sim_id_cuDeviceGetP2PAttribute);
  if (result) return result;
  if (!out || attribute < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
      attribute > CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED)
    return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if (!sim_device_exists(device) || !sim_device_exists(peer) || device == peer)
    return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  bool reaches = sim_device_reaches(device, peer);
  *out = attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : reaches;
  return sim_leave(CUDA_SUCCESS);
}

static CUresult device_memory_info(size_t *free_out, size_t *total_out) {
  if (!free_out || !total_out) return CUDA_ERROR_INVALID_VALUE;
  int device = sim_context_current()->device;
  uint64_t total = sim_script_now.total[device], left = sim_device_left(device);
  switch (sim_script_now.meminfo) {
    case SIM_INFO_FAIL: return CUDA_ERROR_UNKNOWN;
    case SIM_INFO_OOM: return CUDA_ERROR_OUT_OF_MEMORY;
    case SIM_INFO_ABOVE: left = total + (total >> 1); break;
    case SIM_INFO_ZERO: total = left = 0; break;
    case SIM_INFO_TRUE: break;
  }
  *free_out = left;
  *total_out = total;
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_out, size_t *total_out) {
  CUresult result = sim_enter(sim_id_cuMemGetInfo_v2);
  if (result) return result;
  return sim_leave(device_memory_info(free_out, total_out));
}
