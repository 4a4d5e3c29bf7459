#include "backends/hip/hip_info.h"

#include <stdio.h>
#include <string.h>

#include "backends/hip/hip_kernel.h"
#include "backends/hip/hip_status.h"
#include "backends/shared/pci_node.h"
#include "backends/shared/uuid.h"
#include "core/base/error.h"
#include "core/base/text_clean.h"

/* gm does not read hipDeviceProp_t: its layout changed between versions, and one entry has two names. gm reads
 * attributes, whose numbers stay since HIP 5.0, and the kernel's files. */

/* hipMalloc's memory begins on a page. HIP's documentation promises 256 for a device's base address. */
enum { HIP_ALIGNMENT = 256 };

static int hip_attribute(const gm__hip_driver *driver, int ordinal, hipDeviceAttribute_t what, int otherwise) {
  int value = otherwise;
  return driver->hip.hipDeviceGetAttribute(&value, what, ordinal) == hipSuccess ? value : otherwise;
}

/* A card without a number of its own answers a part of ROCm's placeholder "GPU-XX". */
static bool hip_uuid_usable(const hipUUID *uuid) {
  const bool placeholder = uuid->bytes[0] == 'X' && uuid->bytes[1] == 'X';
  return !placeholder && !gm__uuid_is_zero(uuid->bytes, sizeof uuid->bytes);
}

static void hip_identify(const gm__hip_driver *driver, gm_device_info *info) {
  hipUUID uuid = {{0}};
  const gm__hip_syms *hip = &driver->hip;
  const bool told = hip->hipDeviceGetUuid && hip->hipDeviceGetUuid(&uuid, (int)info->index) == hipSuccess;
  if (told && hip_uuid_usable(&uuid)) {
    memcpy(info->uuid, uuid.bytes, sizeof info->uuid);
  } else {
    gm__uuid_derive("hip", info->driver, info->name, info->index, info->uuid);
    info->uuid_derived = true;
  }
}

static void hip_pci(const gm__hip_driver *driver, gm_device_info *info) {
  char text[64] = "";
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (driver->hip.hipDeviceGetPCIBusId(text, (int)sizeof text - 1, (int)info->index) != hipSuccess) return;
  text[sizeof text - 1] = 0;
  const int read = sscanf(text, "%8x:%2x:%2x.%1x", &domain, &bus, &slot, &function);
  if (read < 3 || slot > 0x1f || function > 7 || (!domain && !bus && !slot)) return;
  snprintf(info->pci, sizeof info->pci, "%04x:%02x:%02x.%x", domain, bus, slot, function);
}

static bool hip_has_vmm(const gm__hip_syms *hip) {
  return hip->hipMemAddressReserve && hip->hipMemAddressFree && hip->hipMemCreate && hip->hipMemRelease &&
         hip->hipMemMap && hip->hipMemUnmap && hip->hipMemSetAccess && hip->hipMemGetAllocationGranularity;
}

/* gm offers managed memory only where the host may touch it while the device works. Otherwise it could not be called
 * coherent. */
static bool hip_has_managed(const gm__hip_driver *driver, int ordinal) {
  const gm__hip_syms *hip = &driver->hip;
  return hip->hipMallocManaged && hip->hipMemPrefetchAsync && hip->hipMemAdvise &&
         hip_attribute(driver, ordinal, hipDeviceAttributeManagedMemory, 0) > 0 &&
         hip_attribute(driver, ordinal, hipDeviceAttributeConcurrentManagedAccess, 0) > 0;
}

static bool hip_has_peer(const gm__hip_syms *hip) {
  return hip->hipDeviceCanAccessPeer && hip->hipDeviceEnablePeerAccess && hip->hipDeviceDisablePeerAccess &&
         hip->hipMemcpyPeerAsync;
}

/* HIP does not share an integrated device's memory, which is the host's. By descriptor it shares memory that was made
 * as virtual memory. */
uint32_t gm__hip_share_kinds(const gm__runtime_driver *base, int ordinal, const gm_device_info *info) {
  const gm__hip_driver *driver = (const gm__hip_driver *)base;
  const gm__hip_syms *hip = &driver->hip;
  uint32_t kinds = 0;
  if (hip_attribute(driver, ordinal, hipDeviceAttributeIntegrated, 0) > 0) return 0;
  if (hip->hipMemGetAddressRange && hip->hipIpcGetMemHandle && hip->hipIpcOpenMemHandle && hip->hipIpcCloseMemHandle) {
    kinds |= 1u << GM_SHARE_IPC;
  }
  if (info->capabilities & GM_CAP_VMM && hip->hipMemExportToShareableHandle && hip->hipMemImportFromShareableHandle) {
    kinds |= 1u << GM_SHARE_FD;
  }
  return kinds;
}

/* The capabilities that entries and attributes show. Opening the device tries those that can be tried. */
static uint64_t hip_capabilities(const gm__hip_driver *driver, int ordinal) {
  const gm__hip_syms *hip = &driver->hip;
  uint64_t has = GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_MAPPING | GM_CAP_ADOPT | GM_CAP_ADDRESS;
  if (driver->version >= GM__HIP_6 && hip_has_vmm(hip) &&
      hip_attribute(driver, ordinal, hipDeviceAttributeVirtualMemoryManagementSupported, 0) > 0) {
    has |= GM_CAP_VMM;
  }
  if (hip->hipHostRegister && hip->hipHostUnregister &&
      hip_attribute(driver, ordinal, hipDeviceAttributeHostRegisterSupported, 1) > 0) {
    has |= GM_CAP_REGISTRATION;
  }
  if (hip_has_managed(driver, ordinal)) has |= GM_CAP_MANAGED;
  if (hip_has_peer(hip)) has |= GM_CAP_PEER;
  return has;
}

static void hip_nature(const gm__hip_driver *driver, gm_device_info *info) {
  const int ordinal = (int)info->index;
  size_t total = 0;
  info->unified = hip_attribute(driver, ordinal, hipDeviceAttributeIntegrated, 0) > 0;
  info->type = info->unified ? GM_DEVICE_TYPE_INTEGRATED : GM_DEVICE_TYPE_DISCRETE;
  info->capabilities = hip_capabilities(driver, ordinal);
  if (gm__hip_share_kinds(&driver->base, ordinal, info)) info->capabilities |= GM_CAP_SHARE;
  if (driver->hip.hipDeviceTotalMem(&total, ordinal) == hipSuccess) info->total_bytes = total;
  info->max_alloc_bytes = info->total_bytes; /* HIP tells no other limit; 0 stays "not known" */
  info->numa_node = -1;
  if (info->simulated) return;
  gm__hip_kernel_arch(NULL, info->pci, info->capability, sizeof info->capability);
  info->numa_node = gm__pci_node(NULL, info->pci);
}

gm_status gm__hip_describe(const gm__runtime_driver *base, uint32_t ordinal, gm_device_info *out, gm_error *err) {
  const gm__hip_driver *driver = (const gm__hip_driver *)base;
  gm_device_info info = {.struct_size = sizeof info,
                         .api = GM_API_HIP,
                         .backend = "hip",
                         .vendor = "amd",
                         .index = ordinal,
                         .alignment = HIP_ALIGNMENT,
                         .map_atom_bytes = 1};
  const hipError_t code = driver->hip.hipDeviceGetName(info.name, (int)sizeof info.name - 1, (int)ordinal);
  if (code != hipSuccess) return gm__code_fail(&gm__hip_codes, err, (int)code, "hipDeviceGetName");
  info.name[sizeof info.name - 1] = 0;
  gm__text_clean(info.name);
  if (!info.name[0]) snprintf(info.name, sizeof info.name, "unnamed HIP device"); /* some APUs' */
  info.simulated = base->simulated;
  snprintf(info.driver, sizeof info.driver, "%s", info.simulated ? "simulated" : "rocm");
  snprintf(info.version, sizeof info.version, "%s", base->version);
  hip_identify(driver, &info);
  hip_pci(driver, &info);
  hip_nature(driver, &info);
  *out = info;
  return GM_OK;
}

void gm__hip_figures(const gm__runtime_driver *base, const gm_device_info *info, gm_raw_figures *out) {
  const gm__hip_driver *driver = (const gm__hip_driver *)base;
  size_t total = 0;
  *out = (gm_raw_figures){.struct_size = sizeof *out, .rules = GM_RAW_HIP};
  out->place = info->unified ? GM_RAW_INTEGRATED : GM_RAW_OWN_MEMORY;
  const bool clean = gm__hip_thread_clean(&driver->hip);
  const hipError_t code = driver->hip.hipDeviceTotalMem(&total, (int)info->index);
  gm__hip_thread_wipe(&driver->hip, clean);
  out->device_total = (gm_raw_reply){.state = code == hipSuccess ? GM_RAW_OK : GM_RAW_ERROR,
                                     .code = (int32_t)code,
                                     .total_bytes = total,
                                     .free_bytes = GM_UNKNOWN_BYTES};
}
