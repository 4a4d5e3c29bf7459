#include "backends/cuda/cuda_nvml.h"

#include <stdio.h>
#include <unistd.h>

#include "core/base/alloc.h"

/* gm's own declarations. These forms have not changed since NVML 11. */
typedef struct nvml_device *nvml_handle;

typedef struct nvml_memory {
  unsigned long long total, room, used;
} nvml_memory;

typedef struct nvml_process {
  unsigned int pid;
  unsigned long long used;
  unsigned int gpu_instance, compute_instance;
} nvml_process;

/* Driver 615 and newer have it. */
typedef struct nvml_limits {
  const char *group; /* in */
  unsigned long long soft, hard, used;
} nvml_limits;

enum { NVML_OK = 0, NVML_PROCESSES = 4 * GM_RAW_PROCESSES_MAX };

typedef int (*nvml_list)(nvml_handle device, unsigned int *count, nvml_process *out);

typedef struct nvml_syms {
  int (*init)(void);
  int (*shutdown)(void);
  int (*by_uuid)(const char *uuid, nvml_handle *out);
  int (*memory)(nvml_handle device, nvml_memory *out);
  nvml_list compute, graphics;
  int (*limits)(nvml_handle device, nvml_limits *out);
} nvml_syms;

static const gm__symbol nvml_symbols[] = {
    {"nvmlInit_v2", offsetof(nvml_syms, init), true},
    {"nvmlShutdown", offsetof(nvml_syms, shutdown), true},
    {"nvmlDeviceGetHandleByUUID", offsetof(nvml_syms, by_uuid), true},
    {"nvmlDeviceGetMemoryInfo", offsetof(nvml_syms, memory), true},
    {"nvmlDeviceGetMemoryLimits_v1", offsetof(nvml_syms, limits), false},
    {"nvmlDeviceGetComputeRunningProcesses_v3", offsetof(nvml_syms, compute), false},
    {"nvmlDeviceGetGraphicsRunningProcesses_v3", offsetof(nvml_syms, graphics), false},
};

struct gm__nvml {
  const gm_services *services;
  gm__dynlib *lib;
  nvml_syms syms;
};

static bool nvml_load(gm__nvml *nvml, const gm_backend_host *host, const char *library) {
  static const char *const names[] = {"libnvidia-ml.so.1", "libnvidia-ml.so", NULL};
  const gm__dynlib_spec spec = {.backend = "nvml", .names = names, .path = library};
  if (gm__dynlib_open(nvml->services, &spec, &nvml->lib, NULL) != GM_OK) return false;
  if (gm__dynlib_resolve(nvml->lib, nvml_symbols, sizeof nvml_symbols / sizeof nvml_symbols[0], &nvml->syms,
                         host->symbol_hook, host->symbol_hook_user, NULL) != GM_OK) {
    return false;
  }
  if (nvml->syms.init() != NVML_OK) return false;
  gm__dynlib_keep(nvml->lib);
  return true;
}

gm__nvml *gm__nvml_open(const gm_backend_host *host, const char *library) {
  gm__nvml *nvml = gm__alloc(host->services, sizeof *nvml);
  if (!nvml) return NULL;
  nvml->services = host->services;
  if (nvml_load(nvml, host, library)) return nvml;
  gm__dynlib_close(nvml->lib);
  gm__release(nvml->services, nvml, sizeof *nvml);
  return NULL;
}

void gm__nvml_close(gm__nvml *nvml, gm_close_mode mode) {
  if (!nvml) return;
  if (mode == GM_CLOSE_NORMAL) nvml->syms.shutdown();
  gm__dynlib_close(nvml->lib);
  gm__release(nvml->services, nvml, sizeof *nvml);
}

static nvml_handle nvml_find(const gm__nvml *nvml, const uint8_t *uuid, bool slice) {
  char text[48];
  int length = snprintf(text, sizeof text, "%s-", slice ? "MIG" : "GPU");
  for (int i = 0; i < GM_UUID_BYTES; i++) {
    const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    length += snprintf(text + length, sizeof text - (size_t)length, "%s%02x", dash ? "-" : "", uuid[i]);
  }
  nvml_handle device = NULL;
  return nvml->syms.by_uuid(text, &device) == NVML_OK ? device : NULL;
}

bool gm__nvml_is_slice(const gm__nvml *nvml, const uint8_t *uuid) { return nvml && nvml_find(nvml, uuid, true); }

static void nvml_add_processes(nvml_list list, nvml_handle device, gm_raw_nvml *out) {
  nvml_process processes[NVML_PROCESSES];
  unsigned int count = NVML_PROCESSES;
  if (!list || list(device, &count, processes) != NVML_OK) return;
  const unsigned int own = (unsigned int)getpid();
  for (unsigned int i = 0; i < count && i < NVML_PROCESSES; i++) {
    if (processes[i].pid == own) continue;
    if (out->process_count < GM_RAW_PROCESSES_MAX) out->process_bytes[out->process_count] = processes[i].used;
    out->process_count++;
  }
}

void gm__nvml_figures(const gm__nvml *nvml, const uint8_t *uuid, bool slice, gm_raw_nvml *out) {
  nvml_memory memory = {0};
  nvml_handle device = nvml ? nvml_find(nvml, uuid, slice) : NULL;
  out->handle = slice ? GM_RAW_NVML_SLICE : GM_RAW_NVML_DEVICE;
  if (!device) return;
  const int code = nvml->syms.memory(device, &memory);
  out->memory.state = code == NVML_OK ? GM_RAW_OK : GM_RAW_ERROR;
  out->memory.code = code;
  out->memory.total_bytes = memory.total;
  out->memory.free_bytes = memory.room;
  nvml_add_processes(nvml->syms.compute, device, out);
  nvml_add_processes(nvml->syms.graphics, device, out);
}

/* Slices have no such limits. A group without one answers 0 and all ones. */
void gm__nvml_limits(const gm__nvml *nvml, const uint8_t *uuid, const char *group, gm_raw_limits *out) {
  nvml_limits limits = {.group = group};
  if (!nvml || !nvml->syms.limits || !group || !*group) return;
  nvml_handle device = nvml_find(nvml, uuid, false);
  if (!device) return;
  const int code = nvml->syms.limits(device, &limits);
  out->state = code == NVML_OK ? GM_RAW_OK : GM_RAW_ERROR;
  out->code = code;
  out->soft_bytes = limits.soft;
  out->hard_bytes = limits.hard;
  out->used_bytes = limits.used;
}
