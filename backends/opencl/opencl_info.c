#include "backends/opencl/opencl_info.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/opencl/opencl_query.h"

static gm_device_type opencl_type(const gm__opencl_driver *driver, cl_device_id id, bool unified) {
  const uint64_t type = gm__opencl_device_u64(driver, id, CL_DEVICE_TYPE, 0);
  if (type & CL_DEVICE_TYPE_CPU) return GM_DEVICE_TYPE_CPU;
  if (type & CL_DEVICE_TYPE_GPU) return unified ? GM_DEVICE_TYPE_INTEGRATED : GM_DEVICE_TYPE_DISCRETE;
  return GM_DEVICE_TYPE_UNKNOWN;
}

static bool opencl_unified(const gm__opencl_driver *driver, cl_device_id id) {
  if (gm__opencl_device_uint(driver, id, CL_DEVICE_HOST_UNIFIED_MEMORY, CL_FALSE)) return true;
  return gm__opencl_device_uint(driver, id, CL_DEVICE_INTEGRATED_MEMORY_NV, CL_FALSE) != CL_FALSE;
}

/* CL_DEVICE_MEM_BASE_ADDR_ALIGN is in bits. Without a sane answer gm takes a page: no driver asks for more. */
static uint64_t opencl_alignment(const gm__opencl_driver *driver, cl_device_id id) {
  const uint64_t bits = gm__opencl_device_uint(driver, id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 0);
  const uint64_t bytes = bits / 8, most = 1u << 20, otherwise = 4096;
  const bool sane = bits % 8 == 0 && bytes > 0 && bytes <= most && (bytes & (bytes - 1)) == 0;
  return sane ? bytes : otherwise;
}

static void opencl_sizes(const gm__opencl_driver *driver, cl_device_id id, gm_device_info *info) {
  info->total_bytes = gm__opencl_device_u64(driver, id, CL_DEVICE_GLOBAL_MEM_SIZE, 0);
  info->max_alloc_bytes = gm__opencl_device_u64(driver, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0);
  if (info->total_bytes && (info->max_alloc_bytes == 0 || info->max_alloc_bytes > info->total_bytes)) {
    info->max_alloc_bytes = info->total_bytes;
  }
  info->alignment = opencl_alignment(driver, id);
  info->map_atom_bytes = 1;
  const long page = sysconf(_SC_PAGESIZE);
  if (info->type == GM_DEVICE_TYPE_CPU && page > 0) info->page_bytes = (uint64_t)page;
}

/* The driver's text is "OpenCL 3.0" and more. gm keeps the first two words. */
static gm_status opencl_capability(const gm__opencl_driver *driver, cl_device_id id, gm_device_info *info,
                                   gm_error *err) {
  unsigned major = 0, minor = 0;
  char text[64];
  const gm_status status = gm__opencl_device_text(driver, id, CL_DEVICE_VERSION, text, sizeof text, err);
  if (status != GM_OK) return status;
  if (sscanf(text, "OpenCL %2u.%1u", &major, &minor) == 2) {
    snprintf(info->capability, sizeof info->capability, "OpenCL %u.%u", major, minor);
  }
  return GM_OK;
}

uint32_t gm__opencl_version(const gm_device_info *info) {
  unsigned major = 0, minor = 0;
  if (sscanf(info->capability, "OpenCL %2u.%1u", &major, &minor) != 2) return 0;
  return major * 10 + minor;
}

static gm_status opencl_names(const gm__opencl_driver *driver, const char *platform, cl_device_id id,
                              gm_device_info *info, gm_error *err) {
  char vendor[128];
  gm_status status = gm__opencl_device_text(driver, id, CL_DEVICE_NAME, info->name, sizeof info->name, err);
  if (status == GM_OK) {
    status = gm__opencl_device_text(driver, id, CL_DRIVER_VERSION, info->version, sizeof info->version, err);
  }
  if (status == GM_OK) status = gm__opencl_device_text(driver, id, CL_DEVICE_VENDOR, vendor, sizeof vendor, err);
  if (status != GM_OK) return status;
  if (!info->name[0]) snprintf(info->name, sizeof info->name, "unnamed OpenCL device");
  gm__opencl_words(platform, gm__opencl_device_uint(driver, id, CL_DEVICE_VENDOR_ID, 0), vendor, info);
  return opencl_capability(driver, id, info, err);
}

gm_status gm__opencl_describe(const gm__opencl_driver *driver, const char *platform, cl_device_id id,
                              gm_device_info *out, gm_error *err) {
  gm_device_info info = {.struct_size = sizeof info, .api = GM_API_OPENCL, .backend = "opencl", .numa_node = -1};
  gm_status status = opencl_names(driver, platform, id, &info, err);
  if (status == GM_OK) status = gm__opencl_identify(driver, id, &info, err);
  if (status != GM_OK) return status;
  info.unified = opencl_unified(driver, id);
  info.type = opencl_type(driver, id, info.unified);
  if (info.type == GM_DEVICE_TYPE_CPU) info.unified = true;
  info.simulated = driver->cl.simulated || strcmp(info.driver, "oclgrind") == 0;
  info.capabilities = GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_MAPPING | GM_CAP_ADOPT | GM_CAP_COMMIT |
                      GM_CAP_COMMIT_QUEUE | GM_CAP_VIEW;
  opencl_sizes(driver, id, &info);
  *out = info;
  return GM_OK;
}

/* CL_DEVICE_SVM_CAPABILITIES; 0: gm cannot use SVM here. */
static uint64_t opencl_svm(const gm__opencl_driver *driver, cl_device_id id, const gm_device_info *info) {
  const gm__opencl_syms *cl = &driver->cl;
  if (gm__opencl_version(info) < 20 || !cl->clSVMAlloc || !cl->clSVMFree || !cl->clEnqueueSVMMemcpy) return 0;
  if (!cl->clEnqueueSVMMemFill || !cl->clEnqueueSVMMap || !cl->clEnqueueSVMUnmap) return 0;
  return gm__opencl_device_u64(driver, id, CL_DEVICE_SVM_CAPABILITIES, 0);
}

static uint32_t opencl_usm(const gm__opencl_driver *driver, cl_device_id id) {
  static const struct {
    gm__opencl_kind kind;
    cl_device_info what;
  } asked[] = {{GM__OPENCL_USM_DEVICE, CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL},
               {GM__OPENCL_USM_HOST, CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL},
               {GM__OPENCL_USM_SHARED, CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL}};
  uint32_t found = 0;
  for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
    const uint64_t can = gm__opencl_device_u64(driver, id, asked[i].what, 0);
    if (can & CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL) found |= 1u << asked[i].kind;
  }
  return found;
}

gm_status gm__opencl_ask_kinds(const gm__opencl_driver *driver, cl_platform_id platform, cl_device_id id,
                               gm_device_info *info, gm__opencl_kinds *out, gm_error *err) {
  static const char *const words[] = {"cl_intel_unified_shared_memory"};
  uint32_t has = 0;
  *out = (gm__opencl_kinds){0};
  const gm_status status = gm__opencl_device_extensions(driver, id, words, 1, &has, err);
  if (status != GM_OK) return status;
  const bool usm = has && gm__opencl_load_usm(driver->host, &driver->cl, platform, &out->usm);
  gm__opencl_kinds_sort(out, driver->preferred, opencl_svm(driver, id, info), usm ? opencl_usm(driver, id) : 0, info);
  return GM_OK;
}

gm_status gm__opencl_describe_adopted(const gm__opencl_driver *driver, cl_device_id id, gm_device_info *out,
                                      gm__opencl_kinds *out_kinds, gm_error *err) {
  char name[64] = "";
  cl_platform_id platform = NULL;
  if (gm__opencl_device_value(driver, id, CL_DEVICE_PLATFORM, &platform, sizeof platform) == CL_SUCCESS) {
    const gm_status status = gm__opencl_platform_text(driver, platform, CL_PLATFORM_NAME, name, sizeof name, err);
    if (status != GM_OK) return status;
  }
  const gm_status status = gm__opencl_describe(driver, name, id, out, err);
  return status == GM_OK ? gm__opencl_ask_kinds(driver, platform, id, out, out_kinds, err) : status;
}

/* The driver gives one or two values, each a size_t in KiB. The second one is the largest block. */
static gm_raw_amd_query opencl_amd_free(const gm__opencl_driver *driver, cl_device_id id) {
  size_t values[2] = {0};
  gm_raw_amd_query reply = {.state = GM_RAW_OK, .count = 2};
  cl_int code = gm__opencl_device_value(driver, id, CL_DEVICE_GLOBAL_FREE_MEMORY_AMD, values, sizeof values);
  if (code != CL_SUCCESS) {
    reply.count = 1;
    code = gm__opencl_device_value(driver, id, CL_DEVICE_GLOBAL_FREE_MEMORY_AMD, values, sizeof values[0]);
  }
  if (code != CL_SUCCESS) return (gm_raw_amd_query){.state = GM_RAW_ERROR, .code = code};
  reply.kib[0] = values[0];
  reply.kib[1] = values[1];
  return reply;
}

void gm__opencl_figures(const gm__opencl_driver *driver, cl_device_id id, const gm_device_info *info,
                        gm_raw_figures *out) {
  cl_ulong total = 0;
  *out = (gm_raw_figures){.struct_size = sizeof *out, .rules = GM_RAW_OPENCL, .place = GM_RAW_OWN_MEMORY};
  if (info->type == GM_DEVICE_TYPE_CPU) {
    out->place = GM_RAW_CPU_DEVICE;
  } else if (info->unified) {
    out->place = GM_RAW_INTEGRATED;
  }
  const cl_int code = gm__opencl_device_value(driver, id, CL_DEVICE_GLOBAL_MEM_SIZE, &total, sizeof total);
  out->device_total.state = code == CL_SUCCESS ? GM_RAW_OK : GM_RAW_ERROR;
  out->device_total.code = code;
  out->device_total.total_bytes = total;
  out->device_total.free_bytes = GM_UNKNOWN_BYTES;
  out->amd = opencl_amd_free(driver, id);
}
