#include "backends/opencl/opencl_identity.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "backends/opencl/opencl_query.h"
#include "backends/shared/uuid.h"

/* Platform names as their drivers give them. A longer name stands before a shorter one with the same beginning.
 * `vendor` NULL: the device tells its vendor. */
typedef struct opencl_platform_word {
  const char *begins;
  const char *driver;
  const char *vendor;
} opencl_platform_word;

static const opencl_platform_word opencl_platform_words[] = {
    {"Portable Computing Language", "pocl", "pocl"},
    {"rusticl", "rusticl", NULL},
    {"Clover", "clover", NULL},
    {"NVIDIA CUDA", "nvidia", "nvidia"},
    {"AMD Accelerated Parallel Processing", "rocm", "amd"},
    {"Intel(R) OpenCL Graphics", "neo", "intel"},
    {"Intel(R) OpenCL HD Graphics", "neo", "intel"},
    {"Intel(R) OpenCL", "intel_cpu", "intel"},
    {"Oclgrind", "oclgrind", "oclgrind"},
    {"QUALCOMM", "qualcomm", "qualcomm"},
    {"ARM Platform", "arm", "arm"},
    {"Apple", "apple", "apple"},
};

typedef struct opencl_vendor_word {
  uint32_t id; /* PCI vendor number */
  const char *word;
  const char *text; /* part of the vendor's text, where the number is unknown */
} opencl_vendor_word;

static const opencl_vendor_word opencl_vendor_words[] = {
    {0x10de, "nvidia", "NVIDIA"}, {0x1002, "amd", "Advanced Micro"},
    {0x1022, "amd", "AMD"},       {0x8086, "intel", "Intel"},
    {0x13b5, "arm", "ARM"},       {0x5143, "qualcomm", "QUALCOMM"},
    {0x10005, "mesa", "Mesa"},    {0x1010, "imagination", "Imagination"},
};

/* The first word of `text` in lower case. */
static void opencl_first_word(const char *text, char *out, size_t capacity) {
  size_t length = 0;
  for (; isalnum((unsigned char)*text) && length + 1 < capacity; text++) {
    out[length++] = (char)tolower((unsigned char)*text);
  }
  snprintf(out + length, capacity - length, "%s", length ? "" : "unknown");
}

static void opencl_vendor(uint32_t id, const char *text, char *out, size_t capacity) {
  const size_t count = sizeof opencl_vendor_words / sizeof opencl_vendor_words[0];
  for (size_t i = 0; i < count; i++) {
    if (opencl_vendor_words[i].id == id) {
      snprintf(out, capacity, "%s", opencl_vendor_words[i].word);
      return;
    }
  }
  for (size_t i = 0; i < count; i++) {
    if (strstr(text, opencl_vendor_words[i].text)) {
      snprintf(out, capacity, "%s", opencl_vendor_words[i].word);
      return;
    }
  }
  opencl_first_word(text, out, capacity);
}

void gm__opencl_words(const char *platform, uint32_t vendor_id, const char *vendor, gm_device_info *info) {
  for (size_t i = 0; i < sizeof opencl_platform_words / sizeof opencl_platform_words[0]; i++) {
    const opencl_platform_word *known = &opencl_platform_words[i];
    if (strncmp(platform, known->begins, strlen(known->begins)) != 0) continue;
    snprintf(info->driver, sizeof info->driver, "%s", known->driver);
    if (known->vendor) {
      snprintf(info->vendor, sizeof info->vendor, "%s", known->vendor);
    } else {
      opencl_vendor(vendor_id, vendor, info->vendor, sizeof info->vendor);
    }
    return;
  }
  opencl_first_word(platform, info->driver, sizeof info->driver);
  opencl_vendor(vendor_id, vendor, info->vendor, sizeof info->vendor);
}

enum { OPENCL_HAS_UUID = 1, OPENCL_HAS_PCI = 2, OPENCL_HAS_AMD = 4, OPENCL_HAS_NVIDIA = 8 };

static const char *const opencl_identity_extensions[] = {
    "cl_khr_device_uuid", "cl_khr_pci_bus_info", "cl_amd_device_attribute_query", "cl_nv_device_attribute_query"};

static void opencl_read_uuid(const gm__opencl_driver *driver, cl_device_id id, gm_device_info *info) {
  gm__opencl_device_value(driver, id, CL_DEVICE_UUID_KHR, info->uuid, sizeof info->uuid);
  const bool valid = gm__opencl_device_uint(driver, id, CL_DEVICE_LUID_VALID_KHR, 0) != 0;
  info->has_luid = valid && gm__opencl_device_value(driver, id, CL_DEVICE_LUID_KHR, info->luid, sizeof info->luid) == 0;
}

typedef struct opencl_pci { /* the layout of cl_khr_pci_bus_info */
  cl_uint domain, bus, device, function;
} opencl_pci;

static bool opencl_pci_plausible(const opencl_pci *pci) {
  if (pci->bus > 0xff || pci->device > 0x1f || pci->function > 7) return false;
  return pci->domain || pci->bus || pci->device || pci->function;
}

static bool opencl_pci_khr(const gm__opencl_driver *driver, cl_device_id id, gm_device_info *info) {
  opencl_pci pci;
  if (gm__opencl_device_value(driver, id, CL_DEVICE_PCI_BUS_INFO_KHR, &pci, sizeof pci) != CL_SUCCESS) return false;
  if (!opencl_pci_plausible(&pci)) return false;
  snprintf(info->pci, sizeof info->pci, "%04x:%02x:%02x.%x", pci.domain, pci.bus, pci.device, pci.function);
  return true;
}

/* NVIDIA's slot number holds device and function. */
static bool opencl_pci_nvidia(const gm__opencl_driver *driver, cl_device_id id, gm_device_info *info) {
  enum { /* not in Khronos' headers */ OPENCL_NV_BUS = 0x4008, OPENCL_NV_SLOT = 0x4009, OPENCL_NV_DOMAIN = 0x400A };
  cl_uint slot = 0;
  opencl_pci pci = {0};
  if (gm__opencl_device_value(driver, id, OPENCL_NV_BUS, &pci.bus, sizeof pci.bus) != CL_SUCCESS) return false;
  if (gm__opencl_device_value(driver, id, OPENCL_NV_SLOT, &slot, sizeof slot) != CL_SUCCESS) return false;
  const bool full = gm__opencl_device_value(driver, id, OPENCL_NV_DOMAIN, &pci.domain, sizeof pci.domain) == CL_SUCCESS;
  pci.device = slot >> 3;
  pci.function = slot & 7;
  if (!opencl_pci_plausible(&pci)) return false;
  char domain[16] = ""; /* an older driver does not tell it, and the address stays partial */
  if (full) snprintf(domain, sizeof domain, "%04x:", pci.domain);
  snprintf(info->pci, sizeof info->pci, "%s%02x:%02x.%x", domain, pci.bus, pci.device, pci.function);
  return true;
}

/* AMD's topology has no domain, so the address is partial. It has a type of four bytes, seventeen unused bytes, then
 * bus, device and function. */
static void opencl_pci_amd(const gm__opencl_driver *driver, cl_device_id id, gm_device_info *info) {
  uint8_t topology[24];
  cl_uint type = 0;
  if (gm__opencl_device_value(driver, id, CL_DEVICE_TOPOLOGY_AMD, topology, sizeof topology) != CL_SUCCESS) return;
  memcpy(&type, topology, sizeof type);
  const opencl_pci pci = {0, topology[21], topology[22], topology[23]};
  if (type != CL_DEVICE_TOPOLOGY_TYPE_PCIE_AMD || !opencl_pci_plausible(&pci)) return;
  snprintf(info->pci, sizeof info->pci, "%02x:%02x.%x", pci.bus, pci.device, pci.function);
}

gm_status gm__opencl_identify(const gm__opencl_driver *driver, cl_device_id id, gm_device_info *info, gm_error *err) {
  uint32_t has = 0;
  const gm_status status =
      gm__opencl_device_extensions(driver, id, opencl_identity_extensions,
                                   sizeof opencl_identity_extensions / sizeof opencl_identity_extensions[0], &has, err);
  if (status != GM_OK) return status;
  if (has & OPENCL_HAS_UUID) opencl_read_uuid(driver, id, info);
  if ((has & OPENCL_HAS_PCI) && opencl_pci_khr(driver, id, info)) return GM_OK;
  if ((has & OPENCL_HAS_NVIDIA) && opencl_pci_nvidia(driver, id, info)) return GM_OK;
  if (has & OPENCL_HAS_AMD) opencl_pci_amd(driver, id, info);
  return GM_OK;
}

void gm__opencl_derive_uuid(gm_device_info *info, uint32_t ordinal) {
  if (!gm__uuid_is_zero(info->uuid, sizeof info->uuid)) return;
  gm__uuid_derive(info->backend, info->driver, info->name, ordinal, info->uuid);
  info->uuid_derived = true;
}
