/* An engine's side of Vulkan: instance (with validation), device and queue of its own, made past gm. Needs cmocka.h
 * and support/vulkan_fixture.h included before. */
#ifndef GM_TESTS_SUPPORT_VULKAN_ENGINE_H
#define GM_TESTS_SUPPORT_VULKAN_ENGINE_H

#include "backends/vulkan/vulkan_syms.h"
#include "core/base/library.h"

typedef struct vulkan_engine {
  gm__dynlib *lib;
  gm__vulkan_syms vk;
  VkInstance instance;
  VkDebugUtilsMessengerEXT messenger;
  VkPhysicalDevice physical;
  VkDevice device;
  VkQueue queue;
  VkCommandPool pool;
  VkCommandBuffer commands;
  VkSemaphore timeline; /* 0: without timeline semaphores */
  VkFence fence;        /* unsignalled */
  uint32_t family;
  uint32_t features; /* gm_vulkan_feature */
  atomic_uint messages;
} vulkan_engine;

static inline VKAPI_ATTR VkBool32 VKAPI_CALL vulkan_engine_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                                   VkDebugUtilsMessageTypeFlagsEXT types,
                                                                   const VkDebugUtilsMessengerCallbackDataEXT *data,
                                                                   void *user) {
  (void)severity, (void)types;
  vulkan_engine *engine = user;
  atomic_fetch_add(&engine->messages, 1);
  printf("[engine] %s\n", data->pMessage);
  return VK_FALSE;
}

/* An engine without timeline semaphores is older. */
static inline uint32_t vulkan_engine_version(const vulkan_engine *engine) {
  return engine->features & GM_VULKAN_TIMELINE_SEMAPHORE ? VK_API_VERSION_1_2 : VK_API_VERSION_1_1;
}

static inline void vulkan_engine_instance(vulkan_engine *engine, const gm_backend_host *host) {
  static const char *const names[] = {"libvulkan.so.1", NULL};
  static const char *const layers[] = {"VK_LAYER_KHRONOS_validation"};
  static const char *const extensions[] = {"VK_EXT_debug_utils", "VK_EXT_validation_features"};
  static const VkValidationFeatureEnableEXT enable = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  const gm__dynlib_spec spec = {
      .backend = "vulkan", .names = names, .path = getenv("GM_VULKAN_LIBRARY")}; /* the engine has what gm has */
  assert_int_equal(gm__dynlib_open(host->services, &spec, &engine->lib, NULL), GM_OK);
  gm__dynlib_keep(engine->lib);
  const gm_backend_host plain = {.services = host->services, .options = ""};
  assert_int_equal(gm__vulkan_syms_library(&engine->vk, engine->lib, &plain, NULL), GM_OK);
  assert_int_equal(gm__vulkan_syms_global(&engine->vk, &plain, NULL), GM_OK);
  const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                         .apiVersion = vulkan_engine_version(engine)};
  const VkDebugUtilsMessengerCreateInfoEXT messenger = {
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
      .messageSeverity =
          VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
      .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
      .pfnUserCallback = vulkan_engine_message,
      .pUserData = engine};
  const VkValidationFeaturesEXT features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                            .pNext = &messenger,
                                            .enabledValidationFeatureCount = 1,
                                            .pEnabledValidationFeatures = &enable};
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                     .pNext = &features,
                                     .pApplicationInfo = &application,
                                     .enabledLayerCount = 1,
                                     .ppEnabledLayerNames = layers,
                                     .enabledExtensionCount = 2,
                                     .ppEnabledExtensionNames = extensions};
  assert_int_equal(engine->vk.vkCreateInstance(&info, NULL, &engine->instance), VK_SUCCESS);
  /* Drivers and layers that the loader unloads lose what they keep in static memory, as gm's own instance knows. */
  gm__library_keep_exporting("vk_icdNegotiateLoaderICDInterfaceVersion");
  gm__library_keep_exporting("vkNegotiateLoaderLayerInterfaceVersion");
  assert_int_equal(gm__vulkan_syms_instance(&engine->vk, engine->instance, &plain, NULL), GM_OK);
  assert_int_equal(engine->vk.vkCreateDebugUtilsMessengerEXT(engine->instance, &messenger, NULL, &engine->messenger),
                   VK_SUCCESS);
}

static inline void vulkan_engine_features(vulkan_engine *engine) {
  uint32_t one = 1;
  VkPhysicalDeviceFeatures2 has = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  assert_true(engine->vk.vkEnumeratePhysicalDevices(engine->instance, &one, &engine->physical) >= 0);
  engine->vk.vkGetPhysicalDeviceFeatures2(engine->physical, &has);
  if (!has.features.sparseBinding) engine->features &= ~(uint32_t)GM_VULKAN_SPARSE_BUFFERS;
}

static inline void vulkan_engine_device(vulkan_engine *engine, const gm_backend_host *host) {
  const gm_backend_host plain = {.services = host->services, .options = ""};
  const float priority = 1.0f;
  const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                         .queueFamilyIndex = engine->family,
                                         .queueCount = 1,
                                         .pQueuePriorities = &priority};
  VkPhysicalDeviceBufferDeviceAddressFeatures address = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, .bufferDeviceAddress = VK_TRUE};
  const VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
      .pNext = engine->features & GM_VULKAN_BUFFER_DEVICE_ADDRESS ? &address : NULL,
      .timelineSemaphore = VK_TRUE};
  const char *extensions[2];
  uint32_t count = 0;
  if (engine->features & GM_VULKAN_EXTERNAL_MEMORY_FD) extensions[count++] = VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME;
  if (engine->features & GM_VULKAN_EXTERNAL_MEMORY_HOST) {
    extensions[count++] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
  }
  const VkPhysicalDeviceFeatures sparse = {.sparseBinding = VK_TRUE, .sparseResidencyBuffer = VK_TRUE};
  const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                   .pNext = engine->features & GM_VULKAN_TIMELINE_SEMAPHORE ? &timeline : NULL,
                                   .queueCreateInfoCount = 1,
                                   .pQueueCreateInfos = &queue,
                                   .enabledExtensionCount = count,
                                   .ppEnabledExtensionNames = extensions,
                                   .pEnabledFeatures = engine->features & GM_VULKAN_SPARSE_BUFFERS ? &sparse : NULL};
  assert_int_equal(engine->vk.vkCreateDevice(engine->physical, &info, NULL, &engine->device), VK_SUCCESS);
  assert_int_equal(gm__vulkan_syms_device(&engine->vk, engine->device, &plain, NULL), GM_OK);
  engine->vk.vkGetDeviceQueue(engine->device, engine->family, 0, &engine->queue);
}

static inline void vulkan_engine_objects(vulkan_engine *engine) {
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .queueFamilyIndex = engine->family};
  assert_int_equal(engine->vk.vkCreateCommandPool(engine->device, &pool, NULL, &engine->pool), VK_SUCCESS);
  const VkCommandBufferAllocateInfo buffer = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = engine->pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
  assert_int_equal(engine->vk.vkAllocateCommandBuffers(engine->device, &buffer, &engine->commands), VK_SUCCESS);
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  if (engine->features & GM_VULKAN_TIMELINE_SEMAPHORE) {
    assert_int_equal(engine->vk.vkCreateSemaphore(engine->device, &semaphore, NULL, &engine->timeline), VK_SUCCESS);
  }
  const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  assert_int_equal(engine->vk.vkCreateFence(engine->device, &fence, NULL, &engine->fence), VK_SUCCESS);
}

/* `features`: gm_vulkan_feature bits to enable, as far as the device has them. Address needs timelines here. */
static inline void vulkan_engine_open_exactly(vulkan_engine *engine, const gm_backend_host *host, uint32_t features) {
  memset(engine, 0, sizeof *engine);
  engine->features = features;
  vulkan_engine_instance(engine, host);
  vulkan_engine_features(engine);
  vulkan_engine_device(engine, host);
  vulkan_engine_objects(engine);
}

/* `features`: beside timeline semaphores. */
static inline void vulkan_engine_open_with(vulkan_engine *engine, const gm_backend_host *host, uint32_t features) {
  vulkan_engine_open_exactly(engine, host, GM_VULKAN_TIMELINE_SEMAPHORE | features);
}

static inline void vulkan_engine_open(vulkan_engine *engine, const gm_backend_host *host) {
  vulkan_engine_open_with(engine, host, 0);
}

/* The engine's layers must have had nothing to say, about gm's calls on its device either. */
static inline void vulkan_engine_close(vulkan_engine *engine) {
  engine->vk.vkDestroySemaphore(engine->device, engine->timeline, NULL);
  engine->vk.vkDestroyFence(engine->device, engine->fence, NULL);
  engine->vk.vkDestroyCommandPool(engine->device, engine->pool, NULL);
  engine->vk.vkDestroyDevice(engine->device, NULL);
  assert_int_equal(atomic_load(&engine->messages), 0);
  engine->vk.vkDestroyDebugUtilsMessengerEXT(engine->instance, engine->messenger, NULL);
  engine->vk.vkDestroyInstance(engine->instance, NULL);
  gm__dynlib_close(engine->lib);
}

static inline gm_vulkan_device vulkan_engine_native(const vulkan_engine *engine) {
  return (gm_vulkan_device){.head = {sizeof(gm_vulkan_device), GM_API_VULKAN},
                            .instance = (uintptr_t)engine->instance,
                            .physical_device = (uintptr_t)engine->physical,
                            .device = (uintptr_t)engine->device,
                            .get_instance_proc = (uintptr_t)engine->vk.vkGetInstanceProcAddr,
                            .api_version = vulkan_engine_version(engine),
                            .features = engine->features,
                            .queue_families = &engine->family,
                            .queue_family_count = 1};
}

/* Submit what is recorded in `commands` (false: nothing); the timeline then counts to `value`. */
static inline void vulkan_engine_submit(vulkan_engine *engine, bool commands, uint64_t value) {
  const VkTimelineSemaphoreSubmitInfo values = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                .signalSemaphoreValueCount = 1,
                                                .pSignalSemaphoreValues = &value};
  const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                             .pNext = &values,
                             .commandBufferCount = commands ? 1 : 0,
                             .pCommandBuffers = &engine->commands,
                             .signalSemaphoreCount = 1,
                             .pSignalSemaphores = &engine->timeline};
  assert_int_equal(engine->vk.vkQueueSubmit(engine->queue, 1, &info, VK_NULL_HANDLE), VK_SUCCESS);
}

#endif
