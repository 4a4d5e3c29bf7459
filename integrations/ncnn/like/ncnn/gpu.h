// Stands for ncnn's gpu.h and allocator.h where ncnn is not there. It is written after ncnn's names and is not ncnn: it
// has what gm_ncnn and its check use, and nothing else. Images, for which ncnn's allocators have two calls more, are
// the same names without their members.
#pragma once

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES  // as in ncnn, which loads Vulkan itself
#endif
#include <vulkan/vulkan.h>

#include <cstddef>
#include <cstdint>

namespace ncnn {

class VkBufferMemory {
 public:
  VkBuffer buffer;
  size_t offset;  // in `buffer`, and in `memory`
  size_t capacity;
  VkDeviceMemory memory;
  void *mapped_ptr;                    // of `memory` as a whole: the bytes are at mapped_ptr + offset
  mutable VkAccessFlags access_flags;  // what last used it: the source of the next barrier
  mutable VkPipelineStageFlags stage_flags;
  int refcount;
};

class VkImageMemory;

class GpuInfo {
 public:
  VkPhysicalDevice physical_device() const { return physical_device_; }
  int type() const { return type_; }  // 0: discrete, 1: integrated, 2: virtual, 3: a CPU
  uint32_t compute_queue_family_index() const { return compute_family_; }
  uint32_t transfer_queue_family_index() const { return transfer_family_; }

 protected:
  VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
  int type_ = 0;
  uint32_t compute_family_ = 0, transfer_family_ = 0;
};

class VulkanDevice {
 public:
  explicit VulkanDevice(const GpuInfo &known) : info(known) {}
  VkDevice vkdevice() const { return device_; }

  const GpuInfo &info;

 protected:
  ~VulkanDevice() = default;

  VkDevice device_ = VK_NULL_HANDLE;
};

class VkAllocator {
 public:
  explicit VkAllocator(const VulkanDevice *on) : vkdev(on) {}
  virtual ~VkAllocator() = default;
  VkAllocator(const VkAllocator &) = delete;
  VkAllocator &operator=(const VkAllocator &) = delete;

  virtual void clear() {}  // no command buffer uses the memory any more

  virtual VkBufferMemory *fastMalloc(size_t size) = 0;
  virtual void fastFree(VkBufferMemory *ptr) = 0;
  virtual int flush(VkBufferMemory *ptr) = 0;       // ncnn's own do it by vkdev
  virtual int invalidate(VkBufferMemory *ptr) = 0;  // likewise

  virtual VkImageMemory *fastMalloc(int w, int h, int c, size_t elemsize, int elempack) = 0;
  virtual void fastFree(VkImageMemory *ptr) = 0;

  const VulkanDevice *vkdev;
  uint32_t buffer_memory_type_index = UINT32_MAX;  // UINT32_MAX: not known before the first block
  uint32_t image_memory_type_index = UINT32_MAX;
  uint32_t reserved_type_index = UINT32_MAX;
  bool mappable = false;
  bool coherent = false;
};

}  // namespace ncnn
