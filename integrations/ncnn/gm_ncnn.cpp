#include "gm_ncnn.h"

#include "gm/copy.h"
#include "gm/native_vulkan.h"

namespace {

// ncnn gives memory back by the pointer alone.
struct memory_of_gm : ncnn::VkBufferMemory {
  gm::block block;
};

gm_request request_for(size_t size, uint32_t types) {
  gm_request request{};
  request.bytes = size;
  request.must_be = GM_DEVICE_ACCESSIBLE;
  request.memory_types = types;
  return request;
}

struct wish {
  uint32_t required, preferred, avoided;  // gm_memory_flags
};

wish wish_for(gm_ncnn_use use, bool integrated) {
  if (use == gm_ncnn_use::staging)
    return {GM_MEMORY_HOST_VISIBLE, GM_MEMORY_HOST_COHERENT | GM_MEMORY_HOST_CACHED, GM_MEMORY_DEVICE_LOCAL};
  if (integrated) return {GM_MEMORY_DEVICE_LOCAL, GM_MEMORY_HOST_VISIBLE, 0};
  return {GM_MEMORY_DEVICE_LOCAL, 0, GM_MEMORY_HOST_VISIBLE};
}

// The index of the type that meets the wish best; UINT32_MAX: none does.
uint32_t find_type(gm_device *device, const wish &want, uint32_t *flags) {
  uint32_t count = 0, best = UINT32_MAX;
  int most = -1;
  gm_device_memory_type_count(device, &count, nullptr);
  for (uint32_t i = 0; i < count; i++) {
    gm_memory_type type{};
    type.struct_size = sizeof type;
    if (gm_device_memory_type(device, i, &type, nullptr) || (type.flags & want.required) != want.required) continue;
    const int rank = ((type.flags & want.preferred) == want.preferred ? 2 : 0) + (type.flags & want.avoided ? 0 : 1);
    if (rank > most) most = rank, best = i, *flags = type.flags;
  }
  return best;
}

void describe(const gm_vulkan_memory &native, bool fresh, ncnn::VkBufferMemory *out) {
  out->buffer = reinterpret_cast<VkBuffer>(native.buffer);
  out->offset = native.buffer_offset;
  out->capacity = native.bytes;
  out->memory = reinterpret_cast<VkDeviceMemory>(native.memory);
  out->mapped_ptr = native.mapped ? static_cast<char *>(native.mapped) - native.buffer_offset : nullptr;
  // Commands that were recorded before may use the memory: ncnn makes its next barrier from this.
  out->access_flags = fresh ? 0
                            : VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                                  VK_ACCESS_TRANSFER_WRITE_BIT;
  out->stage_flags =
      fresh ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
}

}  // namespace

gm::device gm_ncnn_adopt(const ncnn::VulkanDevice &vkdev, VkInstance instance, PFN_vkGetInstanceProcAddr get,
                         uint32_t version, gm_error *err) {
  gm_context_params params{};
  params.struct_size = sizeof params;
  params.backends = "vulkan";
  const uint32_t families[] = {vkdev.info.compute_queue_family_index(), vkdev.info.transfer_queue_family_index()};
  gm_vulkan_device lent{};
  lent.head = {sizeof lent, GM_API_VULKAN};
  lent.instance = reinterpret_cast<uintptr_t>(instance);
  lent.physical_device = reinterpret_cast<uintptr_t>(vkdev.info.physical_device());
  lent.device = reinterpret_cast<uintptr_t>(vkdev.vkdevice());
  lent.get_instance_proc = reinterpret_cast<uintptr_t>(get);
  lent.api_version = version;
  lent.queue_families = families;
  lent.queue_family_count = families[0] == families[1] ? 1 : 2;
  lent.sharing = GM_VULKAN_SHARING_EXCLUSIVE;  // ncnn transfers ownership itself
  const gm::context ctx = gm::context::create(&params, err);
  return ctx ? gm::device::adopt(ctx, lent.head, err) : gm::device();
}

gm_ncnn_allocator::gm_ncnn_allocator(const gm::device &on, const ncnn::VulkanDevice *of, gm_ncnn_use use,
                                     uint64_t max_bytes)
    : VkAllocator(of) {
  static const char *const names[] = {"ncnn weights", "ncnn blobs", "ncnn staging"};
  gm_pool_params params{};
  params.struct_size = sizeof params;
  params.name = names[static_cast<int>(use)];
  params.max_bytes = max_bytes;
  params.flags = GM_POOL_NO_TRIM;  // commands that are recorded and not submitted may name freed blocks
  uint32_t flags = 0;
  const uint32_t type = find_type(on.get(), wish_for(use, of->info.type() == 1), &flags);
  if (type == UINT32_MAX) return;
  types_ = 1U << type;
  mappable = flags & GM_MEMORY_HOST_VISIBLE;
  coherent = flags & GM_MEMORY_HOST_COHERENT;
  pool_ = gm::pool::create(on, &params);
}

void gm_ncnn_allocator::clear() { pool_.trim(); }

ncnn::VkBufferMemory *gm_ncnn_allocator::fastMalloc(size_t size) {
  gm::block block(pool_.get(), request_for(size, types_));
  gm_vulkan_memory native{};
  native.head = {sizeof native, GM_API_VULKAN};
  if (!block || gm_block_native(pool_.get(), &block.get(), &native.head, nullptr)) return nullptr;
  auto *out = new (std::nothrow) memory_of_gm{};
  if (!out) return nullptr;
  describe(native, block.acquire() == GM_ACQUIRE_FRESH, out);
  buffer_memory_type_index = native.memory_type;
  out->block = std::move(block);
  return out;
}

void gm_ncnn_allocator::fastFree(ncnn::VkBufferMemory *ptr) { delete static_cast<memory_of_gm *>(ptr); }

int gm_ncnn_allocator::flush(ncnn::VkBufferMemory *ptr) {
  const gm_block &block = static_cast<memory_of_gm *>(ptr)->block.get();
  return gm_block_flush(pool_.get(), &block, 0, block.bytes, nullptr) ? -1 : 0;
}

int gm_ncnn_allocator::invalidate(ncnn::VkBufferMemory *ptr) {
  const gm_block &block = static_cast<memory_of_gm *>(ptr)->block.get();
  return gm_block_invalidate(pool_.get(), &block, 0, block.bytes, nullptr) ? -1 : 0;
}

gm_error gm_ncnn_allocator::why() const {
  gm_explanation why{};
  why.struct_size = sizeof why;
  const gm_request request = request_for(1, types_);
  gm_explain(pool_.get(), &request, &why, nullptr);
  return why.last_failure;
}
