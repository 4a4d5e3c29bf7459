#include "vk_engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "dense_spv.h"
#include "softmax_spv.h"

static int engine_said(VkResult result, const char *what) {
  if (result < 0) fprintf(stderr, "engine: %s failed with %d\n", what, (int)result);
  return result < 0;
}

static VKAPI_ATTR VkBool32 VKAPI_CALL engine_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                     VkDebugUtilsMessageTypeFlagsEXT types,
                                                     const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
  (void)severity, (void)types;
  engine *e = user;
  atomic_fetch_add(&e->messages, 1);
  fprintf(stderr, "validation: %s\n", data->pMessage);
  return VK_FALSE;
}

static VkDebugUtilsMessengerCreateInfoEXT engine_messenger_info(engine *e) {
  return (VkDebugUtilsMessengerCreateInfoEXT){
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
      .messageSeverity =
          VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
      .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
      .pfnUserCallback = engine_message,
      .pUserData = e};
}

static int engine_create_instance(engine *e, bool validation) {
  static const VkValidationFeatureEnableEXT enable = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  static const char *const layers[] = {"VK_LAYER_KHRONOS_validation"};
  static const char *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                                           VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  const VkDebugUtilsMessengerCreateInfoEXT messenger = engine_messenger_info(e);
  const VkValidationFeaturesEXT features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                            .pNext = &messenger,
                                            .enabledValidationFeatureCount = 1,
                                            .pEnabledValidationFeatures = &enable};
  const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2};
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                     .pNext = validation ? &features : NULL,
                                     .pApplicationInfo = &application,
                                     .enabledLayerCount = validation ? 1 : 0,
                                     .ppEnabledLayerNames = layers,
                                     .enabledExtensionCount = validation ? 2 : 0,
                                     .ppEnabledExtensionNames = extensions};
  PFN_vkCreateInstance create = (PFN_vkCreateInstance)e->get(VK_NULL_HANDLE, "vkCreateInstance");
  return engine_said(create(&info, NULL, &e->instance), "vkCreateInstance");
}

static int engine_listen(engine *e) {
  PFN_vkCreateDebugUtilsMessengerEXT create =
      (PFN_vkCreateDebugUtilsMessengerEXT)e->get(e->instance, "vkCreateDebugUtilsMessengerEXT");
  const VkDebugUtilsMessengerCreateInfoEXT info = engine_messenger_info(e);
  if (!create) return engine_said(VK_ERROR_EXTENSION_NOT_PRESENT, "vkCreateDebugUtilsMessengerEXT");
  return engine_said(create(e->instance, &info, NULL, &e->messenger), "vkCreateDebugUtilsMessengerEXT");
}

static int engine_load(engine *e, bool validation) {
  e->library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!e->library) {
    fprintf(stderr, "engine: %s\n", dlerror());
    return 1;
  }
  void *symbol = dlsym(e->library, "vkGetInstanceProcAddr");
  if (!symbol) return engine_said(VK_ERROR_INITIALIZATION_FAILED, "vkGetInstanceProcAddr");
  memcpy(&e->get, &symbol, sizeof symbol);
  if (engine_create_instance(e, validation)) return 1;
  int missing = 0;
#define X(name) missing |= !(e->name = (PFN_##name)e->get(e->instance, #name));
  ENGINE_ENTRIES(X)
#undef X
  if (missing) return engine_said(VK_ERROR_INCOMPATIBLE_DRIVER, "looking up entries");
  return validation ? engine_listen(e) : 0;
}

static int engine_choose_family(engine *e) {
  VkQueueFamilyProperties families[16];
  uint32_t count = 16;
  e->vkGetPhysicalDeviceQueueFamilyProperties(e->physical, &count, families);
  for (e->family = 0; e->family < count; e->family++) {
    if (families[e->family].queueFlags & VK_QUEUE_COMPUTE_BIT) return 0;
  }
  return engine_said(VK_ERROR_FEATURE_NOT_PRESENT, "finding a queue for compute");
}

static int engine_create_device(engine *e) {
  uint32_t one = 1;
  if (engine_said(e->vkEnumeratePhysicalDevices(e->instance, &one, &e->physical), "vkEnumeratePhysicalDevices")) {
    return 1;
  }
  if (!one) return engine_said(VK_ERROR_INITIALIZATION_FAILED, "finding a device");
  VkPhysicalDeviceProperties props;
  e->vkGetPhysicalDeviceProperties(e->physical, &props);
  snprintf(e->name, sizeof e->name, "%s", props.deviceName);
  if (engine_choose_family(e)) return 1;
  const float priority = 1.0f;
  const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                         .queueFamilyIndex = e->family,
                                         .queueCount = 1,
                                         .pQueuePriorities = &priority};
  const VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, .timelineSemaphore = VK_TRUE};
  const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                   .pNext = &timeline,
                                   .queueCreateInfoCount = 1,
                                   .pQueueCreateInfos = &queue};
  if (engine_said(e->vkCreateDevice(e->physical, &info, NULL, &e->device), "vkCreateDevice")) return 1;
  e->vkGetDeviceQueue(e->device, e->family, 0, &e->queue);
  return 0;
}

static int engine_create_layouts(engine *e) {
  VkDescriptorSetLayoutBinding bindings[ENGINE_BINDINGS];
  for (uint32_t i = 0; i < ENGINE_BINDINGS; i++) {
    bindings[i] = (VkDescriptorSetLayoutBinding){.binding = i,
                                                 .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                 .descriptorCount = 1,
                                                 .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
  }
  const VkDescriptorSetLayoutCreateInfo set = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                               .bindingCount = ENGINE_BINDINGS,
                                               .pBindings = bindings};
  if (engine_said(e->vkCreateDescriptorSetLayout(e->device, &set, NULL, &e->set_layout), "the set layout")) return 1;
  const VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = 4 * sizeof(uint32_t)};
  const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                           .setLayoutCount = 1,
                                           .pSetLayouts = &e->set_layout,
                                           .pushConstantRangeCount = 1,
                                           .pPushConstantRanges = &range};
  return engine_said(e->vkCreatePipelineLayout(e->device, &info, NULL, &e->layout), "the pipeline layout");
}

static int engine_create_pipeline(engine *e, engine_shader shader, const uint32_t *words, size_t bytes) {
  VkShaderModule module;
  const VkShaderModuleCreateInfo code = {
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes, .pCode = words};
  if (engine_said(e->vkCreateShaderModule(e->device, &code, NULL, &module), "vkCreateShaderModule")) return 1;
  const VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                      .module = module,
                                                      .pName = "main"},
                                            .layout = e->layout};
  const VkResult result = e->vkCreateComputePipelines(e->device, VK_NULL_HANDLE, 1, &info, NULL, &e->pipelines[shader]);
  e->vkDestroyShaderModule(e->device, module, NULL);
  return engine_said(result, "vkCreateComputePipelines");
}

static int engine_create_pools(engine *e) {
  const VkDescriptorPoolSize size = {.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                     .descriptorCount = ENGINE_BINDINGS * ENGINE_STEP_WORKS};
  const VkDescriptorPoolCreateInfo sets = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                           .maxSets = ENGINE_STEP_WORKS,
                                           .poolSizeCount = 1,
                                           .pPoolSizes = &size};
  if (engine_said(e->vkCreateDescriptorPool(e->device, &sets, NULL, &e->sets), "vkCreateDescriptorPool")) return 1;
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .queueFamilyIndex = e->family};
  if (engine_said(e->vkCreateCommandPool(e->device, &pool, NULL, &e->pool), "vkCreateCommandPool")) return 1;
  const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = e->pool,
                                            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                            .commandBufferCount = ENGINE_STEP_WORKS};
  return engine_said(e->vkAllocateCommandBuffers(e->device, &info, e->commands), "vkAllocateCommandBuffers");
}

static int engine_create_timeline(engine *e) {
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  return engine_said(e->vkCreateSemaphore(e->device, &info, NULL, &e->timeline), "vkCreateSemaphore");
}

int engine_open(engine *e, bool validation) {
  memset(e, 0, sizeof *e);
  pthread_mutex_init(&e->queue_mutex, NULL);
  return engine_load(e, validation) || engine_create_device(e) || engine_create_layouts(e) ||
         engine_create_pipeline(e, ENGINE_DENSE, dense_spv, sizeof dense_spv) ||
         engine_create_pipeline(e, ENGINE_SOFTMAX, softmax_spv, sizeof softmax_spv) || engine_create_pools(e) ||
         engine_create_timeline(e);
}

static void engine_close_device(engine *e) {
  e->vkDestroySemaphore(e->device, e->timeline, NULL);
  e->vkDestroyCommandPool(e->device, e->pool, NULL);
  e->vkDestroyDescriptorPool(e->device, e->sets, NULL);
  for (int i = 0; i < ENGINE_SHADERS; i++) e->vkDestroyPipeline(e->device, e->pipelines[i], NULL);
  e->vkDestroyPipelineLayout(e->device, e->layout, NULL);
  e->vkDestroyDescriptorSetLayout(e->device, e->set_layout, NULL);
  e->vkDestroyDevice(e->device, NULL);
}

void engine_close(engine *e) {
  if (e->device) engine_close_device(e);
  if (e->messenger) {
    PFN_vkDestroyDebugUtilsMessengerEXT destroy =
        (PFN_vkDestroyDebugUtilsMessengerEXT)e->get(e->instance, "vkDestroyDebugUtilsMessengerEXT");
    destroy(e->instance, e->messenger, NULL);
  }
  if (e->instance && e->vkDestroyInstance) e->vkDestroyInstance(e->instance, NULL);
  if (e->library) dlclose(e->library);
  pthread_mutex_destroy(&e->queue_mutex);
}

int engine_begin_step(engine *e) {
  const VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                    .semaphoreCount = 1,
                                    .pSemaphores = &e->timeline,
                                    .pValues = &e->value};
  e->used = 0;
  return engine_said(e->vkWaitSemaphores(e->device, &wait, UINT64_MAX), "vkWaitSemaphores") ||
         engine_said(e->vkResetCommandPool(e->device, e->pool, 0), "vkResetCommandPool") ||
         engine_said(e->vkResetDescriptorPool(e->device, e->sets, 0), "vkResetDescriptorPool");
}

static int engine_bind(engine *e, const engine_work *work, VkDescriptorSet *out) {
  const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                            .descriptorPool = e->sets,
                                            .descriptorSetCount = 1,
                                            .pSetLayouts = &e->set_layout};
  if (engine_said(e->vkAllocateDescriptorSets(e->device, &info, out), "vkAllocateDescriptorSets")) return 1;
  VkDescriptorBufferInfo buffers[ENGINE_BINDINGS];
  VkWriteDescriptorSet writes[ENGINE_BINDINGS];
  for (uint32_t i = 0; i < work->tensor_count; i++) {
    const engine_tensor *tensor = &work->tensors[i];
    buffers[i] = (VkDescriptorBufferInfo){tensor->buffer, tensor->offset, tensor->bytes};
    writes[i] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                       .dstSet = *out,
                                       .dstBinding = i,
                                       .descriptorCount = 1,
                                       .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                       .pBufferInfo = &buffers[i]};
  }
  e->vkUpdateDescriptorSets(e->device, work->tensor_count, writes, 0, NULL);
  return 0;
}

/* Narrow: between dispatches. Wide: also with whatever else was submitted before, gm's copies among it. */
static void engine_barrier(engine *e, VkCommandBuffer commands, bool wide) {
  const VkPipelineStageFlags stage = wide ? VK_PIPELINE_STAGE_ALL_COMMANDS_BIT : VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  const VkAccessFlags written = wide ? VK_ACCESS_MEMORY_WRITE_BIT : VK_ACCESS_SHADER_WRITE_BIT;
  const VkAccessFlags touched = wide ? VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT
                                     : VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  const VkMemoryBarrier barrier = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = written, .dstAccessMask = touched};
  e->vkCmdPipelineBarrier(commands, stage, stage, 0, 1, &barrier, 0, NULL, 0, NULL);
}

static int engine_submit(engine *e, VkCommandBuffer commands) {
  const uint64_t value = e->value + 1;
  const VkTimelineSemaphoreSubmitInfo values = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                .signalSemaphoreValueCount = 1,
                                                .pSignalSemaphoreValues = &value};
  const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                             .pNext = &values,
                             .commandBufferCount = 1,
                             .pCommandBuffers = &commands,
                             .signalSemaphoreCount = 1,
                             .pSignalSemaphores = &e->timeline};
  engine_lock_queue(e);
  const VkResult result = e->vkQueueSubmit(e->queue, 1, &info, VK_NULL_HANDLE);
  engine_unlock_queue(e);
  if (result == VK_SUCCESS) e->value = value;
  return engine_said(result, "vkQueueSubmit");
}

int engine_run(engine *e, const engine_work *work) {
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                          .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  VkDescriptorSet set;
  if (e->used == ENGINE_STEP_WORKS) return engine_said(VK_ERROR_OUT_OF_POOL_MEMORY, "a step with so much work");
  const VkCommandBuffer commands = e->commands[e->used++];
  if (engine_bind(e, work, &set)) return 1;
  if (engine_said(e->vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer")) return 1;
  engine_barrier(e, commands, work->wide_barrier);
  e->vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, e->pipelines[work->shader]);
  e->vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, e->layout, 0, 1, &set, 0, NULL);
  e->vkCmdPushConstants(commands, e->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof work->sizes, work->sizes);
  e->vkCmdDispatch(commands, (work->invocations + 63) / 64, 1, 1);
  if (engine_said(e->vkEndCommandBuffer(commands), "vkEndCommandBuffer")) return 1;
  return engine_submit(e, commands);
}

void engine_lock_queue(void *user) {
  engine *e = user;
  pthread_mutex_lock(&e->queue_mutex);
}

void engine_unlock_queue(void *user) {
  engine *e = user;
  pthread_mutex_unlock(&e->queue_mutex);
}
