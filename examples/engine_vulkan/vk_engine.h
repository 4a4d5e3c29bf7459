/* The engine's own Vulkan: instance, device, queue, timeline, two compute pipelines. It knows nothing of gm. The loader
 * is opened at run time, so the program starts without one. */
#ifndef GM_EXAMPLES_VK_ENGINE_H
#define GM_EXAMPLES_VK_ENGINE_H

#define VK_NO_PROTOTYPES
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <vulkan/vulkan.h>

#define ENGINE_ENTRIES(X)                     \
  X(vkDestroyInstance)                        \
  X(vkEnumeratePhysicalDevices)               \
  X(vkGetPhysicalDeviceProperties)            \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkCreateDevice)                           \
  X(vkDestroyDevice)                          \
  X(vkGetDeviceQueue)                         \
  X(vkCreateShaderModule)                     \
  X(vkDestroyShaderModule)                    \
  X(vkCreateDescriptorSetLayout)              \
  X(vkDestroyDescriptorSetLayout)             \
  X(vkCreatePipelineLayout)                   \
  X(vkDestroyPipelineLayout)                  \
  X(vkCreateComputePipelines)                 \
  X(vkDestroyPipeline)                        \
  X(vkCreateDescriptorPool)                   \
  X(vkDestroyDescriptorPool)                  \
  X(vkResetDescriptorPool)                    \
  X(vkAllocateDescriptorSets)                 \
  X(vkUpdateDescriptorSets)                   \
  X(vkCreateCommandPool)                      \
  X(vkDestroyCommandPool)                     \
  X(vkResetCommandPool)                       \
  X(vkAllocateCommandBuffers)                 \
  X(vkBeginCommandBuffer)                     \
  X(vkEndCommandBuffer)                       \
  X(vkCmdPipelineBarrier)                     \
  X(vkCmdBindPipeline)                        \
  X(vkCmdBindDescriptorSets)                  \
  X(vkCmdPushConstants)                       \
  X(vkCmdDispatch)                            \
  X(vkCreateSemaphore)                        \
  X(vkDestroySemaphore)                       \
  X(vkWaitSemaphores)                         \
  X(vkQueueSubmit)

typedef enum engine_shader { ENGINE_DENSE, ENGINE_SOFTMAX, ENGINE_SHADERS } engine_shader;

enum { ENGINE_BINDINGS = 4, ENGINE_STEP_WORKS = 16 }; /* dispatches in a step */

typedef struct engine {
  void *library;
  PFN_vkGetInstanceProcAddr get;
#define X(name) PFN_##name name;
  ENGINE_ENTRIES(X)
#undef X
  VkInstance instance;
  VkDebugUtilsMessengerEXT messenger; /* with validation */
  VkPhysicalDevice physical;
  VkDevice device;
  uint32_t family;
  VkQueue queue;
  pthread_mutex_t queue_mutex; /* around every use of the queue, by whomever */
  VkSemaphore timeline;
  uint64_t value; /* the timeline's, once all that was submitted is done */
  VkDescriptorSetLayout set_layout;
  VkPipelineLayout layout;
  VkPipeline pipelines[ENGINE_SHADERS];
  VkDescriptorPool sets;
  VkCommandPool pool;
  VkCommandBuffer commands[ENGINE_STEP_WORKS];
  uint32_t used; /* of `commands`, in this step */
  atomic_uint messages;
  char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
} engine;

typedef struct engine_tensor {
  VkBuffer buffer;
  VkDeviceSize offset, bytes;
} engine_tensor;

typedef struct engine_work {
  engine_shader shader;
  engine_tensor tensors[ENGINE_BINDINGS];
  uint32_t tensor_count;
  uint32_t sizes[4]; /* push constants */
  uint32_t invocations;
  bool wide_barrier; /* after all earlier work in the queue, not only after dispatches */
} engine_work;

/* `validation`: with Khronos' layer and synchronisation validation, which count into `messages`. 0: done, else the
 * reason has been printed. The caller closes it, in both cases. */
int engine_open(engine *e, bool validation);
void engine_close(engine *e);

/* Waits for the step before; its command buffers and descriptor sets are used again. */
int engine_begin_step(engine *e);

/* Record and submit one dispatch; the timeline then counts to e->value. */
int engine_run(engine *e, const engine_work *work);

void engine_lock_queue(void *e);
void engine_unlock_queue(void *e);

#endif
