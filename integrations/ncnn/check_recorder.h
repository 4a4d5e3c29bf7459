// Plays ncnn's VkMat, VkTransfer and VkCompute: work is recorded layer by layer, and a blob is freed when its last
// layer is recorded, which is before anything is submitted.
#pragma once

#include <memory>
#include <vector>

#include "check_device.h"

using check_words = std::vector<uint32_t>;

// Memory of an allocator. The last copy gives it back.
struct check_mat {
  std::shared_ptr<ncnn::VkBufferMemory> data;
  ncnn::VkAllocator *allocator = nullptr;
  size_t count = 0; /* of words */

  explicit operator bool() const { return data != nullptr; }
  char *mapped() const { return static_cast<char *>(data->mapped_ptr) + data->offset; }
};

// Empty: the allocator has no memory.
check_mat check_mat_create(ncnn::VkAllocator &allocator, size_t count);

// Nanoseconds that all allocators of the process took to give and to take back memory.
uint64_t check_allocator_ns();

class check_pipeline {
 public:
  explicit check_pipeline(const check_device &device);
  ~check_pipeline();
  check_pipeline(const check_pipeline &) = delete;
  check_pipeline &operator=(const check_pipeline &) = delete;

  const check_device &on;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;

 private:
  void make_layouts();
};

// One command buffer, which is recorded, submitted and waited for, again and again. One thread at a time.
class check_recorder {
 public:
  // `blobs` and `staging` may be one: memory of the device that the host sees.
  check_recorder(const check_pipeline &pipeline, ncnn::VkAllocator &blobs, ncnn::VkAllocator &staging);
  ~check_recorder();
  check_recorder(const check_recorder &) = delete;
  check_recorder &operator=(const check_recorder &) = delete;

  void begin();
  // Each returns false where an allocator has no memory; what was recorded stays.
  bool upload(const check_words &from, check_mat *out);
  bool upload_weights(const check_words &from, ncnn::VkAllocator &weights, check_mat *out);
  bool layer(const check_mat &a, const check_mat &b, const check_mat &w, size_t count, check_mat *out);
  bool download(const check_mat &from, check_words *out);
  void end();
  void submit_and_wait();  // what was downloaded is there then
  void drop();             // instead of submitting: nothing of it ever runs

  VkCommandBuffer commands() const { return commands_; }

 private:
  bool in_place() const { return &blobs_ == &staging_; }
  check_mat stage(const check_words &from);
  void copy(const check_mat &from, const check_mat &to);
  void use(const check_mat &mat, VkAccessFlags access, VkPipelineStageFlags stage);
  void use_in_shader(const check_mat &mat);
  VkDescriptorSet bind(const check_mat *const mats[4]);

  struct download_to {
    check_mat from;
    check_words *to;
  };
  const check_pipeline &pipeline_;
  const check_device &on_;
  const check_entries &vk_;
  ncnn::VkAllocator &blobs_, &staging_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkDescriptorPool sets_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  std::vector<check_mat> uploads_;  // until their copies have run
  std::vector<download_to> downloads_;
};
