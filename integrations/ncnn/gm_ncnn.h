// ncnn's buffers from gm: an allocator for opt.blob_vkallocator, opt.workspace_vkallocator and opt.staging_vkallocator.
// gm uses ncnn's VkDevice as it is: no timeline semaphores, and no queue.
#pragma once

#include <ncnn/gpu.h>

#include "gm/gm.hpp"

// Adopts the device of ncnn. `instance` is ncnn::get_gpu_instance(), `get` is the vkGetInstanceProcAddr of ncnn's
// loader, and `version` the version that the instance was created for. Empty: it failed. It ends before `vkdev` does.
gm::device gm_ncnn_adopt(const ncnn::VulkanDevice &vkdev, VkInstance instance, PFN_vkGetInstanceProcAddr get,
                         uint32_t version, gm_error *err);

enum class gm_ncnn_use { weights, blobs, staging };

// Memory of one type, in a pool of its own. Like with ncnn's allocators, blocks may be freed while commands that use
// them are recorded, and serve the next commands of that buffer. So one allocator serves one command buffer at a time.
// Weights and staging, which are freed after their work, may serve many. clear() gives memory back to the driver, and
// is called when no command buffer uses it. It has no images (opt.use_image_storage = false).
class gm_ncnn_allocator final : public ncnn::VkAllocator {
 public:
  // `max_bytes`: a cap; 0: by gm's configuration.
  gm_ncnn_allocator(const gm::device &on, const ncnn::VulkanDevice *vkdev, gm_ncnn_use use, uint64_t max_bytes = 0);

  void clear() override;
  ncnn::VkBufferMemory *fastMalloc(size_t size) override;  // nullptr: there is no memory, and why() says why
  void fastFree(ncnn::VkBufferMemory *ptr) override;
  int flush(ncnn::VkBufferMemory *ptr) override;
  int invalidate(ncnn::VkBufferMemory *ptr) override;
  ncnn::VkImageMemory *fastMalloc(int, int, int, size_t, int) override { return nullptr; }
  void fastFree(ncnn::VkImageMemory *) override {}

  gm_error why() const;  // the pool's last refusal
  const gm::pool &pool() const { return pool_; }

 private:
  gm::pool pool_;
  uint32_t types_ = 0;  // gm_request.memory_types: the one type of this allocator
};
