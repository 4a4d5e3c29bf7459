#include "backends/cpu/cpu_device.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "backends/cpu/cpu_entries.h"
#include "backends/cpu/cpu_pinned.h"
#include "backends/cpu/cpu_vmm.h"
#include "backends/shared/plain.h"
#include "backends/shared/uuid.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/text_clean.h"

/* Copy the value of `key` ("model name") from the text of /proc/cpuinfo. Without such a key `out` stays as it is. */
static void device_cpuinfo(const char *text, const char *key, char *out, size_t capacity) {
  const size_t length = strlen(key);
  for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
    if (strncmp(line, key, length) != 0) continue;
    const char *value = line + length + strspn(line + length, "\t :");
    snprintf(out, capacity, "%.*s", (int)strcspn(value, "\n"), value);
    gm__text_clean(out);
    return;
  }
}

/* The entry of the first processor is enough, and it fits. */
static void device_read_cpuinfo(char *text, size_t capacity) {
  text[0] = 0;
  const int file = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t count = read(file, text, capacity - 1);
  text[count > 0 ? count : 0] = 0;
  close(file);
}

static void device_name(gm_device_info *info) {
  char text[4096], vendor[32] = "";
  device_read_cpuinfo(text, sizeof text);
  snprintf(info->name, sizeof info->name, "CPU");
  device_cpuinfo(text, "model name", info->name, sizeof info->name);
  device_cpuinfo(text, "vendor_id", vendor, sizeof vendor);
  for (char *c = vendor; *c; c++) *c = (char)tolower((unsigned char)*c);
  if (strcmp(vendor, "genuineintel") == 0) snprintf(vendor, sizeof vendor, "intel");
  if (strcmp(vendor, "authenticamd") == 0) snprintf(vendor, sizeof vendor, "amd");
  snprintf(info->vendor, sizeof info->vendor, "%s", vendor);
}

static void device_system(gm_device_info *info) {
  struct utsname system;
  if (uname(&system) != 0) return;
  snprintf(info->version, sizeof info->version, "%.30s %.30s", system.sysname, system.release);
  snprintf(info->capability, sizeof info->capability, "%.31s", system.machine);
}

gm_status gm__cpu_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err) {
  (void)host, (void)level, (void)err;
  *out = (gm_driver_info){.struct_size = sizeof *out, .device_count = 1};
  return GM_OK;
}

gm_status gm__cpu_init(const gm_backend_host *host, void **out_driver, gm_error *err) {
  gm__cpu_driver *driver = gm__alloc(host->services, sizeof *driver);
  if (!driver) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "cpu init", "no host memory for the driver object");
  driver->services = host->services;
  gm_status status = gm__cpu_syms_load(host, &driver->sys, err);
  if (status == GM_OK) status = gm__cpu_options_parse(host->options, &driver->options, err);
  if (status == GM_OK) status = gm__cpu_numa_try(&driver->options.numa, &driver->sys, err);
  if (status) {
    gm__release(host->services, driver, sizeof *driver);
    return status;
  }
  *out_driver = driver;
  return GM_OK;
}

void gm__cpu_fini(void *driver, gm_close_mode mode) {
  (void)mode;
  gm__release(((gm__cpu_driver *)driver)->services, driver, sizeof(gm__cpu_driver));
}

gm_status gm__cpu_device_count(void *driver, uint32_t *out, gm_error *err) {
  (void)driver, (void)err;
  *out = 1;
  return GM_OK;
}

/* total_bytes stays 0: the core knows the control groups and the memory nodes, and tells the size. */
gm_status gm__cpu_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  const gm__cpu_numa *numa = &((const gm__cpu_driver *)driver)->options.numa;
  const gm_status status = gm__plain_check_index("cpu device_info", 1, device ? 0 : index, err);
  if (status) return status;
  *out = (gm_device_info){.struct_size = sizeof *out,
                          .api = GM_API_CPU,
                          .type = GM_DEVICE_TYPE_CPU,
                          .backend = "cpu",
                          .driver = "host",
                          .uuid_derived = true,
                          .unified = true,
                          .numa_node = numa->policy == GM__CPU_NUMA_NODE ? (int32_t)numa->node : -1,
                          .alignment = GM__CPU_ALIGNMENT,
                          .map_atom_bytes = 1,
                          .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
                          .capabilities = GM__CPU_CAPABILITIES};
  device_name(out);
  device_system(out);
  gm__uuid_derive(out->backend, out->driver, out->name, 0, out->uuid);
  return GM_OK;
}

gm_status gm__cpu_device_open(void *driver, uint32_t index, void **out_device, gm_error *err) {
  const gm_status status = gm__plain_check_index("cpu device_open", 1, index, err);
  if (status) return status;
  const gm__cpu_driver *from = driver;
  gm__cpu_device *device = gm__alloc(from->services, sizeof *device);
  if (!device) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "cpu device_open", "no host memory for the device");
  device->services = from->services;
  device->sys = &from->sys;
  device->options = &from->options;
  gm__mutex_init(&device->lock, GM__RANK_BACKEND);
  gm__cpu_vmm_init(device);
  *out_device = device;
  return GM_OK;
}

void gm__cpu_device_close(void *device, gm_close_mode mode) {
  gm__cpu_device *self = device;
  gm__cpu_pinned_clear(self, mode);
  gm__cpu_vmm_clear(self, mode);
  if (mode == GM_CLOSE_NORMAL) gm__mutex_destroy(&self->lock);
  if (mode == GM_CLOSE_NORMAL) gm__mutex_destroy(&self->vmm_lock);
  gm__release(self->services, self, sizeof *self);
}

gm_status gm__cpu_device_native(void *device, gm_native_device *out, gm_error *err) {
  (void)device, (void)out;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "cpu device_native", "the host has no native device object");
}

gm_status gm__cpu_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  (void)driver;
  const gm_status status = gm__plain_check_index("cpu figures", 1, device ? 0 : index, err);
  if (status) return status;
  *out = (gm_raw_figures){.struct_size = sizeof *out, .rules = GM_RAW_HOST, .place = GM_RAW_CPU_DEVICE};
  return GM_OK;
}
