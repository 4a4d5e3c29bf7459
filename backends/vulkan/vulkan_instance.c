#include "backends/vulkan/vulkan_instance.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_status.h"
#include "core/base/alloc.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/library.h"
#include "core/base/log.h"

/* Invariants: an instance exists exactly while its driver does. A failure on the way undoes all earlier steps. gm reads
 * the physical devices once, so an index never changes its meaning. */

static const char *const instance_libraries[] = {"libvulkan.so.1", "libvulkan.so", NULL};
static const char instance_layer[] = "VK_LAYER_KHRONOS_validation";

static gm__dynlib_spec instance_spec(const gm_backend_host *host) {
  return (gm__dynlib_spec){
      .backend = "vulkan",
      .names = instance_libraries,
      .path = host->library,
      .advice = "install the Vulkan loader (Debian: libvulkan1) and a driver (mesa-vulkan-drivers has one for CPUs)"};
}

static gm_status instance_option(gm__vulkan_driver *driver, const char *word, size_t length, gm_error *err) {
  if (length == strlen("validation") && !strncmp(word, "validation", length)) {
    driver->validation = true;
  } else if (length == strlen("no_host_visible") && !strncmp(word, "no_host_visible", length)) {
    driver->no_host_visible = true;
  } else if (length) {
    return gm__bad_argument(err, "gm_backend_ops.init",
                            "`options`: no option `%.*s`; the vulkan backend has validation, no_host_visible",
                            (int)(length < 64 ? length : 64), word);
  }
  return GM_OK;
}

static gm_status instance_options(gm__vulkan_driver *driver, const char *options, gm_error *err) {
  while (*options) {
    size_t length = strcspn(options, ",");
    gm_status status = instance_option(driver, options, length, err);
    if (status) return status;
    options += length + (options[length] == ',');
  }
  return GM_OK;
}

/* The layers call it, from any thread that calls Vulkan. */
static VKAPI_ATTR VkBool32 VKAPI_CALL instance_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                       VkDebugUtilsMessageTypeFlagsEXT types,
                                                       const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
  gm__vulkan_driver *driver = user;
  gm_log_level level = severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT ? GM_LOG_ERROR : GM_LOG_WARN;
  gm__log(driver->services, level, "vulkan: %s", data->pMessage ? data->pMessage : "validation message without text");
  if (types & (VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT)) {
    atomic_fetch_add(&driver->messages, 1);
  }
  return VK_FALSE;
}

static VkDebugUtilsMessengerCreateInfoEXT instance_messenger_info(gm__vulkan_driver *driver) {
  return (VkDebugUtilsMessengerCreateInfoEXT){.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
                                              .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                                                 VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
                                              .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                                                             VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                                                             VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
                                              .pfnUserCallback = instance_message,
                                              .pUserData = driver};
}

static bool instance_layer_listed(const VkLayerProperties *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (!strncmp(list[i].layerName, instance_layer, sizeof instance_layer)) return true;
  }
  return false;
}

/* gm asks this first, so that the reason names the layer and not just a code. */
static gm_status instance_check_layer(const gm__vulkan_driver *driver, gm_error *err) {
  static const char op[] = "vkEnumerateInstanceLayerProperties";
  uint32_t count = 0;
  VkResult result = driver->syms.vkEnumerateInstanceLayerProperties(&count, NULL);
  if (result) return gm__vulkan_fail(result, op, err);
  uint32_t capacity = count;
  VkLayerProperties *list = gm__alloc_array(driver->services, capacity, sizeof *list);
  if (!list) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for %u layers", capacity);
  result = driver->syms.vkEnumerateInstanceLayerProperties(&count, list);
  bool found = result >= 0 && instance_layer_listed(list, count < capacity ? count : capacity);
  gm__release(driver->services, list, capacity * sizeof *list);
  if (result < 0) return gm__vulkan_fail(result, op, err);
  if (found) return GM_OK;
  return gm__fail(err, GM_ERR_UNAVAILABLE, op,
                  "option validation: layer %s not found (Debian: vulkan-validationlayers)", instance_layer);
}

static gm_status instance_check_version(const gm__vulkan_driver *driver, gm_error *err) {
  static const char op[] = "vkEnumerateInstanceVersion";
  uint32_t version = VK_API_VERSION_1_0;
  if (driver->syms.vkEnumerateInstanceVersion) {
    VkResult result = driver->syms.vkEnumerateInstanceVersion(&version);
    if (result) return gm__vulkan_fail(result, op, err);
  }
  if (version >= VK_API_VERSION_1_1) return GM_OK;
  return gm__fail(err, GM_ERR_UNAVAILABLE, op, "the Vulkan loader has version 1.0, gm needs 1.1 or later");
}

static gm_status instance_create(gm__vulkan_driver *driver, gm_error *err) {
  const VkApplicationInfo application = {
      .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pEngineName = "gm", .apiVersion = VK_API_VERSION_1_3};
  const VkDebugUtilsMessengerCreateInfoEXT messenger = instance_messenger_info(driver);
  static const VkValidationFeatureEnableEXT enables[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  const VkValidationFeaturesEXT features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                            .pNext = &messenger,
                                            .enabledValidationFeatureCount = 1,
                                            .pEnabledValidationFeatures = enables};
  static const char *const layers[] = {instance_layer};
  static const char *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                                           VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
  if (driver->validation) {
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = layers;
    info.enabledExtensionCount = 2;
    info.ppEnabledExtensionNames = extensions;
  }
  VkResult result = driver->syms.vkCreateInstance(&info, NULL, &driver->instance);
  if (result == VK_SUCCESS && driver->instance) return GM_OK;
  driver->instance = VK_NULL_HANDLE;
  if (result != VK_ERROR_INCOMPATIBLE_DRIVER) return gm__vulkan_fail(result, "vkCreateInstance", err);
  return gm__fail_native(err, GM_ERR_UNAVAILABLE, result, "vkCreateInstance",
                         "%s is there but finds no Vulkan driver (VK_ERROR_INCOMPATIBLE_DRIVER); install one "
                         "(Debian: mesa-vulkan-drivers)",
                         gm__dynlib_path(driver->lib));
}

/* The loader unloads its drivers and layers with the last instance. They are not made for that: Mesa's drivers lose the
 * contents of their static memory each time, and LLVM comes with them. */
static void instance_keep_drivers(void) {
  gm__library_keep_exporting("vk_icdNegotiateLoaderICDInterfaceVersion");
  gm__library_keep_exporting("vk_icdGetInstanceProcAddr");
  gm__library_keep_exporting("vkNegotiateLoaderLayerInterfaceVersion");
}

static gm_status instance_listen(gm__vulkan_driver *driver, gm_error *err) {
  if (!driver->validation || !driver->syms.vkCreateDebugUtilsMessengerEXT) return GM_OK;
  const VkDebugUtilsMessengerCreateInfoEXT info = instance_messenger_info(driver);
  VkResult result = driver->syms.vkCreateDebugUtilsMessengerEXT(driver->instance, &info, NULL, &driver->messenger);
  return result ? gm__vulkan_fail(result, "vkCreateDebugUtilsMessengerEXT", err) : GM_OK;
}

static gm_status instance_read_physicals(gm__vulkan_driver *driver, const VkPhysicalDevice *handles, uint32_t count,
                                         gm_error *err) {
  for (uint32_t i = 0; i < count; i++) {
    gm_status status = gm__vulkan_physical_read(&driver->syms, driver->services, handles[i], VK_API_VERSION_1_3,
                                                &driver->physicals[i], err);
    if (status) return status;
  }
  return GM_OK;
}

static gm_status instance_physicals(gm__vulkan_driver *driver, gm_error *err) {
  static const char op[] = "vkEnumeratePhysicalDevices";
  VkPhysicalDevice handles[64] = {NULL}; /* gm looks at no more than 64 */
  uint32_t count = 64;
  VkResult result = driver->syms.vkEnumeratePhysicalDevices(driver->instance, &count, handles);
  if (result == VK_ERROR_INITIALIZATION_FAILED) count = 0; /* drivers are there, cards are not */
  if (result < 0 && count) return gm__vulkan_fail(result, op, err);
  if (count == 0) return GM_OK;
  if (count > 64) count = 64;
  uint32_t given = 0; /* a driver may count more than it gives */
  while (given < count && handles[given]) given++;
  if (given == 0) return gm__vulkan_fail(result, op, err);
  count = given;
  driver->physicals = gm__alloc_array(driver->services, count, sizeof *driver->physicals);
  driver->heaps = gm__alloc_array(driver->services, count, sizeof *driver->heaps);
  driver->physical_count = count;
  if (!driver->physicals || !driver->heaps) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for %u devices", count);
  }
  return instance_read_physicals(driver, handles, count, err);
}

static gm_status instance_load(gm__vulkan_driver *driver, gm_error *err) {
  const gm__dynlib_spec spec = instance_spec(driver->host);
  gm_status status = gm__dynlib_open(driver->services, &spec, &driver->lib, err);
  if (!status) status = gm__vulkan_syms_library(&driver->syms, driver->lib, driver->host, err);
  if (!status) status = gm__vulkan_syms_global(&driver->syms, driver->host, err);
  if (!status) status = instance_check_version(driver, err);
  if (!status && driver->validation) status = instance_check_layer(driver, err);
  if (!status) status = instance_create(driver, err);
  if (status) return status;
  instance_keep_drivers();
  status = gm__vulkan_syms_instance(&driver->syms, driver->instance, driver->host, err);
  if (!status) status = instance_listen(driver, err);
  if (!status) status = instance_physicals(driver, err);
  return status;
}

gm_status gm__vulkan_driver_alone(const gm_backend_host *host, gm__vulkan_driver **out, gm_error *err) {
  gm__vulkan_driver *driver = gm__alloc(host->services, sizeof *driver);
  if (!driver) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_backend_ops.init", "no host memory for the vulkan driver");
  }
  driver->host = host;
  driver->services = host->services;
  const gm_status status = instance_options(driver, host->options, err);
  if (status) {
    gm__release(host->services, driver, sizeof *driver);
    return status;
  }
  *out = driver;
  return GM_OK;
}

gm_status gm__vulkan_init(const gm_backend_host *host, void **out_driver, gm_error *err) {
  gm__vulkan_driver *driver = NULL;
  gm_status status = gm__vulkan_driver_alone(host, &driver, err);
  if (status) return status;
  status = instance_load(driver, err);
  if (status) {
    gm__vulkan_fini(driver, GM_CLOSE_NORMAL);
    return status;
  }
  *out_driver = driver;
  return GM_OK;
}

static void instance_destroy(gm__vulkan_driver *driver) {
  if (driver->instance && driver->messenger && driver->syms.vkDestroyDebugUtilsMessengerEXT) {
    driver->syms.vkDestroyDebugUtilsMessengerEXT(driver->instance, driver->messenger, NULL);
  }
  /* When the instance level could not be filled, gm looks the destroyer up by name. */
  PFN_vkDestroyInstance destroy = driver->syms.vkDestroyInstance;
  if (driver->instance && !destroy) {
    destroy = (PFN_vkDestroyInstance)driver->syms.vkGetInstanceProcAddr(driver->instance, "vkDestroyInstance");
  }
  if (driver->instance && destroy) destroy(driver->instance, NULL);
}

void gm__vulkan_fini(void *user, gm_close_mode mode) {
  gm__vulkan_driver *driver = user;
  if (!driver) return;
  if (mode == GM_CLOSE_NORMAL) instance_destroy(driver);
  if (mode == GM_CLOSE_ABANDON && driver->lib) gm__dynlib_keep(driver->lib);
  if (driver->lib) gm__dynlib_close(driver->lib);
  gm__release(driver->services, driver->heaps, driver->physical_count * sizeof *driver->heaps);
  gm__release(driver->services, driver->physicals, driver->physical_count * sizeof *driver->physicals);
  gm__release(driver->services, driver, sizeof *driver);
}

/* The loader finds drivers by their manifests, which are files. */
static bool manifest_name(const char *name) {
  size_t length = strlen(name);
  return length > 5 && !strcmp(name + length - 5, ".json");
}

static bool manifest_in(const char *base, const char *tail) {
  char path[512];
  int length = snprintf(path, sizeof path, "%s%s/vulkan/icd.d", base, tail);
  DIR *folder = length > 0 && (size_t)length < sizeof path ? opendir(path) : NULL;
  if (!folder) return false;
  bool found = false;
  for (const struct dirent *entry; !found && (entry = readdir(folder)) != NULL;) found = manifest_name(entry->d_name);
  closedir(folder);
  return found;
}

static bool manifest_by_environment(void) {
  static const char *const names[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *value = gm__env(names[i]);
    if (value && *value) return true;
  }
  return false;
}

/* Do the files or the loader's environment variables name any driver? No vendor code runs here. */
static bool manifest_any(void) {
  static const char *const system[] = {"/etc", "/usr/local/etc", "/usr/local/share", "/usr/share"};
  if (manifest_by_environment()) return true;
  for (size_t i = 0; i < sizeof system / sizeof system[0]; i++) {
    if (manifest_in(system[i], "")) return true;
  }
  const char *home = gm__env("HOME");
  return home && *home == '/' && (manifest_in(home, "/.local/share") || manifest_in(home, "/.config"));
}

static gm_status instance_probe_files(const gm_backend_host *host, gm_driver_info *out, gm_error *err) {
  const gm__dynlib_spec spec = instance_spec(host);
  gm_driver_info info = {.struct_size = out->struct_size};
  if (!gm__dynlib_find(&spec, info.library, sizeof info.library)) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, "gm_backend_ops.probe", "libvulkan.so.1 not found (tried %s, %s%s%s); %s",
                    instance_libraries[0], instance_libraries[1], host->library ? ", " : "",
                    host->library ? host->library : "", spec.advice);
  }
  if (!manifest_any()) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, "gm_backend_ops.probe",
                    "%s is there but no driver manifest (vulkan/icd.d/*.json); %s", info.library, spec.advice);
  }
  *out = info;
  return GM_OK;
}

gm_status gm__vulkan_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err) {
  if (level == GM_PROBE_PASSIVE) return instance_probe_files(host, out, err);
  void *made = NULL;
  gm_status status = gm__vulkan_init(host, &made, err);
  if (status) return status;
  const gm__vulkan_driver *driver = made;
  gm_driver_info info = {.struct_size = out->struct_size, .device_count = driver->physical_count};
  info.simulated = driver->syms.simulated != NULL;
  snprintf(info.library, sizeof info.library, "%s", gm__dynlib_path(driver->lib));
  uint32_t version = VK_API_VERSION_1_1;
  if (driver->syms.vkEnumerateInstanceVersion) driver->syms.vkEnumerateInstanceVersion(&version);
  snprintf(info.version, sizeof info.version, "loader %u.%u.%u", VK_API_VERSION_MAJOR(version),
           VK_API_VERSION_MINOR(version), VK_API_VERSION_PATCH(version));
  gm__vulkan_fini(made, GM_CLOSE_NORMAL);
  *out = info;
  return GM_OK;
}

uint32_t gm__vulkan_validation_messages(const void *user) {
  const gm__vulkan_driver *driver = user;
  return atomic_load(&driver->messages);
}
