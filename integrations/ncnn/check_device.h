// Plays ncnn's side of Vulkan: an instance, a VkDevice without timeline semaphores, and queues that are borrowed from a
// pool. Every allocation of driver memory is counted, whoever makes it.
#pragma once

#include <ncnn/gpu.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#define CHECK_ENTRIES(X)                      \
  X(vkDestroyInstance)                        \
  X(vkEnumeratePhysicalDevices)               \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceMemoryProperties2)     \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkCreateDevice)                           \
  X(vkDestroyDevice)                          \
  X(vkGetDeviceQueue)                         \
  X(vkAllocateMemory)                         \
  X(vkFreeMemory)                             \
  X(vkMapMemory)                              \
  X(vkFlushMappedMemoryRanges)                \
  X(vkInvalidateMappedMemoryRanges)           \
  X(vkCreateBuffer)                           \
  X(vkDestroyBuffer)                          \
  X(vkGetBufferMemoryRequirements)            \
  X(vkBindBufferMemory)                       \
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
  X(vkCmdCopyBuffer)                          \
  X(vkCmdFillBuffer)                          \
  X(vkCmdBindPipeline)                        \
  X(vkCmdBindDescriptorSets)                  \
  X(vkCmdPushConstants)                       \
  X(vkCmdDispatch)                            \
  X(vkCreateFence)                            \
  X(vkDestroyFence)                           \
  X(vkResetFences)                            \
  X(vkWaitForFences)                          \
  X(vkQueueSubmit)

struct check_entries {
#define X(name) PFN_##name name = nullptr;
  CHECK_ENTRIES(X)
#undef X
};

// Throws std::runtime_error.
void check_vulkan(VkResult result, const char *what);

// The counts of the process's calls to the driver.
struct check_counts {
  uint64_t allocations, frees, bytes, peak_bytes;
};
check_counts check_counted();
void check_count_anew();  // from the bytes that are taken now
// Plays a card on which no byte more is free than now: vkAllocateMemory answers OUT_OF_DEVICE_MEMORY.
void check_play_full_card(bool is_full);

class check_instance {
 public:
  explicit check_instance(bool validation);
  ~check_instance();
  check_instance(const check_instance &) = delete;
  check_instance &operator=(const check_instance &) = delete;

  VkInstance get() const { return instance_; }
  PFN_vkGetInstanceProcAddr entry() const;  // counts
  static uint32_t version() { return VK_API_VERSION_1_1; }

  // Messages of the layers are counted; while `expected` they are counted apart, and not printed.
  unsigned messages() const { return messages_; }
  unsigned expected_messages() const { return expected_messages_; }
  void expect_messages(bool expected) { expected_ = expected; }
  void hear(const char *message);

 private:
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::mutex mutex_;
  unsigned messages_ = 0, expected_messages_ = 0;
  bool expected_ = false;
};

class check_gpu_info : public ncnn::GpuInfo {
 public:
  void find(const check_entries &vk, VkInstance instance);
  VkPhysicalDeviceMemoryProperties memory{};
  VkPhysicalDeviceProperties properties{};
  uint32_t queue_count = 0;
};

class check_device : public ncnn::VulkanDevice {
 public:
  explicit check_device(const check_instance &instance);
  ~check_device();
  check_device(const check_device &) = delete;
  check_device &operator=(const check_device &) = delete;

  // Waits until a queue is there.
  VkQueue acquire_queue() const;
  void reclaim_queue(VkQueue queue) const;
  // Returns when `threads` threads have begun to wait for a queue. False: they have not within a minute.
  bool await_queue_waits(unsigned threads) const;

  check_entries vk;
  check_gpu_info known;

 private:
  void look_up(const check_instance &instance);

  mutable std::mutex mutex_;
  mutable std::condition_variable returned_, waited_;
  mutable std::vector<VkQueue> queues_;
  mutable unsigned waits_ = 0;
};
