/* Memory that other processes share: as an opaque descriptor or as a dma-buf. Invariants: the driver takes an imported
 * descriptor, so gm gives it a duplicate, and the caller keeps its own. The words from another process are hostile
 * input. Vulkan cannot check the device, the driver, the size and the type of an opaque descriptor: gm checks them
 * before the driver sees it. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "backends/shared/uuid.h"
#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_mem_open.h"
#include "core/base/error.h"

static const char share_op[] = "gm_backend_ops.share_import";

/* The words that travel beside the descriptor, in gm_shared.ipc. */
typedef struct share_words {
  uint8_t driver_uuid[VK_UUID_SIZE];
  uint32_t type; /* Vulkan's index */
  uint32_t dedicated;
  uint64_t allocated; /* bytes of the VkDeviceMemory (gm_shared.whole_bytes are the bytes of its buffer) */
} share_words;

_Static_assert(sizeof(share_words) <= GM_SHARE_IPC_BYTES, "room for them");

gm_status gm__vulkan_share_export(void *user, const gm_memory *described, gm_share_kind kind, gm_shared *out,
                                  gm_error *err) {
  static const char op[] = "vkGetMemoryFdKHR";
  gm__vulkan_device *device = user;
  const gm__vulkan_memory *memory = gm__vulkan_memory_of(described);
  if (kind == GM_SHARE_NONE || memory->share != kind || !memory->counted) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, op,
                    "the memory was not allocated to be shared in way %d (gm_memory_params.share)", (int)kind);
  }
  const VkMemoryGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                     .memory = memory->memory,
                                     .handleType = gm__vulkan_handle_type(kind)};
  int fd = -1;
  VkResult result = device->syms.vkGetMemoryFdKHR(device->handle, &info, &fd);
  if (result) return gm__vulkan_device_fail(device, result, op, err);
  if (fd < 0) return gm__fail(err, GM_ERR_DRIVER, op, "vkGetMemoryFdKHR succeeded and gave no descriptor");
  share_words words = {.type = memory->type.index, .dedicated = memory->dedicated, .allocated = memory->allocated};
  memcpy(words.driver_uuid, device->physical.driver_uuid, sizeof words.driver_uuid);
  *out = (gm_shared){.struct_size = sizeof *out,
                     .kind = kind,
                     .bytes = memory->bytes,
                     .offset = memory->memory_at,
                     .whole_bytes = memory->buffer_bytes,
                     .type = described->type,
                     .fd = fd};
  memcpy(out->device_uuid, device->physical.uuid, sizeof out->device_uuid);
  memcpy(out->ipc, &words, sizeof words);
  return GM_OK;
}

static gm_status share_check_shape(const gm__vulkan_device *device, const gm_shared *shared, gm_error *err) {
  if (shared->struct_size < sizeof *shared) {
    return gm__bad_argument(err, share_op, "`shared` has struct_size %u, wanted are %zu", shared->struct_size,
                            sizeof *shared);
  }
  if ((shared->kind != GM_SHARE_FD && shared->kind != GM_SHARE_DMABUF) || !device->shares[shared->kind].can.imports) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, share_op, "%.100s cannot take memory that is shared in way %d",
                    device->physical.props.deviceName, (int)shared->kind);
  }
  if (shared->fd < 0) return gm__bad_argument(err, share_op, "`shared`: fd is %d", shared->fd);
  if (!shared->bytes || shared->offset > shared->whole_bytes || shared->bytes > shared->whole_bytes - shared->offset) {
    return gm__bad_argument(err, share_op, "`shared`: %" PRIu64 " bytes at %" PRIu64 " of %" PRIu64, shared->bytes,
                            shared->offset, shared->whole_bytes);
  }
  return GM_OK;
}

/* Opaque memory belongs to one driver and one device. Other drivers and devices can take a dma-buf too. */
static gm_status share_check_origin(const gm__vulkan_device *device, const gm_shared *shared, const share_words *words,
                                    gm_error *err) {
  const uint8_t *mine = device->physical.uuid;
  const bool tell = !gm__uuid_is_zero(mine, sizeof device->physical.uuid) &&
                    !gm__uuid_is_zero(shared->device_uuid, sizeof shared->device_uuid);
  if (tell && memcmp(shared->device_uuid, mine, sizeof shared->device_uuid) != 0) {
    return gm__bad_argument(err, share_op, "`shared`: the memory is another device's");
  }
  if (shared->kind == GM_SHARE_FD &&
      memcmp(words->driver_uuid, device->physical.driver_uuid, sizeof words->driver_uuid) != 0) {
    return gm__bad_argument(err, share_op, "`shared`: the memory is another driver's, or another version's");
  }
  return GM_OK;
}

/* Choose the memory type. Opaque memory has the exporter's type. For a dma-buf the driver tells the possible types.
 */
static gm_status share_type(gm__vulkan_device *device, const gm_shared *shared, const share_words *words, uint32_t *out,
                            gm_error *err) {
  uint32_t bits = device->shares[shared->kind].type_bits;
  if (shared->kind == GM_SHARE_DMABUF) {
    VkMemoryFdPropertiesKHR props = {.sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR};
    VkResult result = device->syms.vkGetMemoryFdPropertiesKHR(device->handle, gm__vulkan_handle_type(shared->kind),
                                                              shared->fd, &props);
    if (result) return gm__vulkan_device_fail(device, result, "vkGetMemoryFdPropertiesKHR", err);
    bits &= props.memoryTypeBits;
  } else if (words->type < 32) {
    bits &= 1u << words->type;
  } else {
    bits = 0;
  }
  for (uint32_t i = 0; i < device->type_count; i++) {
    if (!(bits >> device->types[i].index & 1)) continue;
    *out = i;
    return GM_OK;
  }
  return gm__bad_argument(err, share_op, "`shared`: the device has no memory type for it");
}

/* Find the size of the allocation. For a foreign dma-buf only the system knows it. gm refuses a claim that is larger
 * than the size that the system knows. */
static gm_status share_size(const gm_shared *shared, const share_words *words, uint64_t *out, gm_error *err) {
  const off_t end = lseek(shared->fd, 0, SEEK_END);
  const uint64_t there = end > 0 ? (uint64_t)end : UINT64_MAX;
  const uint64_t said = words->allocated ? words->allocated : shared->whole_bytes;
  if (said < shared->whole_bytes || said > there) {
    return gm__bad_argument(err, share_op,
                            "`shared`: a buffer of %" PRIu64 " bytes in an allocation of %" PRIu64 ", and %" PRIu64
                            " are behind the descriptor",
                            shared->whole_bytes, said, there);
  }
  *out = words->allocated || there == UINT64_MAX ? said : there;
  return GM_OK;
}

static gm_status share_open(gm__vulkan_device *device, const gm_shared *shared, const share_words *words, uint32_t type,
                            gm_memory *out, gm_error *err) {
  gm__vulkan_memory_wish wish = {.type = &device->types[type],
                                 .bytes = shared->bytes,
                                 .offset = shared->offset,
                                 .buffer_bytes = shared->whole_bytes,
                                 .share = shared->kind,
                                 .import = true,
                                 .dedicated = words->dedicated || device->shares[shared->kind].can.dedicated};
  gm__vulkan_memory *memory = NULL;
  gm_status status = share_size(shared, words, &wish.whole_bytes, err);
  if (status) return status;
  wish.fd = fcntl(shared->fd, F_DUPFD_CLOEXEC, 0);
  if (wish.fd < 0) return gm__bad_argument(err, share_op, "`shared`: fd %d is not open", shared->fd);
  status = gm__vulkan_memory_make(device, &wish, &memory, err);
  if (!wish.taken) close(wish.fd);
  if (status) return status;
  *out = gm__vulkan_memory_describe(memory, type);
  out->wrapped = true;
  return GM_OK;
}

gm_status gm__vulkan_share_import(void *user, const gm_shared *shared, gm_memory *out, gm_error *err) {
  gm__vulkan_device *device = user;
  share_words words;
  uint32_t type = 0;
  gm_status status = share_check_shape(device, shared, err);
  if (status) return status;
  memcpy(&words, shared->ipc, sizeof words);
  status = share_check_origin(device, shared, &words, err);
  if (!status) status = gm__vulkan_device_state(device, err);
  if (!status) status = share_type(device, shared, &words, &type, err);
  return status ? status : share_open(device, shared, &words, type, out, err);
}

gm_status gm__vulkan_share_export_vmm(void *device, uint64_t handle, uint64_t bytes, gm_shared *out, gm_error *err) {
  (void)device, (void)handle, (void)bytes, (void)out;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_backend_ops.share_export_vmm",
                  "memory behind sparse buffers is not shared: use memory_alloc with a way to share");
}

gm_status gm__vulkan_share_import_vmm(void *device, const gm_shared *shared, uint64_t *out_handle, gm_error *err) {
  (void)device, (void)shared, (void)out_handle;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_backend_ops.share_import_vmm",
                  "memory behind sparse buffers is not shared: use share_import");
}
