// ggml-vulkan's buffers from gm: its instance and device are adopted, and each buffer is a dedicated block, mapped for
// life where the host sees it. gm uses no queue.
#include <ggml-vulkan-common.h>  // includes ggml_vulkan_gm.h, which needs its types
#include "gm/gm.h"
#include "gm/native_vulkan.h"

struct ggml_vk_gm {
  gm_context *ctx = nullptr;
  gm_device *device = nullptr;
  gm_pool *pool = nullptr;

  ~ggml_vk_gm() {
    gm_error err{};
    if (gm_pool_destroy(pool, &err) || gm_device_close(device, &err) || gm_context_destroy(ctx, &err))
      GGML_LOG_ERROR("ggml_vulkan: gm: %s\n", err.message);
  }
};

template <typename Handle>
static uintptr_t number(Handle handle) {
  return reinterpret_cast<uintptr_t>(static_cast<typename Handle::NativeType>(handle));
}

static gm_status adopt(const vk_device_struct &device, ggml_vk_gm &gm, gm_error *err) {
  const uint32_t compute = device.compute_queue->queue_family_index;
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
  return gm_device_adopt(gm.ctx, &lent.head, &gm.device, err);
}

static std::shared_ptr<ggml_vk_gm> open_gm(const vk_device_struct &device) {
  gm_context_params context{};
  context.struct_size = sizeof context;
  context.backends = "vulkan";
  gm_pool_params pool{};
  pool.struct_size = sizeof pool;
  pool.name = "ggml-vulkan";
  pool.keep_bytes = GM_NO_BYTES;  // what ggml frees goes back to the driver, as without gm
  auto gm = std::make_shared<ggml_vk_gm>();
  gm_error err{};
  if (gm_context_create(&context, &gm->ctx, &err) || adopt(device, *gm, &err) ||
      gm_pool_create(gm->device, &pool, &gm->pool, &err))
    throw vk::InitializationFailedError(err.message);
  return gm;
}

// The buffer alone in its memory: ggml binds it at offset 0.
static gm_request request_for(vk::MemoryPropertyFlags flags, size_t size) {
  using bit = vk::MemoryPropertyFlagBits;
  gm_request request{};
  request.bytes = size;
  request.flags = GM_DEDICATED | (flags & bit::eHostVisible ? GM_MAPPED : 0);
  request.must_be = flags & bit::eDeviceLocal ? GM_DEVICE_LOCAL : GM_DEVICE_ACCESSIBLE;
  request.require = (flags & bit::eDeviceLocal ? GM_MEMORY_DEVICE_LOCAL : 0) |
                    (flags & bit::eHostVisible ? GM_MEMORY_HOST_VISIBLE : 0) |
                    (flags & bit::eHostCoherent ? GM_MEMORY_HOST_COHERENT : 0) |
                    (flags & bit::eHostCached ? GM_MEMORY_HOST_CACHED : 0);
  if (!(flags & bit::eDeviceLocal)) request.prefer = GM_MEMORY_SYSTEM;  // pinned memory is not VRAM that the host sees
  return request;
}

// A block, which goes back to the pool with its last owner.
struct owned_block {
  std::shared_ptr<ggml_vk_gm> gm;
  gm_block block{};

  ~owned_block() {
    if (block.bytes && gm_free(gm->pool, &block, nullptr)) GGML_LOG_ERROR("ggml_vulkan: gm keeps a block\n");
  }
};

[[noreturn]] static void refuse(const ggml_vk_gm &gm, vk::MemoryPropertyFlags flags, size_t size) {
  const gm_request request = request_for(flags, size);
  gm_explanation why{};
  why.struct_size = sizeof why;
  gm_explain(gm.pool, &request, &why, nullptr);
  throw vk::OutOfDeviceMemoryError(why.text);
}

static bool is_off() {
  const char *word = getenv("GGML_VK_GM");
  return word && strcmp(word, "0") == 0;
}

bool ggml_vk_gm_create_buffer(vk_device &device, vk_buffer_struct &buf, size_t size,
                              const std::initializer_list<vk::MemoryPropertyFlags> &wanted) {
  if (is_off()) return false;
  {
    std::lock_guard<std::recursive_mutex> guard(device->mutex);
    if (!device->gm) device->gm = open_gm(*device);
  }
  auto owned = std::make_shared<owned_block>();
  owned->gm = device->gm;
  const auto has_block = [&](vk::MemoryPropertyFlags flags) {
    const gm_request request = request_for(flags, size);
    return gm_acquired(gm_alloc(owned->gm->pool, &request, &owned->block));
  };
  if (std::none_of(wanted.begin(), wanted.end(), has_block)) refuse(*device->gm, *(wanted.end() - 1), size);
  gm_vulkan_memory native{};
  native.head = {sizeof native, GM_API_VULKAN};
  gm_error err{};
  if (gm_block_native(owned->gm->pool, &owned->block, &native.head, &err)) throw vk::UnknownError(err.message);
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
