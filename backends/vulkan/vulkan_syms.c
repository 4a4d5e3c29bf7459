#include "backends/vulkan/vulkan_syms.h"

#include <stdio.h>
#include <string.h>

typedef enum syms_level { LIBRARY, GLOBAL, INSTANCE, DEVICE } syms_level;
enum { OPTIONAL = false, REQUIRED = true };

typedef struct syms_row {
  syms_level level;
  gm__symbol symbol;
} syms_row;

static const syms_row syms_rows[] = {
#define X(level, need, fault, name, result, params, args) {level, {#name, offsetof(gm__vulkan_syms, name), need}},
#include "backends/vulkan/vulkan_syms.def"
};

/* A look-up needs the table so far, and the object to ask. */
typedef struct syms_asker {
  const gm__vulkan_syms *syms;
  VkInstance instance;
  VkDevice device;
} syms_asker;

/* Copy a function pointer as bytes. POSIX allows it and C does not forbid it. */
static void *syms_pointer(PFN_vkVoidFunction entry) {
  void *pointer;
  memcpy(&pointer, &entry, sizeof pointer);
  return pointer;
}

static void *syms_from_instance(void *user, const char *name) {
  const syms_asker *asker = user;
  return syms_pointer(asker->syms->vkGetInstanceProcAddr(asker->instance, name));
}

static void *syms_from_device(void *user, const char *name) {
  const syms_asker *asker = user;
  void *entry = syms_pointer(asker->syms->vkGetDeviceProcAddr(asker->device, name));
  if (entry) return entry;
  char extension[64];
  snprintf(extension, sizeof extension, "%sKHR", name);
  return syms_pointer(asker->syms->vkGetDeviceProcAddr(asker->device, extension));
}

static gm_status syms_fill(gm__vulkan_syms *syms, syms_level level, const gm__symbol_source *source,
                           const gm_backend_host *host, gm_error *err) {
  for (size_t i = 0; i < sizeof syms_rows / sizeof syms_rows[0]; i++) {
    if (syms_rows[i].level != level) continue;
    gm_status status =
        gm__symbols_resolve(source, &syms_rows[i].symbol, 1, syms, host->symbol_hook, host->symbol_hook_user, err);
    if (status) return status;
  }
  return GM_OK;
}

gm_status gm__vulkan_syms_library(gm__vulkan_syms *syms, const gm__dynlib *lib, const gm_backend_host *host,
                                  gm_error *err) {
  static const gm__symbol mark = {"gmSimulatedDriver", offsetof(gm__vulkan_syms, simulated), OPTIONAL};
  gm__dynlib_resolve(lib, &mark, 1, syms, NULL, NULL, NULL); /* optional: cannot fail */
  /* The list begins with the one symbol of the library. */
  return gm__dynlib_resolve(lib, &syms_rows[0].symbol, 1, syms, host->symbol_hook, host->symbol_hook_user, err);
}

static void *syms_given(void *user, const char *name) {
  (void)name;
  return syms_pointer(*(const PFN_vkVoidFunction *)user);
}

gm_status gm__vulkan_syms_engine(gm__vulkan_syms *syms, PFN_vkGetInstanceProcAddr entry, const gm_backend_host *host,
                                 gm_error *err) {
  PFN_vkVoidFunction given = (PFN_vkVoidFunction)entry;
  const gm__symbol_source source = {.look_up = syms_given, .user = &given, .backend = "vulkan", .from = "the engine"};
  return syms_fill(syms, LIBRARY, &source, host, err);
}

gm_status gm__vulkan_syms_global(gm__vulkan_syms *syms, const gm_backend_host *host, gm_error *err) {
  syms_asker asker = {.syms = syms};
  const gm__symbol_source source = {syms_from_instance, &asker, "vulkan", "the Vulkan loader"};
  return syms_fill(syms, GLOBAL, &source, host, err);
}

gm_status gm__vulkan_syms_instance(gm__vulkan_syms *syms, VkInstance instance, const gm_backend_host *host,
                                   gm_error *err) {
  syms_asker asker = {.syms = syms, .instance = instance};
  const gm__symbol_source source = {syms_from_instance, &asker, "vulkan", "the Vulkan instance"};
  return syms_fill(syms, INSTANCE, &source, host, err);
}

gm_status gm__vulkan_syms_device(gm__vulkan_syms *syms, VkDevice device, const gm_backend_host *host, gm_error *err) {
  syms_asker asker = {.syms = syms, .device = device};
  const gm__symbol_source source = {syms_from_device, &asker, "vulkan", "the Vulkan device"};
  return syms_fill(syms, DEVICE, &source, host, err);
}
