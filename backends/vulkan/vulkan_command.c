#include "backends/vulkan/vulkan_command.h"

#include "backends/vulkan/vulkan_entries.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

/* Invariants: only the recording that took a pool touches it. gm begins a command buffer again only after its point was
 * reached. Every command buffer of gm begins and ends with a full barrier. So gm's work on a queue is ordered, and the
 * engine's later work sees it. */

enum { COMMAND_LOOKS = 4 }; /* so many command buffers are looked at before gm makes a new one */

struct gm__vulkan_command {
  gm__vulkan_command *next;
  VkCommandBuffer handle;
  gm_backend_point point; /* the command buffer is unused once this is reached */
};

struct gm__vulkan_command_pool {
  gm__vulkan_command_pool *next;
  VkCommandPool handle;
  uint32_t family;
  bool taken; /* guarded by the device lock */
  gm__vulkan_command *oldest, *newest;
};

static gm_status command_no_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "vkCreateCommandPool", "no host memory for a command buffer");
}

static gm__vulkan_command_pool *command_pool_find(gm__vulkan_device *device, uint32_t family) {
  gm__mutex_lock(&device->mutex);
  gm__vulkan_command_pool *pool = device->pools;
  while (pool && (pool->taken || pool->family != family)) pool = pool->next;
  if (pool) pool->taken = true;
  gm__mutex_unlock(&device->mutex);
  return pool;
}

static gm_status command_pool_create(gm__vulkan_device *device, uint32_t family, gm__vulkan_command_pool **out,
                                     gm_error *err) {
  gm__vulkan_command_pool *pool = gm__alloc(device->services, sizeof *pool);
  if (!pool) return command_no_memory(err);
  const VkCommandPoolCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
      .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT | VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
      .queueFamilyIndex = family};
  VkResult result = device->syms.vkCreateCommandPool(device->handle, &info, NULL, &pool->handle);
  if (result || !pool->handle) {
    gm__release(device->services, pool, sizeof *pool);
    return gm__vulkan_device_fail(device, result, "vkCreateCommandPool", err);
  }
  pool->family = family;
  pool->taken = true;
  gm__mutex_lock(&device->mutex);
  pool->next = device->pools;
  device->pools = pool;
  gm__mutex_unlock(&device->mutex);
  *out = pool;
  return GM_OK;
}

static void command_pool_put(gm__vulkan_device *device, gm__vulkan_command_pool *pool) {
  gm__mutex_lock(&device->mutex);
  pool->taken = false;
  gm__mutex_unlock(&device->mutex);
}

static void command_append(gm__vulkan_command_pool *pool, gm__vulkan_command *command) {
  command->next = NULL;
  if (pool->newest) {
    pool->newest->next = command;
  } else {
    pool->oldest = command;
  }
  pool->newest = command;
}

static gm__vulkan_command *command_pop(gm__vulkan_command_pool *pool) {
  gm__vulkan_command *command = pool->oldest;
  pool->oldest = command->next;
  if (!pool->oldest) pool->newest = NULL;
  return command;
}

static gm__vulkan_command *command_reuse(gm__vulkan_device *device, gm__vulkan_command_pool *pool) {
  for (int i = 0; i < COMMAND_LOOKS && pool->oldest; i++) {
    gm__vulkan_command *command = command_pop(pool);
    bool done = false;
    if (gm__vulkan_point_done(device, &command->point, &done, NULL) == GM_OK && done) return command;
    command_append(pool, command);
  }
  return NULL;
}

static gm_status command_create(gm__vulkan_device *device, gm__vulkan_command_pool *pool, gm__vulkan_command **out,
                                gm_error *err) {
  gm__vulkan_command *command = gm__alloc(device->services, sizeof *command);
  if (!command) return command_no_memory(err);
  const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = pool->handle,
                                            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                            .commandBufferCount = 1};
  VkResult result = device->syms.vkAllocateCommandBuffers(device->handle, &info, &command->handle);
  if (result || !command->handle) {
    gm__release(device->services, command, sizeof *command);
    return gm__vulkan_device_fail(device, result, "vkAllocateCommandBuffers", err);
  }
  *out = command;
  return GM_OK;
}

/* Free the command buffer, and put the pool back. */
void gm__vulkan_command_cancel(gm__vulkan_recording *recording) {
  gm__vulkan_device *device = recording->device;
  if (recording->command) {
    device->syms.vkFreeCommandBuffers(device->handle, recording->pool->handle, 1, &recording->command->handle);
    gm__release(device->services, recording->command, sizeof *recording->command);
  }
  command_pool_put(device, recording->pool);
  *recording = (gm__vulkan_recording){0};
}

void gm__vulkan_command_barrier(const gm__vulkan_recording *recording) {
  const VkAccessFlags access = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  const VkMemoryBarrier barrier = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = access, .dstAccessMask = access};
  const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT;
  recording->device->syms.vkCmdPipelineBarrier(recording->buffer, stages, stages, 0, 1, &barrier, 0, NULL, 0, NULL);
}

gm_status gm__vulkan_command_begin(gm__vulkan_device *device, uint32_t family, gm__vulkan_recording *out,
                                   gm_error *err) {
  gm__vulkan_recording recording = {.device = device, .pool = command_pool_find(device, family)};
  gm_status status = recording.pool ? GM_OK : command_pool_create(device, family, &recording.pool, err);
  if (status) return status;
  recording.command = command_reuse(device, recording.pool);
  if (!recording.command) status = command_create(device, recording.pool, &recording.command, err);
  if (!status) {
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    recording.buffer = recording.command->handle;
    VkResult result = device->syms.vkBeginCommandBuffer(recording.buffer, &info);
    if (result) status = gm__vulkan_device_fail(device, result, "vkBeginCommandBuffer", err);
  }
  if (status) {
    gm__vulkan_command_cancel(&recording);
    return status;
  }
  gm__vulkan_command_barrier(&recording);
  *out = recording;
  return GM_OK;
}

gm_status gm__vulkan_command_submit(gm__vulkan_recording *recording, gm__vulkan_stream *stream, gm_backend_point *out,
                                    gm_error *err) {
  gm__vulkan_device *device = recording->device;
  gm__vulkan_command_barrier(recording);
  VkResult result = device->syms.vkEndCommandBuffer(recording->buffer);
  gm_backend_point point;
  gm_status status = result ? gm__vulkan_device_fail(device, result, "vkEndCommandBuffer", err)
                            : gm__vulkan_stream_submit(stream, recording->buffer, NULL, &point, err);
  if (status) {
    gm__vulkan_command_cancel(recording);
    return status;
  }
  recording->command->point = point;
  command_append(recording->pool, recording->command);
  command_pool_put(device, recording->pool);
  if (out) *out = point;
  return GM_OK;
}

void gm__vulkan_command_clear(gm__vulkan_device *device) {
  for (gm__vulkan_command_pool *pool = device->pools; pool; pool = pool->next) {
    device->syms.vkDestroyCommandPool(device->handle, pool->handle, NULL);
  }
}

void gm__vulkan_command_forget(gm__vulkan_device *device) {
  while (device->pools) {
    gm__vulkan_command_pool *pool = device->pools;
    device->pools = pool->next;
    while (pool->oldest) gm__release(device->services, command_pop(pool), sizeof(gm__vulkan_command));
    gm__release(device->services, pool, sizeof *pool);
  }
}
