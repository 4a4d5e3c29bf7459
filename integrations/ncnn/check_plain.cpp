#include "check_plain.h"

#include <algorithm>
#include <iterator>

namespace {

// Any of the device's alignments is a divisor of this one.
constexpr size_t kAlign = 256;
constexpr VkMemoryPropertyFlags kSeen = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
                                kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;

int rank(VkMemoryPropertyFlags flags, bool staging, bool integrated) {
  const VkMemoryPropertyFlags required = staging ? kSeen : kLocal;
  if ((flags & required) != required) return -1;
  if (staging) return (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT ? 2 : 0) + (flags & kLocal ? 0 : 1);
  return (flags & kSeen) == (integrated ? kSeen : 0) ? 1 : 0;
}

}  // namespace

check_plain::check_plain(const check_device &device, bool staging) : VkAllocator(&device), on_(device) {
  const VkPhysicalDeviceMemoryProperties &memory = device.known.memory;
  int most = -1;
  for (uint32_t i = 0; i < memory.memoryTypeCount; i++) {
    const int is = rank(memory.memoryTypes[i].propertyFlags, staging, device.info.type() == 1);
    if (is > most) most = is, buffer_memory_type_index = i;
  }
  const VkMemoryPropertyFlags flags = most < 0 ? 0 : memory.memoryTypes[buffer_memory_type_index].propertyFlags;
  mappable = flags & kSeen;
  coherent = flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
}

bool check_plain::take(size_t bytes, ncnn::VkBufferMemory *out) {
  const VkDevice device = on_.vkdevice();
  VkBufferCreateInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer.size = bytes;
  buffer.usage =
      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  check_vulkan(on_.vk.vkCreateBuffer(device, &buffer, nullptr, &out->buffer), "vkCreateBuffer");
  VkMemoryRequirements needs;
  on_.vk.vkGetBufferMemoryRequirements(device, out->buffer, &needs);
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.allocationSize = needs.size;
  info.memoryTypeIndex = buffer_memory_type_index;
  if (on_.vk.vkAllocateMemory(device, &info, nullptr, &out->memory)) {
    on_.vk.vkDestroyBuffer(device, out->buffer, nullptr);
    return false;
  }
  check_vulkan(on_.vk.vkBindBufferMemory(device, out->buffer, out->memory, 0), "vkBindBufferMemory");
  out->mapped_ptr = nullptr;
  if (mappable)
    check_vulkan(on_.vk.vkMapMemory(device, out->memory, 0, VK_WHOLE_SIZE, 0, &out->mapped_ptr), "vkMapMemory");
  out->offset = 0;
  out->capacity = bytes;
  return true;
}

void check_plain::give_back(const ncnn::VkBufferMemory &memory) {
  on_.vk.vkDestroyBuffer(on_.vkdevice(), memory.buffer, nullptr);
  on_.vk.vkFreeMemory(on_.vkdevice(), memory.memory, nullptr);
}

VkMappedMemoryRange check_plain::whole(const ncnn::VkBufferMemory &memory) const {
  VkMappedMemoryRange range{};
  range.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE;
  range.memory = memory.memory;
  range.size = VK_WHOLE_SIZE;
  return range;
}

int check_plain::flush(ncnn::VkBufferMemory *ptr) {
  const VkMappedMemoryRange range = whole(*ptr);
  return coherent ? 0 : on_.vk.vkFlushMappedMemoryRanges(on_.vkdevice(), 1, &range);
}

int check_plain::invalidate(ncnn::VkBufferMemory *ptr) {
  const VkMappedMemoryRange range = whole(*ptr);
  return coherent ? 0 : on_.vk.vkInvalidateMappedMemoryRanges(on_.vkdevice(), 1, &range);
}

bool check_plain_blocks::carve(block &from, size_t bytes, ncnn::VkBufferMemory *out) {
  const auto found =
      std::find_if(from.free.begin(), from.free.end(), [=](const auto &at) { return at.second >= bytes; });
  if (found == from.free.end()) return false;
  const auto [offset, room] = *found;
  from.free.erase(found);
  if (room > bytes) from.free[offset + bytes] = room - bytes;
  *out = from.whole;
  out->offset = offset;
  out->capacity = bytes;
  out->access_flags = 0;
  out->stage_flags = VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT;
  return true;
}

ncnn::VkBufferMemory *check_plain_blocks::fastMalloc(size_t size) {
  const size_t bytes = (size + kAlign - 1) / kAlign * kAlign;
  ncnn::VkBufferMemory out{};
  for (block &at : blocks_)
    if (carve(at, bytes, &out)) return new ncnn::VkBufferMemory(out);
  block fresh{};
  if (!take(std::max(bytes, least_), &fresh.whole)) return nullptr;
  fresh.free[0] = fresh.whole.capacity;
  blocks_.push_back(fresh);
  carve(blocks_.back(), bytes, &out);
  return new ncnn::VkBufferMemory(out);
}

void check_plain_blocks::fastFree(ncnn::VkBufferMemory *ptr) {
  for (block &at : blocks_) {
    if (at.whole.memory != ptr->memory) continue;
    auto here = at.free.emplace(ptr->offset, ptr->capacity).first;
    const auto next = std::next(here);
    if (next != at.free.end() && here->first + here->second == next->first)
      here->second += next->second, at.free.erase(next);
    if (here != at.free.begin() && std::prev(here)->first + std::prev(here)->second == here->first) {
      std::prev(here)->second += here->second;
      at.free.erase(here);
    }
  }
  delete ptr;
}

void check_plain_blocks::clear_blocks() {
  for (const block &at : blocks_) give_back(at.whole);
  blocks_.clear();
}

ncnn::VkBufferMemory *check_plain_staging::fastMalloc(size_t size) {
  const auto fits = [=](const ncnn::VkBufferMemory *at) {
    return at->capacity >= size && at->capacity * 3 / 4 <= size;
  };
  const auto found = std::find_if(kept_.begin(), kept_.end(), fits);
  ncnn::VkBufferMemory *out = nullptr;
  if (found != kept_.end()) {
    out = *found;
    kept_.erase(found);
  } else {
    out = new ncnn::VkBufferMemory{};
    if (!take(size, out)) {
      delete out;
      return nullptr;
    }
  }
  out->access_flags = 0;
  out->stage_flags = VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT;
  return out;
}

void check_plain_staging::clear_kept() {
  for (const ncnn::VkBufferMemory *at : kept_) {
    give_back(*at);
    delete at;
  }
  kept_.clear();
}
