/* A simulated libnvidia-ml.so.1 over the same script as the simulated libcuda.so.1. Where that one is loaded in the
 * process its use counts, as the real figures would say. A device is a card, or with SIMCUDA_MIG a part of one; then
 * the card's own figures are those of all its parts. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/simulated/cuda/sim_control.h"
#include "tests/simulated/cuda/sim_identity.h"
#include "tests/simulated/cuda/sim_script.h"
#include "tests/simulated/nvml/sim_nvml_api.h"

enum { NVML_PARTS = 4, NVML_OTHER_PID = 2 };

struct nvmlDevice_st {
  int device;
  bool part;
};

typedef struct nvml_figures {
  unsigned long long total, others, used;
} nvml_figures;

static pthread_mutex_t nvml_lock = PTHREAD_MUTEX_INITIALIZER;
static int nvml_references;
static struct nvmlDevice_st nvml_cards[SIM_MAX_DEVICES], nvml_parts[SIM_MAX_DEVICES];

/* A number in the environment of NVML's own script. */
static int nvml_setting(const char *name) {
  const char *value = getenv(name);
  return value ? atoi(value) : 0;
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  int scripted = nvml_setting("SIMNVML_INIT");
  if (scripted) return (nvmlReturn_t)scripted;
  pthread_mutex_lock(&nvml_lock);
  if (!nvml_references++) sim_script_load();
  for (int i = 0; i < SIM_MAX_DEVICES; i++) {
    nvml_cards[i] = (struct nvmlDevice_st){i, false};
    nvml_parts[i] = (struct nvmlDevice_st){i, true};
  }
  pthread_mutex_unlock(&nvml_lock);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

nvmlReturn_t nvmlShutdown(void) {
  pthread_mutex_lock(&nvml_lock);
  bool good = nvml_references > 0;
  if (good) nvml_references--;
  pthread_mutex_unlock(&nvml_lock);
  return good ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

const char *nvmlErrorString(nvmlReturn_t code) {
  return code == NVML_SUCCESS ? "The operation was successful (simulated)" : "Simulated NVML error";
}

static nvmlReturn_t nvml_ready(const void *out) {
  pthread_mutex_lock(&nvml_lock);
  bool ready = nvml_references > 0;
  pthread_mutex_unlock(&nvml_lock);
  if (!ready) return NVML_ERROR_UNINITIALIZED;
  return out ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static bool nvml_is(nvmlDevice_t handle, const struct nvmlDevice_st *list) {
  for (int i = 0; i < sim_script_now.devices; i++)
    if (handle == &list[i]) return true;
  return false;
}

static nvmlReturn_t nvml_check(nvmlDevice_t handle, const void *out) {
  nvmlReturn_t result = nvml_ready(out);
  if (result) return result;
  bool known = nvml_is(handle, nvml_cards) || (sim_script_now.mig && nvml_is(handle, nvml_parts));
  return known ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t nvml_text(const char *text, char *out, unsigned length) {
  if (strlen(text) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(out, text, strlen(text) + 1);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *out, unsigned length) {
  nvmlReturn_t result = nvml_ready(out);
  return result ? result : nvml_text("simulated", out, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *out) {
  nvmlReturn_t result = nvml_ready(out);
  if (!result) *out = sim_script_now.version;
  return result;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *out) {
  nvmlReturn_t result = nvml_ready(out);
  if (!result) *out = (unsigned)sim_script_now.devices;
  return result;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *out) {
  nvmlReturn_t result = nvml_ready(out);
  if (result) return result;
  if (index >= (unsigned)sim_script_now.devices) return NVML_ERROR_INVALID_ARGUMENT;
  *out = &nvml_cards[index];
  return NVML_SUCCESS;
}

static void nvml_uuid(const struct nvmlDevice_st *device, char out[64]) {
  unsigned char bytes[16];
  sim_identity_uuid(device->device, device->part, bytes);
  int length = snprintf(out, 64, device->part ? "MIG-" : "GPU-");
  for (int i = 0; i < 16; i++) {
    bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    length += snprintf(out + length, 64 - (size_t)length, "%s%02x", dash ? "-" : "", bytes[i]);
  }
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *out) {
  nvmlReturn_t result = nvml_ready(out);
  if (result || !uuid) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < 2 * sim_script_now.devices; i++) {
    struct nvmlDevice_st *device = i % 2 ? &nvml_parts[i / 2] : &nvml_cards[i / 2];
    char text[64];
    nvml_uuid(device, text);
    if (strcmp(text, uuid) != 0 || (device->part && !sim_script_now.mig)) continue;
    *out = device;
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *out) {
  unsigned domain = 0, bus = 0, slot = 0;
  nvmlReturn_t result = nvml_ready(out);
  if (result) return result;
  if (!id || sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < sim_script_now.devices; i++) {
    if (domain || slot || bus != sim_identity_bus(i)) continue;
    *out = &nvml_cards[i];
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char *out, unsigned length) {
  nvmlReturn_t result = nvml_check(handle, out);
  if (result) return result;
  char name[SIM_NAME_BYTES];
  sim_identity_name(handle->device, handle->part, name);
  return nvml_text(name, out, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char *out, unsigned length) {
  nvmlReturn_t result = nvml_check(handle, out);
  if (result) return result;
  char text[64];
  nvml_uuid(handle, text);
  return nvml_text(text, out, length);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t *out) {
  nvmlReturn_t result = nvml_check(handle, out);
  if (result) return result;
  *out = (nvmlPciInfo_t){.bus = sim_identity_bus(handle->device)};
  char pci[SIM_PCI_BYTES];
  sim_identity_pci(handle->device, pci);
  snprintf(out->busIdLegacy, sizeof out->busIdLegacy, "%.15s", pci);
  snprintf(out->busId, sizeof out->busId, "0000%.27s", pci);
  return NVML_SUCCESS;
}

/* The simulated libcuda.so.1 of this process, if it is loaded, knows what the script says now and what is in use. */
static nvml_figures nvml_read(const struct nvmlDevice_st *device) {
  int index = device->device;
  nvml_figures figures = {.total = sim_script_now.total[index], .others = sim_script_now.others[index]};
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void *symbol = cuda ? dlsym(cuda, "simCudaControl") : NULL;
  char command[32], reply[128] = "";
  if (symbol) {
    sim_control_function *control;
    memcpy(&control, &symbol, sizeof control);
    snprintf(command, sizeof command, "device %d", index);
    control(command, reply, sizeof reply);
    sscanf(reply, "%llu %llu %llu", &figures.total, &figures.others, &figures.used);
  }
  if (cuda) dlclose(cuda);
  if (sim_script_now.mig && !device->part) figures.total *= NVML_PARTS;
  return figures;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *out) {
  nvmlReturn_t result = nvml_check(handle, out);
  int scripted = nvml_setting("SIMNVML_MEMORY");
  if (result || scripted) return result ? result : (nvmlReturn_t)scripted;
  nvml_figures figures = nvml_read(handle);
  out->total = figures.total;
  out->used = figures.others + figures.used;
  if (out->used > out->total) out->used = out->total;
  out->free = out->total - out->used;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *out) {
  if (out && out->version != NVML_MEMORY_V2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  nvmlMemory_t memory;
  nvmlReturn_t result = nvmlDeviceGetMemoryInfo(handle, out ? &memory : NULL);
  if (result) return result;
  *out = (nvmlMemory_v2_t){.version = NVML_MEMORY_V2, .total = memory.total, .free = memory.free, .used = memory.used};
  return NVML_SUCCESS;
}

/* SIMNVML_LIMITS="FOLDER SOFT HARD USED": limits of one group, in bytes. Other groups have none. */
nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t handle, nvmlGetMemoryLimits_v1_t *out) {
  nvmlReturn_t result = nvml_check(handle, out);
  const char *script = getenv("SIMNVML_LIMITS");
  char group[256];
  if (result) return result;
  if (!out->nameSpace || handle->part) return NVML_ERROR_INVALID_ARGUMENT;
  out->softLimit = out->currentUsed = 0;
  out->hardLimit = ~0ull;
  if (script && sscanf(script, "%255s", group) == 1 && strcmp(group, out->nameSpace) == 0) {
    sscanf(script, "%*s %llu %llu %llu", &out->softLimit, &out->hardLimit, &out->currentUsed);
  }
  return NVML_SUCCESS;
}

/* This process if it uses the device, and one that stands for all others. SIMNVML_PROCESSES=1: bytes not available. */
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned *count, nvmlProcessInfo_t *out) {
  nvmlReturn_t result = nvml_check(handle, count);
  if (result) return result;
  nvml_figures figures = nvml_read(handle);
  unsigned capacity = *count, found = 0;
  nvmlProcessInfo_t all[2];
  if (figures.used) all[found++] = (nvmlProcessInfo_t){.pid = (unsigned)getpid(), .usedGpuMemory = figures.used};
  if (figures.others) all[found++] = (nvmlProcessInfo_t){.pid = NVML_OTHER_PID, .usedGpuMemory = figures.others};
  *count = found;
  if (found > capacity || (found && !out)) return NVML_ERROR_INSUFFICIENT_SIZE;
  bool unknown = nvml_setting("SIMNVML_PROCESSES") == 1;
  for (unsigned i = 0; i < found; i++) {
    out[i] = all[i];
    if (unknown) out[i].usedGpuMemory = ~0ull;
    out[i].gpuInstanceId = out[i].computeInstanceId = ~0u;
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t handle, unsigned *count, nvmlProcessInfo_t *out) {
  (void)out;
  nvmlReturn_t result = nvml_check(handle, count);
  if (!result) *count = 0;
  return result;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned *now, unsigned *pending) {
  nvmlReturn_t result = nvml_check(handle, now);
  if (result || !pending) return result ? result : NVML_ERROR_INVALID_ARGUMENT;
  *now = *pending = sim_script_now.mig;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t handle, unsigned *out) {
  nvmlReturn_t result = nvml_check(handle, out);
  if (!result) *out = sim_script_now.mig ? 1 : 0;
  return result;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned index, nvmlDevice_t *out) {
  nvmlReturn_t result = nvml_check(handle, out);
  if (result) return result;
  if (handle->part || !sim_script_now.mig || index) return NVML_ERROR_NOT_FOUND;
  *out = &nvml_parts[handle->device];
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t handle, nvmlDevice_t *out) {
  nvmlReturn_t result = nvml_check(handle, out);
  if (result) return result;
  if (!handle->part) return NVML_ERROR_NOT_SUPPORTED;
  *out = &nvml_cards[handle->device];
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned *out) {
  nvmlReturn_t result = nvml_check(handle, out);
  if (!result) *out = handle->part;
  return result;
}
