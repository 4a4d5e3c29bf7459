#include "check_recorder.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "check_layer_spv.h"

namespace {

constexpr uint32_t kBindings = 4, kSets = 64, kGroup = 64;
constexpr VkAccessFlags kShaderBoth = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;

std::atomic<uint64_t> allocator_ns;

struct stopwatch {
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  ~stopwatch() {
    const auto took = std::chrono::steady_clock::now() - began;
    allocator_ns += static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
  }
};

void give_back(ncnn::VkAllocator *allocator, ncnn::VkBufferMemory *data) {
  const stopwatch watch;
  allocator->fastFree(data);
}

}  // namespace

uint64_t check_allocator_ns() { return allocator_ns; }

check_mat check_mat_create(ncnn::VkAllocator &allocator, size_t count) {
  ncnn::VkBufferMemory *data = nullptr;
  {
    const stopwatch watch;
    data = allocator.fastMalloc(count * sizeof(uint32_t));
  }
  if (!data) return {};
  return {{data, [&allocator](ncnn::VkBufferMemory *old) { give_back(&allocator, old); }}, &allocator, count};
}

void check_pipeline::make_layouts() {
  VkDescriptorSetLayoutBinding bindings[kBindings] = {};
  for (uint32_t i = 0; i < kBindings; i++) {
    bindings[i].binding = i;
    bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    bindings[i].descriptorCount = 1;
    bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = kBindings;
  set.pBindings = bindings;
  check_vulkan(on.vk.vkCreateDescriptorSetLayout(on.vkdevice(), &set, nullptr, &set_layout), "the set layout");
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kBindings * sizeof(uint32_t)};
  VkPipelineLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = 1;
  info.pSetLayouts = &set_layout;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  check_vulkan(on.vk.vkCreatePipelineLayout(on.vkdevice(), &info, nullptr, &layout), "the pipeline layout");
}

check_pipeline::check_pipeline(const check_device &device) : on(device) {
  make_layouts();
  VkShaderModule module = VK_NULL_HANDLE;
  VkShaderModuleCreateInfo code{};
  code.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  code.codeSize = sizeof check_layer_spv;
  code.pCode = check_layer_spv;
  check_vulkan(on.vk.vkCreateShaderModule(on.vkdevice(), &code, nullptr, &module), "the shader");
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.layout = layout;
  const VkResult made = on.vk.vkCreateComputePipelines(on.vkdevice(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline);
  on.vk.vkDestroyShaderModule(on.vkdevice(), module, nullptr);
  check_vulkan(made, "the pipeline");
}

check_pipeline::~check_pipeline() {
  on.vk.vkDestroyPipeline(on.vkdevice(), pipeline, nullptr);
  on.vk.vkDestroyPipelineLayout(on.vkdevice(), layout, nullptr);
  on.vk.vkDestroyDescriptorSetLayout(on.vkdevice(), set_layout, nullptr);
}

check_recorder::check_recorder(const check_pipeline &pipeline, ncnn::VkAllocator &blobs, ncnn::VkAllocator &staging)
    : pipeline_(pipeline), on_(pipeline.on), vk_(on_.vk), blobs_(blobs), staging_(staging) {
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.queueFamilyIndex = on_.info.compute_queue_family_index();
  check_vulkan(vk_.vkCreateCommandPool(on_.vkdevice(), &pool, nullptr, &pool_), "vkCreateCommandPool");
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  check_vulkan(vk_.vkAllocateCommandBuffers(on_.vkdevice(), &info, &commands_), "vkAllocateCommandBuffers");
  const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kBindings * kSets};
  VkDescriptorPoolCreateInfo sets{};
  sets.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  sets.maxSets = kSets;
  sets.poolSizeCount = 1;
  sets.pPoolSizes = &size;
  check_vulkan(vk_.vkCreateDescriptorPool(on_.vkdevice(), &sets, nullptr, &sets_), "vkCreateDescriptorPool");
  VkFenceCreateInfo fence{};
  fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  check_vulkan(vk_.vkCreateFence(on_.vkdevice(), &fence, nullptr, &fence_), "vkCreateFence");
}

check_recorder::~check_recorder() {
  vk_.vkDestroyFence(on_.vkdevice(), fence_, nullptr);
  vk_.vkDestroyDescriptorPool(on_.vkdevice(), sets_, nullptr);
  vk_.vkDestroyCommandPool(on_.vkdevice(), pool_, nullptr);
}

void check_recorder::begin() {
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check_vulkan(vk_.vkBeginCommandBuffer(commands_, &info), "vkBeginCommandBuffer");
}

/* A barrier from what last used the memory, as ncnn makes one, to what uses it next. */
void check_recorder::use(const check_mat &mat, VkAccessFlags access, VkPipelineStageFlags stage) {
  VkBufferMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER;
  barrier.srcAccessMask = mat.data->access_flags;
  barrier.dstAccessMask = access;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.buffer = mat.data->buffer;
  barrier.offset = mat.data->offset;
  barrier.size = mat.data->capacity;
  vk_.vkCmdPipelineBarrier(commands_, mat.data->stage_flags, stage, 0, 0, nullptr, 1, &barrier, 0, nullptr);
  mat.data->access_flags = access;
  mat.data->stage_flags = stage;
}

/* Weights, which no shader writes, need none: two threads may use them. */
void check_recorder::use_in_shader(const check_mat &mat) {
  if (mat.data->access_flags & VK_ACCESS_SHADER_WRITE_BIT ||
      mat.data->stage_flags != VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT)
    use(mat, kShaderBoth, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
}

void check_recorder::copy(const check_mat &from, const check_mat &to) {
  use(from, VK_ACCESS_TRANSFER_READ_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT);
  use(to, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT);
  const VkBufferCopy region = {from.data->offset, to.data->offset, from.count * sizeof(uint32_t)};
  vk_.vkCmdCopyBuffer(commands_, from.data->buffer, to.data->buffer, 1, &region);
}

/* In memory that the host writes now. It is kept until the work on it has run. */
check_mat check_recorder::stage(const check_words &from) {
  const check_mat staged = check_mat_create(staging_, from.size());
  if (!staged) return staged;
  memcpy(staged.mapped(), from.data(), from.size() * sizeof from[0]);
  if (staging_.flush(staged.data.get())) throw std::runtime_error("flush failed");
  staged.data->access_flags = VK_ACCESS_HOST_WRITE_BIT;
  staged.data->stage_flags = VK_PIPELINE_STAGE_HOST_BIT;
  uploads_.push_back(staged);
  return staged;
}

bool check_recorder::upload(const check_words &from, check_mat *out) {
  const check_mat staged = stage(from);
  *out = !staged || in_place() ? staged : check_mat_create(blobs_, from.size());
  if (!*out) return false;
  if (!in_place()) copy(staged, *out);
  return true;
}

bool check_recorder::upload_weights(const check_words &from, ncnn::VkAllocator &weights, check_mat *out) {
  *out = check_mat_create(weights, from.size());
  if (!*out) return false;
  if (in_place()) {
    memcpy(out->mapped(), from.data(), from.size() * sizeof from[0]);
    if (weights.flush(out->data.get())) throw std::runtime_error("flush failed");
    out->data->access_flags = VK_ACCESS_HOST_WRITE_BIT;
    out->data->stage_flags = VK_PIPELINE_STAGE_HOST_BIT;
  } else {
    const check_mat staged = stage(from);
    if (!staged) return false;
    copy(staged, *out);
  }
  use(*out, VK_ACCESS_SHADER_READ_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
  return true;
}

VkDescriptorSet check_recorder::bind(const check_mat *const mats[kBindings]) {
  VkDescriptorSet set = VK_NULL_HANDLE;
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = sets_;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &pipeline_.set_layout;
  check_vulkan(vk_.vkAllocateDescriptorSets(on_.vkdevice(), &info, &set), "vkAllocateDescriptorSets");
  VkDescriptorBufferInfo buffers[kBindings];
  VkWriteDescriptorSet writes[kBindings] = {};
  for (uint32_t i = 0; i < kBindings; i++) {
    const ncnn::VkBufferMemory &data = *mats[i]->data;
    buffers[i] = {data.buffer, data.offset, data.capacity};
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = set;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &buffers[i];
  }
  vk_.vkUpdateDescriptorSets(on_.vkdevice(), kBindings, writes, 0, nullptr);
  return set;
}

bool check_recorder::layer(const check_mat &a, const check_mat &b, const check_mat &w, size_t count, check_mat *out) {
  check_mat made = check_mat_create(blobs_, count);
  if (!made) return false;
  const check_mat *const mats[kBindings] = {&a, &b, &w, &made};
  uint32_t sizes[kBindings];
  for (uint32_t i = 0; i < kBindings; i++) {
    sizes[i] = static_cast<uint32_t>(mats[i]->count);
    use_in_shader(*mats[i]);
  }
  const VkDescriptorSet set = bind(mats);
  vk_.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_.pipeline);
  vk_.vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_.layout, 0, 1, &set, 0, nullptr);
  vk_.vkCmdPushConstants(commands_, pipeline_.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof sizes, sizes);
  vk_.vkCmdDispatch(commands_, (sizes[3] + kGroup - 1) / kGroup, 1, 1);
  *out = std::move(made);
  return true;
}

bool check_recorder::download(const check_mat &from, check_words *out) {
  check_mat staged = in_place() ? from : check_mat_create(staging_, from.count);
  if (!staged) return false;
  if (!in_place()) copy(from, staged);
  use(staged, VK_ACCESS_HOST_READ_BIT, VK_PIPELINE_STAGE_HOST_BIT);
  downloads_.push_back({std::move(staged), out});
  return true;
}

void check_recorder::end() { check_vulkan(vk_.vkEndCommandBuffer(commands_), "vkEndCommandBuffer"); }

void check_recorder::submit_and_wait() {
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands_;
  const VkQueue queue = on_.acquire_queue();
  const VkResult submitted = vk_.vkQueueSubmit(queue, 1, &info, fence_);
  on_.reclaim_queue(queue);
  check_vulkan(submitted, "vkQueueSubmit");
  check_vulkan(vk_.vkWaitForFences(on_.vkdevice(), 1, &fence_, VK_TRUE, UINT64_MAX), "vkWaitForFences");
  check_vulkan(vk_.vkResetFences(on_.vkdevice(), 1, &fence_), "vkResetFences");
  for (const download_to &download : downloads_) {
    if (download.from.allocator->invalidate(download.from.data.get())) throw std::runtime_error("invalidate failed");
    download.to->resize(download.from.count);
    memcpy(download.to->data(), download.from.mapped(), download.from.count * sizeof(uint32_t));
  }
  drop();
}

void check_recorder::drop() {
  check_vulkan(vk_.vkResetCommandPool(on_.vkdevice(), pool_, 0), "vkResetCommandPool");
  check_vulkan(vk_.vkResetDescriptorPool(on_.vkdevice(), sets_, 0), "vkResetDescriptorPool");
  uploads_.clear();
  downloads_.clear();
}
