#include "backends/opencl/opencl_driver.h"

#include <stdio.h>
#include <string.h>

#include "backends/opencl/opencl_entries.h"
#include "backends/opencl/opencl_icd.h"
#include "backends/opencl/opencl_info.h"
#include "backends/opencl/opencl_query.h"
#include "backends/opencl/opencl_status.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/log.h"

/* Invariants: entries are ordered by platform name, then as the platform lists them. So an index does not depend on the
 * order in which drivers were installed. Ids stay valid for the life of the process. The library stays loaded once a
 * driver was started, and OpenCL does not count references on root devices. */

enum { OPENCL_MAX_PLATFORMS = 32, OPENCL_MAX_DEVICES = 256 }; /* per platform; gm does not believe more */

typedef struct opencl_platform {
  cl_platform_id id;
  char name[64];
} opencl_platform;

static gm_status opencl_platforms_list(const gm__opencl_driver *driver, opencl_platform *out, uint32_t *out_count,
                                       gm_error *err) {
  cl_platform_id ids[OPENCL_MAX_PLATFORMS] = {NULL};
  cl_uint count = 0;
  const cl_int code = driver->cl.clGetPlatformIDs(OPENCL_MAX_PLATFORMS, ids, &count);
  if (code == GM__OPENCL_NO_PLATFORM || (code == CL_SUCCESS && count == 0)) {
    return gm__fail_native(
        err, GM_ERR_UNAVAILABLE, code, "clGetPlatformIDs",
        "%s lists no OpenCL platform; install a driver (Debian: pocl-opencl-icd, or the GPU vendor's)",
        driver->lib ? gm__dynlib_path(driver->lib) : "the engine's loader");
  }
  if (code != CL_SUCCESS) return gm__opencl_fail(err, code, "clGetPlatformIDs");
  if (count > OPENCL_MAX_PLATFORMS) count = OPENCL_MAX_PLATFORMS;
  cl_uint given = 0; /* a driver may count more than it gives */
  while (given < count && ids[given]) given++;
  for (cl_uint i = 0; i < given; i++) {
    out[i].id = ids[i];
    const gm_status status =
        gm__opencl_platform_text(driver, ids[i], CL_PLATFORM_NAME, out[i].name, sizeof out[i].name, err);
    if (status != GM_OK) return status;
  }
  *out_count = given;
  return GM_OK;
}

/* An insertion sort is stable, and there are few platforms. */
static void opencl_platforms_sort(opencl_platform *platforms, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    const opencl_platform moved = platforms[i];
    uint32_t at = i;
    for (; at > 0 && strcmp(platforms[at - 1].name, moved.name) > 0; at--) platforms[at] = platforms[at - 1];
    platforms[at] = moved;
  }
}

static gm_status opencl_driver_reserve(gm__opencl_driver *driver, uint32_t more, gm_error *err) {
  const uint32_t capacity = driver->count + more;
  if (capacity <= driver->capacity) return GM_OK;
  if (!gm__grow(driver->services, &driver->entries, driver->capacity * sizeof *driver->entries,
                capacity * sizeof *driver->entries)) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "clGetDeviceIDs", "no host memory for %u devices",
                    (unsigned)capacity);
  }
  driver->capacity = capacity;
  return GM_OK;
}

/* The number of listed devices with the same driver and name. It tells equal cards apart where OpenCL has no UUID. */
static uint32_t opencl_driver_ordinal(const gm__opencl_driver *driver, const gm_device_info *info) {
  uint32_t ordinal = 0;
  for (uint32_t i = 0; i < driver->count; i++) {
    const gm_device_info *other = &driver->entries[i].info;
    if (strcmp(other->driver, info->driver) == 0 && strcmp(other->name, info->name) == 0) ordinal++;
  }
  return ordinal;
}

/* gm does not offer PoCL's single-threaded device: it deadlocks on a command that waits for an unset event. */
static bool opencl_driver_unusable(const gm_device_info *info) {
  return strcmp(info->driver, "pocl") == 0 && strncmp(info->name, "basic", 5) == 0;
}

static gm_status opencl_driver_add(gm__opencl_driver *driver, const opencl_platform *platform, cl_device_id id,
                                   gm_error *err) {
  gm_device_info info;
  gm_status status = gm__opencl_describe(driver, platform->name, id, &info, err);
  if (status != GM_OK || opencl_driver_unusable(&info)) return status;
  gm__opencl_kinds kinds;
  status = gm__opencl_ask_kinds(driver, platform->id, id, &info, &kinds, err);
  if (status == GM_OK) status = opencl_driver_reserve(driver, 1, err);
  if (status != GM_OK) return status;
  info.index = driver->count;
  gm__opencl_derive_uuid(&info, opencl_driver_ordinal(driver, &info));
  gm__opencl_entry *entry = &driver->entries[driver->count++];
  entry->platform = platform->id;
  entry->id = id;
  entry->info = info;
  entry->kinds = kinds;
  atomic_init(&entry->held, 0);
  return GM_OK;
}

/* A platform that fails to list its devices does not hide the devices of another platform. */
static gm_status opencl_driver_list(gm__opencl_driver *driver, const opencl_platform *platform, gm_error *err) {
  cl_device_id ids[OPENCL_MAX_DEVICES] = {NULL};
  cl_uint count = 0;
  const cl_int code = driver->cl.clGetDeviceIDs(platform->id, CL_DEVICE_TYPE_ALL, OPENCL_MAX_DEVICES, ids, &count);
  if (code != CL_SUCCESS) {
    if (code != CL_DEVICE_NOT_FOUND) {
      gm__log(driver->services, GM_LOG_WARN, "opencl: platform %s cannot list its devices: %s (%d)", platform->name,
              gm__opencl_code_name(code), code);
    }
    return GM_OK;
  }
  if (count > OPENCL_MAX_DEVICES) count = OPENCL_MAX_DEVICES;
  gm_status status = GM_OK;
  for (cl_uint i = 0; i < count && ids[i] && status == GM_OK; i++) { /* a driver may count more than it gives */
    status = opencl_driver_add(driver, platform, ids[i], err);
  }
  return status;
}

static void opencl_driver_name_platform(gm__opencl_driver *driver, const char *name) {
  const size_t length = strlen(driver->platforms);
  snprintf(driver->platforms + length, sizeof driver->platforms - length, "%s%s", length ? ", " : "", name);
}

static gm_status opencl_driver_enumerate(gm__opencl_driver *driver, gm_error *err) {
  opencl_platform platforms[OPENCL_MAX_PLATFORMS];
  uint32_t count = 0;
  gm_status status = opencl_platforms_list(driver, platforms, &count, err);
  if (status != GM_OK) return status;
  opencl_platforms_sort(platforms, count);
  for (uint32_t i = 0; i < count && status == GM_OK; i++) {
    opencl_driver_name_platform(driver, platforms[i].name);
    status = opencl_driver_list(driver, &platforms[i], err);
  }
  return status;
}

static gm_status opencl_driver_make(const gm_backend_host *host, gm__opencl_driver **out, gm_error *err) {
  gm__opencl_family preferred;
  const gm_status status = gm__opencl_family_read(host->options, &preferred, err);
  if (status != GM_OK) return status;
  gm__opencl_driver *driver = gm__alloc(host->services, sizeof *driver);
  if (!driver) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "clGetPlatformIDs", "no host memory for the driver's record");
  }
  driver->services = host->services;
  driver->host = host;
  driver->preferred = preferred;
  *out = driver;
  return GM_OK;
}

/* `status` is the answer of loading. */
static gm_status opencl_driver_start(gm__opencl_driver *driver, gm_status status, void **out, gm_error *err) {
  if (status == GM_OK) status = opencl_driver_enumerate(driver, err);
  if (status != GM_OK) {
    gm__opencl_driver_close(driver);
    return status;
  }
  *out = driver;
  return GM_OK;
}

/* UNAVAILABLE: no library, no registered driver, or PoCL would abort (opencl_icd.h). No device at all is no failure.
 * The driver stays loaded for the life of the process. */
gm_status gm__opencl_init(const gm_backend_host *host, void **out, gm_error *err) {
  gm__opencl_icds icds;
  gm__opencl_driver *driver = NULL;
  gm__opencl_icds_read(&icds);
  gm_status status = opencl_driver_make(host, &driver, err);
  if (status != GM_OK) return status;
  status = gm__opencl_icds_check(&icds, NULL, err);
  if (status == GM_OK) status = gm__opencl_load(host, &driver->lib, &driver->cl, err);
  /* The loader starts every registered driver on its first call. A driver may not survive its unloading: it can have
   * threads and exit handlers. */
  if (status == GM_OK) gm__dynlib_keep(driver->lib);
  return opencl_driver_start(driver, status, out, err);
}

gm_status gm__opencl_driver_open_from(const gm_backend_host *host, gm__symbol_look_up look_up, void *user, void **out,
                                      gm_error *err) {
  gm__opencl_driver *driver = NULL;
  const gm_status status = opencl_driver_make(host, &driver, err);
  if (status != GM_OK) return status;
  return opencl_driver_start(driver, gm__opencl_load_from(host, look_up, user, &driver->cl, err), out, err);
}

/* No mode calls the driver. */
void gm__opencl_fini(void *driver, gm_close_mode mode) {
  (void)mode;
  gm__opencl_driver_close(driver);
}

void gm__opencl_driver_close(gm__opencl_driver *driver) {
  if (!driver) return;
  gm__release(driver->services, driver->entries, driver->capacity * sizeof *driver->entries);
  gm__dynlib_close(driver->lib);
  gm__release(driver->services, driver, sizeof *driver);
}

gm__opencl_entry *gm__opencl_driver_find(gm__opencl_driver *driver, cl_device_id id) {
  for (uint32_t i = 0; i < driver->count; i++) {
    if (driver->entries[i].id == id) return &driver->entries[i];
  }
  return NULL;
}
