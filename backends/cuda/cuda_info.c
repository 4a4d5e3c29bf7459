#include "backends/cuda/cuda_info.h"

#include <stdio.h>
#include <string.h>

#include "backends/cuda/cuda_kernel.h"
#include "backends/cuda/cuda_status.h"
#include "backends/shared/pci_node.h"
#include "backends/shared/uuid.h"
#include "core/base/error.h"
#include "core/base/text_clean.h"

/* cuMemAlloc promises an alignment for any kind of variable. That is 256 on every device there is. */
enum { CUDA_ALIGNMENT = 256 };

int gm__cuda_attribute(const gm__cuda_driver *driver, CUdevice device, CUdevice_attribute what, int otherwise) {
  int value = otherwise;
  return driver->cu.cuDeviceGetAttribute(&value, what, device) == CUDA_SUCCESS ? value : otherwise;
}

/* The newer form tells a slice's own UUID, the older one its card's. */
static void cuda_identify(const gm__cuda_driver *driver, CUdevice device, gm_device_info *info) {
  CUuuid uuid = {{0}};
  unsigned int mask = 0;
  const gm__cuda_syms *cu = &driver->cu;
  CUresult code = cu->cuDeviceGetUuid_v2 ? cu->cuDeviceGetUuid_v2(&uuid, device) : CUDA_ERROR_NOT_SUPPORTED;
  if (code != CUDA_SUCCESS && cu->cuDeviceGetUuid) code = cu->cuDeviceGetUuid(&uuid, device);
  if (code == CUDA_SUCCESS) memcpy(info->uuid, uuid.bytes, sizeof info->uuid);
  if (gm__uuid_is_zero(info->uuid, sizeof info->uuid)) {
    gm__uuid_derive("cuda", info->driver, info->name, info->index, info->uuid);
    info->uuid_derived = true;
  }
  char luid[GM_LUID_BYTES] = {0};
  if (cu->cuDeviceGetLuid && cu->cuDeviceGetLuid(luid, &mask, device) == CUDA_SUCCESS) {
    memcpy(info->luid, luid, sizeof info->luid);
    info->has_luid = !gm__uuid_is_zero(info->luid, sizeof info->luid);
  }
}

static void cuda_pci(const gm__cuda_driver *driver, CUdevice device, gm_device_info *info) {
  const int domain = gm__cuda_attribute(driver, device, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0);
  const int bus = gm__cuda_attribute(driver, device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, -1);
  const int slot = gm__cuda_attribute(driver, device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, -1);
  const bool sane = domain >= 0 && bus >= 0 && bus <= 0xff && slot >= 0 && slot <= 0x1f;
  if (!sane || (!domain && !bus && !slot)) return;
  snprintf(info->pci, sizeof info->pci, "%04x:%02x:%02x.0", (unsigned)domain, (unsigned)bus, (unsigned)slot);
}

/* A device is a MIG slice if NVML knows its UUID as one, or if its name says so ("NVIDIA A100-SXM4-40GB MIG 1g.5gb").
 */
static void cuda_partition(const gm__cuda_driver *driver, gm_device_info *info) {
  if (!strstr(info->name, " MIG ") && !gm__nvml_is_slice(driver->nvml, info->uuid)) return;
  int length = snprintf(info->partition, sizeof info->partition, "MIG-");
  for (int i = 0; i < GM_UUID_BYTES; i++) {
    const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    length += snprintf(info->partition + length, sizeof info->partition - (size_t)length, "%s%02x", dash ? "-" : "",
                       info->uuid[i]);
  }
}

/* The host's node as CUDA tells it, else as the kernel does. */
static int32_t cuda_node(const gm__cuda_driver *driver, CUdevice device, const gm_device_info *info) {
  const int node = gm__cuda_attribute(driver, device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, -1);
  return node >= 0 ? node : gm__pci_node(NULL, info->pci);
}

static bool cuda_has_vmm(const gm__cuda_syms *cu) {
  return cu->cuMemAddressReserve && cu->cuMemAddressFree && cu->cuMemCreate && cu->cuMemRelease && cu->cuMemMap &&
         cu->cuMemUnmap && cu->cuMemSetAccess && cu->cuMemGetAllocationGranularity;
}

/* gm offers managed memory only where the host may touch it while the device works. Otherwise it could not be called
 * coherent. */
static bool cuda_has_managed(const gm__cuda_driver *driver, CUdevice device) {
  const gm__cuda_syms *cu = &driver->cu;
  return cu->cuMemAllocManaged && (cu->cuMemPrefetchAsync_v2 || cu->cuMemPrefetchAsync) &&
         (cu->cuMemAdvise_v2 || cu->cuMemAdvise) &&
         gm__cuda_attribute(driver, device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0) > 0 &&
         gm__cuda_attribute(driver, device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0) > 0;
}

static bool cuda_has_peer(const gm__cuda_syms *cu) {
  return cu->cuDeviceCanAccessPeer && cu->cuCtxEnablePeerAccess && cu->cuCtxDisablePeerAccess && cu->cuMemcpyPeerAsync;
}

/* CUDA shares no memory of integrated devices, and none under WSL2. By descriptor it shares memory that was made as
 * virtual memory. */
static uint32_t cuda_share_kinds(const gm__cuda_driver *driver, CUdevice device, bool vmm) {
  const gm__cuda_syms *cu = &driver->cu;
  uint32_t kinds = 0;
  if (driver->wddm || gm__cuda_attribute(driver, device, CU_DEVICE_ATTRIBUTE_INTEGRATED, 0) != 0) return 0;
  if (cu->cuMemGetAddressRange_v2 && cu->cuIpcGetMemHandle && cu->cuIpcOpenMemHandle_v2 && cu->cuIpcCloseMemHandle) {
    kinds |= 1u << GM_SHARE_IPC;
  }
  if (vmm && cu->cuMemExportToShareableHandle && cu->cuMemImportFromShareableHandle &&
      gm__cuda_attribute(driver, device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0) > 0) {
    kinds |= 1u << GM_SHARE_FD;
  }
  return kinds;
}

uint32_t gm__cuda_share_kinds(const gm__runtime_driver *driver, int ordinal, const gm_device_info *info) {
  return cuda_share_kinds((const gm__cuda_driver *)driver, ordinal, (info->capabilities & GM_CAP_VMM) != 0);
}

/* The capabilities that entries and attributes show. Opening the device tries those that can be tried. */
static uint64_t cuda_capabilities(const gm__cuda_driver *driver, CUdevice device) {
  const gm__cuda_syms *cu = &driver->cu;
  uint64_t has = GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_MAPPING | GM_CAP_ADOPT | GM_CAP_ADDRESS;
  if (cuda_has_vmm(cu) &&
      gm__cuda_attribute(driver, device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0) > 0) {
    has |= GM_CAP_VMM;
  }
  if (cu->cuMemHostRegister_v2 && cu->cuMemHostUnregister &&
      gm__cuda_attribute(driver, device, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1) > 0) {
    has |= GM_CAP_REGISTRATION;
  }
  if (cuda_has_managed(driver, device)) has |= GM_CAP_MANAGED;
  if (cuda_has_peer(cu)) has |= GM_CAP_PEER;
  if (cuda_share_kinds(driver, device, (has & GM_CAP_VMM) != 0)) has |= GM_CAP_SHARE;
  return has;
}

static void cuda_nature(const gm__cuda_driver *driver, CUdevice device, gm_device_info *info) {
  const int major = gm__cuda_attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  const int minor = gm__cuda_attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
  if (major > 0 && minor >= 0) snprintf(info->capability, sizeof info->capability, "sm_%d%d", major, minor);
  info->unified = gm__cuda_attribute(driver, device, CU_DEVICE_ATTRIBUTE_INTEGRATED, 0) > 0;
  info->type = info->unified ? GM_DEVICE_TYPE_INTEGRATED : GM_DEVICE_TYPE_DISCRETE;
  info->capabilities = cuda_capabilities(driver, device);
  size_t total = 0;
  if (driver->cu.cuDeviceTotalMem_v2(&total, device) == CUDA_SUCCESS) info->total_bytes = total;
  info->max_alloc_bytes = info->total_bytes; /* CUDA tells no other limit; 0 stays "not known" */
}

static gm_status cuda_name(const gm__cuda_driver *driver, uint32_t ordinal, CUdevice *out, gm_device_info *info,
                           gm_error *err) {
  CUresult code = driver->cu.cuDeviceGet(out, (int)ordinal);
  if (code != CUDA_SUCCESS) return gm__code_fail(&gm__cuda_codes, err, (int)code, "cuDeviceGet");
  code = driver->cu.cuDeviceGetName(info->name, (int)sizeof info->name - 1, *out);
  if (code != CUDA_SUCCESS) return gm__code_fail(&gm__cuda_codes, err, (int)code, "cuDeviceGetName");
  info->name[sizeof info->name - 1] = 0;
  gm__text_clean(info->name);
  if (!info->name[0]) snprintf(info->name, sizeof info->name, "unnamed CUDA device");
  return GM_OK;
}

gm_status gm__cuda_describe(const gm__runtime_driver *base, uint32_t ordinal, gm_device_info *out, gm_error *err) {
  const gm__cuda_driver *driver = (const gm__cuda_driver *)base;
  CUdevice device = 0;
  gm_device_info info = {.struct_size = sizeof info,
                         .api = GM_API_CUDA,
                         .backend = "cuda",
                         .vendor = "nvidia",
                         .index = ordinal,
                         .alignment = CUDA_ALIGNMENT,
                         .map_atom_bytes = 1};
  const gm_status status = cuda_name(driver, ordinal, &device, &info, err);
  if (status != GM_OK) return status;
  info.simulated = base->simulated;
  snprintf(info.driver, sizeof info.driver, "%s", info.simulated ? "simulated" : "nvidia");
  snprintf(info.version, sizeof info.version, "%s", base->version);
  cuda_identify(driver, device, &info);
  cuda_pci(driver, device, &info);
  cuda_partition(driver, &info);
  cuda_nature(driver, device, &info);
  info.numa_node = cuda_node(driver, device, &info);
  *out = info;
  return GM_OK;
}

void gm__cuda_figures(const gm__runtime_driver *base, const gm_device_info *info, gm_raw_figures *out) {
  const gm__cuda_driver *driver = (const gm__cuda_driver *)base;
  CUdevice device = 0;
  size_t total = 0;
  const bool slice = info->partition[0] != 0;
  const char *group = out->group;
  *out = (gm_raw_figures){.struct_size = sizeof *out, .rules = GM_RAW_CUDA};
  out->place = info->unified ? GM_RAW_INTEGRATED : GM_RAW_OWN_MEMORY;
  if (driver->wddm) out->flags |= GM_RAW_WDDM;
  if (slice) out->flags |= GM_RAW_PARTITION;
  CUresult code = driver->cu.cuDeviceGet(&device, (int)info->index);
  if (code == CUDA_SUCCESS) code = driver->cu.cuDeviceTotalMem_v2(&total, device);
  out->device_total.state = code == CUDA_SUCCESS ? GM_RAW_OK : GM_RAW_ERROR;
  out->device_total.code = (int32_t)code;
  out->device_total.total_bytes = total;
  out->device_total.free_bytes = GM_UNKNOWN_BYTES;
  if (info->uuid_derived) return;
  gm__nvml_figures(driver->nvml, info->uuid, slice, &out->nvml);
  if (!slice) gm__nvml_limits(driver->nvml, info->uuid, group, &out->limits);
}
