// ggml-vulkan's buffers from gm: its instance and device are adopted, and each buffer is a dedicated block, mapped for
// life where the host sees it. Freed ones serve again. gm uses no queue.
#include <ggml-vulkan-common.h>  // includes ggml_vulkan_gm.h, which needs its types
#include "gm/gm.hpp"
#include "gm/native_vulkan.h"

struct ggml_vk_gm {
  explicit ggml_vk_gm(gm::pool made) : pool(std::move(made)) {}
  gm::pool pool;  // owns gm's device and context
  std::mutex lock;
  std::atomic<size_t> owned{0};
};

// The most that is kept of freed buffers while others live. A model is larger: its memory goes back at once.
static constexpr uint64_t kept_bytes = UINT64_C(64) << 20;

template <typename Handle>
static uintptr_t number(Handle handle) {
  return reinterpret_cast<uintptr_t>(static_cast<typename Handle::NativeType>(handle));
}

static gm::pool open_pool(const vk_device_struct &device) try {
  const uint32_t compute = device.compute_queue->queue_family_index;
  gm_context_params alone{};
  alone.struct_size = sizeof alone;
  alone.backends = "vulkan";
  gm_vulkan_device lent{};
  lent.head = {sizeof lent, GM_API_VULKAN};
  lent.instance = number(vk_instance.instance);
  lent.physical_device = number(device.physical_device);
  lent.device = number(device.device);
  lent.get_instance_proc = reinterpret_cast<uintptr_t>(VULKAN_HPP_DEFAULT_DISPATCHER.vkGetInstanceProcAddr);
  lent.api_version = vk::enumerateInstanceVersion();
  lent.features = device.buffer_device_address ? GM_VULKAN_BUFFER_DEVICE_ADDRESS : 0;
  lent.queue_families = &compute;
  lent.queue_family_count = 1;
  lent.sharing = GM_VULKAN_SHARING_EXCLUSIVE;  // as ggml's own buffers
  gm_pool_params params{};
  params.struct_size = sizeof params;
  params.name = "ggml-vulkan";
  params.keep_bytes = kept_bytes;
  gm_error err{};
  const gm::context context = gm::must(gm::context::create(&alone, &err), err);
  const gm::device adopted = gm::must(gm::device::adopt(context, lent.head, &err), err);
  return gm::must(gm::pool::create(adopted, &params, &err), err);
} catch (const gm::failure &why) {
  throw vk::InitializationFailedError(why.what());
}

static_assert(GM_MEMORY_DEVICE_LOCAL == VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT &&
                  GM_MEMORY_HOST_VISIBLE == VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT &&
                  GM_MEMORY_HOST_COHERENT == VK_MEMORY_PROPERTY_HOST_COHERENT_BIT &&
                  GM_MEMORY_HOST_CACHED == VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
              "a wish of ggml's is one of gm's");

// The buffer alone in its memory: ggml binds it at offset 0.
static gm_request request_for(vk::MemoryPropertyFlags flags, size_t size) {
  gm_request request{};
  request.bytes = size;
  request.must_be = GM_DEVICE_ACCESSIBLE;
  request.require = static_cast<uint32_t>(flags);
  request.flags = GM_DEDICATED | (request.require & GM_MEMORY_HOST_VISIBLE ? GM_MAPPED : 0);
  // Pinned memory is not VRAM that the host sees.
  request.prefer = request.require & GM_MEMORY_DEVICE_LOCAL ? 0 : GM_MEMORY_SYSTEM;
  return request;
}

// A kept buffer of that size, or a new one. Beside a new one so much stays that the pool has a 64th more at most than
// ggml had in use at once. Without that 64th each buffer of a full round would push out one that comes next.
static gm::block take(ggml_vk_gm &gm, gm_request request) {
  const std::lock_guard<std::mutex> guard(gm.lock);
  request.flags |= GM_POOLED_ONLY;
  gm::block block = gm.pool.alloc(request);
  if (block) return block;
  gm_stats now{};
  gm.pool.stats(now);
  const uint64_t needs = now.in_use_bytes + request.bytes;
  const uint64_t most = std::max(now.peak_in_use_bytes, needs);
  gm.pool.trim(most + most / 64 - needs);
  request.flags &= ~GM_POOLED_ONLY;
  return gm.pool.alloc(request);
}

// A block goes back to the pool with its last owner. With the device's last block all memory goes back to the driver.
struct owned_block {
  explicit owned_block(std::shared_ptr<ggml_vk_gm> owner) : gm(std::move(owner)) { ++gm->owned; }
  ~owned_block() {
    block = {};
    if (--gm->owned == 0) gm->pool.trim();
  }
  std::shared_ptr<ggml_vk_gm> gm;
  gm::block block;
};

[[noreturn]] static void refuse(const gm::pool &pool, const gm_request &request) {
  gm_explanation why{};
  why.struct_size = sizeof why;
  gm_explain(pool.get(), &request, &why, nullptr);
  throw vk::OutOfDeviceMemoryError(why.text);
}

bool ggml_vk_gm_create_buffer(vk_device &device, vk_buffer_struct &buf, size_t size,
                              const std::initializer_list<vk::MemoryPropertyFlags> &wanted) {
  const char *word = getenv("GGML_VK_GM");
  if (word && strcmp(word, "0") == 0) return false;
  {
    std::lock_guard<std::recursive_mutex> guard(device->mutex);
    if (!device->gm) device->gm = std::make_shared<ggml_vk_gm>(open_pool(*device));
  }
  const gm::pool &pool = device->gm->pool;
  auto owned = std::make_shared<owned_block>(device->gm);
  for (auto flags = wanted.begin(); !owned->block && flags != wanted.end(); ++flags)
    owned->block = take(*device->gm, request_for(*flags, size));
  if (!owned->block) refuse(pool, request_for(*(wanted.end() - 1), size));
  gm_vulkan_memory native{};
  native.head = {sizeof native, GM_API_VULKAN};
  gm_error err{};
  if (gm_block_native(pool.get(), &owned->block.get(), &native.head, &err)) throw vk::UnknownError(err.message);
  const auto types = device->physical_device.getMemoryProperties();
  buf.memory_property_flags = types.memoryTypes[native.memory_type].propertyFlags;
  buf.buffer = reinterpret_cast<VkBuffer>(native.buffer);
  buf.device_memory = reinterpret_cast<VkDeviceMemory>(native.memory);
  buf.bda_addr = native.device_address;
  buf.ptr = native.mapped;
  buf.size = size;
  buf.device = device;
  buf.gm_block = owned;
  return true;
}
