#include <stdio.h>
#include <string.h>

#include "simulated/opencl/sim_opencl.h"

/* The words of a device about itself. */

enum { NV_BUS = 0x4008, NV_SLOT = 0x4009, NV_DOMAIN = 0x400A, AMD_FREE = 0x4039, AMD_TOPOLOGY = 0x4037 };

static cl_ulong answer_real(const sim_device *device, cl_device_info what) {
  cl_ulong value = 0;
  sim.real.clGetDeviceInfo(device->real, what, sizeof value, &value, NULL);
  return value;
}

uint64_t sim_total(const sim_device *device) {
  return shim_script_number(&sim.script, "total", answer_real(device, CL_DEVICE_GLOBAL_MEM_SIZE));
}

uint64_t sim_largest(const sim_device *device) {
  if (shim_script_is(&sim.script, "maxalloc", "quarter")) return sim_total(device) / 4;
  return shim_script_number(&sim.script, "maxalloc", answer_real(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
}

static cl_uint answer_alignment_bits(const sim_device *device) {
  return (cl_uint)shim_script_number(&sim.script, "align_bits", answer_real(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN));
}

uint64_t sim_alignment(const sim_device *device) { return answer_alignment_bits(device) / 8; }

typedef struct answer { /* where it goes */
  size_t bytes;
  void *value;
  size_t *value_bytes;
} answer;

static cl_int answer_give(const answer *to, const void *what, size_t bytes) {
  if (shim_script_is(&sim.script, "hostile", "sizes")) { /* longer than anything there is */
    if (to->value_bytes) *to->value_bytes = SIZE_MAX / 2;
    return CL_SUCCESS;
  }
  return sim_reply(what, bytes, to->bytes, to->value, to->value_bytes);
}

static cl_int answer_uint(const answer *to, cl_uint value) { return answer_give(to, &value, sizeof value); }
static cl_int answer_ulong(const answer *to, cl_ulong value) { return answer_give(to, &value, sizeof value); }

static cl_int answer_text(const sim_device *device, cl_device_info what, const char *more, const answer *to) {
  char text[4096] = "";
  if (shim_script_is(&sim.script, "hostile", "names")) { /* no end mark */
    memset(text, 'A', sizeof text);
    return answer_give(to, text, sizeof text);
  }
  sim.real.clGetDeviceInfo(device->real, what, sizeof text / 2, text, NULL);
  strncat(text, more, sizeof text / 2 - 1);
  return answer_give(to, text, strlen(text) + 1);
}

static cl_int answer_extensions(const sim_device *device, const answer *to) {
  static const char *const words[][2] = {{"uuid", " cl_khr_device_uuid"},
                                         {"pci", " cl_khr_pci_bus_info"},
                                         {"usm", " cl_intel_unified_shared_memory"},
                                         {"nv_bus", " cl_nv_device_attribute_query"},
                                         {"amd_bus", " cl_amd_device_attribute_query"}};
  char more[256] = "";
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (shim_script_has(&sim.script, words[i][0])) strncat(more, words[i][1], sizeof more - strlen(more) - 1);
  }
  return answer_text(device, CL_DEVICE_EXTENSIONS, more, to);
}

/* uuid=N: sixteen bytes of N, and the device's own number in the last. */
static cl_int answer_uuid(const sim_device *device, const answer *to) {
  uint8_t uuid[16];
  memset(uuid, (int)shim_script_number(&sim.script, "uuid", 1), sizeof uuid);
  uuid[15] = (uint8_t)(uuid[15] + device->index);
  return answer_give(to, uuid, sizeof uuid);
}

static cl_uint answer_bus(const sim_device *device, const char *key) {
  return (cl_uint)shim_script_number(&sim.script, key, 1) + device->index;
}

/* In KiB; one value, or two: amd_free=K amd_block=K. */
static cl_int answer_amd_free(const answer *to) {
  const size_t values[2] = {(size_t)shim_script_number(&sim.script, "amd_free", 0),
                            (size_t)shim_script_number(&sim.script, "amd_block", 0)};
  return answer_give(to, values, shim_script_has(&sim.script, "amd_block") ? sizeof values : sizeof values[0]);
}

static cl_int answer_amd_topology(const sim_device *device, const answer *to) {
  uint8_t topology[24] = {1};
  topology[21] = (uint8_t)answer_bus(device, "amd_bus");
  return answer_give(to, topology, sizeof topology);
}

/* svm=BITS, usm_can=BITS: what the device says of memory at an address. True: *out is the answer. */
static bool answer_address(cl_device_info what, const answer *to, cl_int *out) {
  const shim_script *script = &sim.script;
  if (what == CL_DEVICE_SVM_CAPABILITIES && shim_script_has(script, "svm")) {
    *out = answer_ulong(to, shim_script_number(script, "svm", 0));
    return true;
  }
  const bool asked =
      what >= CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL && what <= CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL;
  if (!asked || !shim_script_has(script, "usm")) return false;
  *out = answer_ulong(to, shim_script_number(script, "usm_can", CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL));
  return true;
}

/* True: *out is the answer. Only what vendors add and the script asks for. */
static bool answer_vendor(const sim_device *device, cl_device_info what, const answer *to, cl_int *out) {
  const shim_script *script = &sim.script;
  if (what == CL_DEVICE_UUID_KHR && shim_script_has(script, "uuid")) {
    *out = answer_uuid(device, to);
  } else if (what == CL_DEVICE_PCI_BUS_INFO_KHR && shim_script_has(script, "pci")) {
    const cl_uint address[4] = {0, answer_bus(device, "pci"), 0, 0};
    *out = answer_give(to, address, sizeof address);
  } else if (what == NV_BUS && shim_script_has(script, "nv_bus")) {
    *out = answer_uint(to, answer_bus(device, "nv_bus"));
  } else if (what == NV_SLOT && shim_script_has(script, "nv_bus")) {
    *out = answer_uint(to, 0x0a); /* device 1, function 2 */
  } else if (what == NV_DOMAIN && shim_script_has(script, "nv_domain")) {
    *out = answer_uint(to, (cl_uint)shim_script_number(script, "nv_domain", 0));
  } else if (what == AMD_FREE && shim_script_has(script, "amd_free")) {
    *out = answer_amd_free(to);
  } else if (what == AMD_TOPOLOGY && shim_script_has(script, "amd_bus")) {
    *out = answer_amd_topology(device, to);
  } else {
    return false;
  }
  return true;
}

static cl_int answer_type(const sim_device *device, const answer *to) {
  cl_ulong type = answer_real(device, CL_DEVICE_TYPE);
  if (shim_script_is(&sim.script, "type", "gpu")) type = CL_DEVICE_TYPE_GPU;
  if (shim_script_is(&sim.script, "type", "nonsense")) type = UINT64_C(1) << 63;
  return answer_ulong(to, type);
}

cl_int sim_get_device_info(cl_device_id id, cl_device_info what, size_t bytes, void *value, size_t *value_bytes) {
  const sim_device *device = sim_device_of(id);
  const answer to = {bytes, value, value_bytes};
  const bool gpu = shim_script_is(&sim.script, "type", "gpu");
  cl_int code = CL_SUCCESS;
  if (answer_vendor(device, what, &to, &code) || answer_address(what, &to, &code)) return code;
  switch (what) {
    case CL_DEVICE_NAME: return answer_text(device, what, " (simulated)", &to);
    case CL_DEVICE_VENDOR: return answer_text(device, what, "", &to);
    case CL_DEVICE_EXTENSIONS: return answer_extensions(device, &to);
    case CL_DEVICE_TYPE: return answer_type(device, &to);
    case CL_DEVICE_GLOBAL_MEM_SIZE: return answer_ulong(&to, sim_total(device));
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return answer_ulong(&to, sim_largest(device));
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN: return answer_uint(&to, answer_alignment_bits(device));
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
      if (gpu) return answer_uint(&to, shim_script_has(&sim.script, "unified"));
      break;
    case CL_DEVICE_PLATFORM: return answer_give(&to, &device->platform, sizeof device->platform);
    default: break;
  }
  return sim.real.clGetDeviceInfo(device->real, what, bytes, value, value_bytes);
}
