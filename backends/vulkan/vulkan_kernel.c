#include "backends/vulkan/vulkan_kernel.h"

#include <string.h>

#include "backends/vulkan/expand_spv.h"
#include "backends/vulkan/scatter_spv.h"
#include "backends/vulkan/vulkan_command.h"
#include "backends/vulkan/vulkan_copy.h"
#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_map.h"
#include "backends/vulkan/vulkan_mem_open.h"
#include "backends/vulkan/vulkan_stream.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/saturate.h"

/* Invariants: one thread moves `state` from NONE to BUSY. It writes all other members before it sets READY. REFUSED
 * stays. A thread that finds BUSY does not wait: it goes without the shader. A thread that holds a slot alone touches
 * it, and the device is done with it then. */

enum { KERNEL_NONE, KERNEL_BUSY, KERNEL_READY, KERNEL_REFUSED };
enum { KERNEL_LEAST = 16, KERNEL_ITEMS = 1024, KERNEL_ITEM_MOST = 65536, KERNEL_BUFFERS = 3 };

/* KERNEL_ALIGN: the most that Vulkan lets a driver ask for the place of a storage buffer. */
enum { KERNEL_WORD = 4, KERNEL_ALIGN = 256, KERNEL_TABLE = KERNEL_ITEMS * 4 * KERNEL_WORD };
enum { KERNEL_TABLES = VULKAN_KERNEL_SLOTS * KERNEL_TABLE };

/* ---- the shader ---- */

static bool kernel_is_known(const gm__vulkan_syms *vk) {
  return vk->vkCreateShaderModule && vk->vkDestroyShaderModule && vk->vkCreateDescriptorSetLayout &&
         vk->vkDestroyDescriptorSetLayout && vk->vkCreatePipelineLayout && vk->vkDestroyPipelineLayout &&
         vk->vkCreateComputePipelines && vk->vkDestroyPipeline && vk->vkCreateDescriptorPool &&
         vk->vkDestroyDescriptorPool && vk->vkAllocateDescriptorSets && vk->vkUpdateDescriptorSets &&
         vk->vkCmdBindPipeline && vk->vkCmdBindDescriptorSets && vk->vkCmdDispatch;
}

static gm_status kernel_make_layouts(gm__vulkan_device *device, gm_error *err) {
  const gm__vulkan_syms *vk = &device->syms;
  gm__vulkan_kernels *kernels = &device->kernels;
  VkDescriptorSetLayoutBinding bindings[KERNEL_BUFFERS];
  for (uint32_t i = 0; i < KERNEL_BUFFERS; i++) {
    bindings[i] = (VkDescriptorSetLayoutBinding){.binding = i,
                                                 .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                 .descriptorCount = 1,
                                                 .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
  }
  const VkDescriptorSetLayoutCreateInfo set = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                               .bindingCount = KERNEL_BUFFERS,
                                               .pBindings = bindings};
  VkResult result = vk->vkCreateDescriptorSetLayout(device->handle, &set, NULL, &kernels->set_layout);
  if (result || !kernels->set_layout) {
    return gm__vulkan_device_fail(device, result, "vkCreateDescriptorSetLayout", err);
  }
  const VkPipelineLayoutCreateInfo layout = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1, .pSetLayouts = &kernels->set_layout};
  result = vk->vkCreatePipelineLayout(device->handle, &layout, NULL, &kernels->layout);
  return result || !kernels->layout ? gm__vulkan_device_fail(device, result, "vkCreatePipelineLayout", err) : GM_OK;
}

static gm_status kernel_compile(gm__vulkan_device *device, const uint32_t *words, size_t bytes, VkPipeline *out,
                                gm_error *err) {
  const gm__vulkan_syms *vk = &device->syms;
  VkShaderModule shader = VK_NULL_HANDLE;
  const VkShaderModuleCreateInfo code = {
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes, .pCode = words};
  VkResult result = vk->vkCreateShaderModule(device->handle, &code, NULL, &shader);
  if (result || !shader) return gm__vulkan_device_fail(device, result, "vkCreateShaderModule", err);
  const VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                      .module = shader,
                                                      .pName = "main"},
                                            .layout = device->kernels.layout};
  result = vk->vkCreateComputePipelines(device->handle, VK_NULL_HANDLE, 1, &info, NULL, out);
  vk->vkDestroyShaderModule(device->handle, shader, NULL);
  return result || !*out ? gm__vulkan_device_fail(device, result, "vkCreateComputePipelines", err) : GM_OK;
}

/* ---- the slots ---- */

/* Memory that the host writes, in the device's if there is such. */
static const gm__vulkan_type *kernel_type(const gm__vulkan_device *device) {
  const gm__vulkan_type *found = NULL;
  for (uint32_t i = 0; i < device->type_count; i++) {
    const gm__vulkan_type *type = &device->types[i];
    if (!(type->flags & GM_MEMORY_HOST_VISIBLE)) continue;
    if (!found || (type->flags & ~found->flags & GM_MEMORY_DEVICE_LOCAL)) found = type;
  }
  return found;
}

static gm_status kernel_make_memory(gm__vulkan_device *device, gm_error *err) {
  gm__vulkan_kernels *kernels = &device->kernels;
  gm__vulkan_memory_wish wish = {.type = kernel_type(device), .bytes = KERNEL_TABLES, .inner = true};
  if (!wish.type) return gm__fail(err, GM_ERR_NOT_SUPPORTED, "vkAllocateMemory", "no memory is host-visible");
  gm_status status = gm__vulkan_memory_make(device, &wish, &kernels->memory, err);
  if (!status) status = gm__vulkan_host(device, kernels->memory, &kernels->host, err);
  return status;
}

static gm_status kernel_make_slots(gm__vulkan_device *device, gm_error *err) {
  const gm__vulkan_syms *vk = &device->syms;
  gm__vulkan_kernels *kernels = &device->kernels;
  const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, KERNEL_BUFFERS * VULKAN_KERNEL_SLOTS};
  const VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                           .maxSets = VULKAN_KERNEL_SLOTS,
                                           .poolSizeCount = 1,
                                           .pPoolSizes = &size};
  VkResult result = vk->vkCreateDescriptorPool(device->handle, &pool, NULL, &kernels->pool);
  if (result || !kernels->pool) return gm__vulkan_device_fail(device, result, "vkCreateDescriptorPool", err);
  for (uint32_t i = 0; i < VULKAN_KERNEL_SLOTS; i++) {
    gm__vulkan_kernel_slot *slot = &kernels->slots[i];
    const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = kernels->pool,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &kernels->set_layout};
    result = vk->vkAllocateDescriptorSets(device->handle, &info, &slot->set);
    if (result || !slot->set) return gm__vulkan_device_fail(device, result, "vkAllocateDescriptorSets", err);
    slot->offset = (uint64_t)i * KERNEL_TABLE;
  }
  return GM_OK;
}

static gm_status kernel_make(gm__vulkan_device *device, gm_error *err) {
  if (!kernel_is_known(&device->syms)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "vkGetDeviceProcAddr", "the driver has no entries for shaders");
  }
  gm_status status = kernel_make_layouts(device, err);
  if (!status) status = kernel_compile(device, scatter_words, sizeof scatter_words, &device->kernels.scatter, err);
  if (!status) status = kernel_compile(device, expand_words, sizeof expand_words, &device->kernels.expand, err);
  if (!status) status = kernel_make_memory(device, err);
  if (!status) status = kernel_make_slots(device, err);
  return status;
}

static bool kernel_ready(gm__vulkan_device *device) {
  int state = atomic_load(&device->kernels.state);
  gm_error why;
  if (state == KERNEL_READY) return true;
  if (state != KERNEL_NONE || !atomic_compare_exchange_strong(&device->kernels.state, &state, KERNEL_BUSY)) {
    return false;
  }
  gm__error_none(&why);
  const bool failed = kernel_make(device, &why) != GM_OK;
  if (failed) {
    gm__log(device->services, GM_LOG_INFO, "%.100s: small copies go one by one, not by a shader: %s",
            device->physical.props.deviceName, why.message);
  }
  atomic_store(&device->kernels.state, failed ? KERNEL_REFUSED : KERNEL_READY);
  return !failed;
}

/* A slot that nobody holds and the device does not use, or NULL. */
static gm__vulkan_kernel_slot *kernel_slot(gm__vulkan_device *device) {
  for (uint32_t i = 0; i < VULKAN_KERNEL_SLOTS; i++) {
    gm__vulkan_kernel_slot *slot = &device->kernels.slots[i];
    bool done = false;
    if (atomic_exchange(&slot->held, true)) continue;
    if (gm__vulkan_point_done(device, &slot->busy, &done, NULL) == GM_OK && done) return slot;
    atomic_store(&slot->held, false);
  }
  return NULL;
}

/* ---- a run ---- */

/* The part of a buffer that a run touches: [first, end). */
typedef struct kernel_part {
  const gm__vulkan_memory *memory;
  uint64_t first, end;
} kernel_part;

static bool kernel_part_add(kernel_part *part, const gm_memory *memory, uint64_t offset, uint64_t bytes) {
  const uint64_t at = part->memory->buffer_at + offset;
  if (gm__vulkan_memory_of(memory) != part->memory || at % KERNEL_WORD) return false;
  part->first = gm__min(part->first, at);
  part->end = gm__max(part->end, at + bytes);
  return true;
}

static bool kernel_part_suits(const gm__vulkan_device *device, kernel_part *part) {
  part->first -= part->first % KERNEL_ALIGN;
  return part->end > part->first && part->end - part->first <= device->physical.props.limits.maxStorageBufferRange;
}

/* The engine's own buffers need not be made for shaders. */
static bool kernel_suits_memory(const gm__vulkan_memory *to, const gm__vulkan_memory *from) {
  const bool apart = to->memory != from->memory || (to->range && to->buffer != from->buffer);
  return apart && !to->wrapped && !from->wrapped;
}

static bool kernel_suits(const gm__vulkan_device *device, const gm_copy_item *items, uint32_t count, kernel_part *to,
                         kernel_part *from) {
  if (count < KERNEL_LEAST || count > KERNEL_ITEMS) return false;
  *to = (kernel_part){gm__vulkan_memory_of(items[0].dst), UINT64_MAX, 0};
  *from = (kernel_part){gm__vulkan_memory_of(items[0].src), UINT64_MAX, 0};
  if (!kernel_suits_memory(to->memory, from->memory)) return false;
  for (uint32_t i = 0; i < count; i++) {
    const gm_copy_item *item = &items[i];
    if (item->bytes > KERNEL_ITEM_MOST || item->bytes % KERNEL_WORD) return false;
    if (i && item->dst_offset < item[-1].dst_offset + item[-1].bytes) return false;
    if (!kernel_part_add(to, item->dst, item->dst_offset, item->bytes)) return false;
    if (!kernel_part_add(from, item->src, item->src_offset, item->bytes)) return false;
  }
  return kernel_part_suits(device, to) && kernel_part_suits(device, from);
}

static gm_status kernel_write_items(gm__vulkan_device *device, gm__vulkan_kernel_slot *slot, const gm_copy_item *items,
                                    uint32_t count, const kernel_part *to, const kernel_part *from) {
  const gm__vulkan_kernels *kernels = &device->kernels;
  uint32_t *row = (uint32_t *)(void *)(kernels->host + slot->offset);
  for (uint32_t i = 0; i < count; i++, row += 4) {
    row[0] = (uint32_t)((to->memory->buffer_at + items[i].dst_offset - to->first) / KERNEL_WORD);
    row[1] = (uint32_t)((from->memory->buffer_at + items[i].src_offset - from->first) / KERNEL_WORD);
    row[2] = (uint32_t)(items[i].bytes / KERNEL_WORD);
    row[3] = 0;
  }
  slot->groups = count;
  slot->pipeline = kernels->scatter;
  return gm__vulkan_flush(device, kernels->memory, slot->offset, KERNEL_TABLE, NULL);
}

static void kernel_write_set(const gm__vulkan_device *device, const gm__vulkan_kernel_slot *slot, const kernel_part *to,
                             const kernel_part *from) {
  const gm__vulkan_memory *items = device->kernels.memory;
  const VkDescriptorBufferInfo parts[KERNEL_BUFFERS] = {{to->memory->buffer, to->first, to->end - to->first},
                                                        {from->memory->buffer, from->first, from->end - from->first},
                                                        {items->buffer, items->buffer_at + slot->offset, KERNEL_TABLE}};
  VkWriteDescriptorSet writes[KERNEL_BUFFERS];
  for (uint32_t i = 0; i < KERNEL_BUFFERS; i++) {
    writes[i] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                       .dstSet = slot->set,
                                       .dstBinding = i,
                                       .descriptorCount = 1,
                                       .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                       .pBufferInfo = &parts[i]};
  }
  device->syms.vkUpdateDescriptorSets(device->handle, KERNEL_BUFFERS, writes, 0, NULL);
}

gm__vulkan_kernel_slot *gm__vulkan_kernel_take(gm__vulkan_device *device, const gm__vulkan_stream *stream,
                                               const gm_copy_item *items, uint32_t count) {
  kernel_part to, from;
  /* A processor copies faster than it runs groups of threads. */
  if (device->physical.props.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) return NULL;
  if (!(device->physical.compute_families >> stream->queue->family & 1)) return NULL;
  if (!kernel_suits(device, items, count, &to, &from) || !kernel_ready(device)) return NULL;
  gm__vulkan_kernel_slot *slot = kernel_slot(device);
  if (!slot) return NULL;
  if (kernel_write_items(device, slot, items, count, &to, &from) != GM_OK) {
    gm__vulkan_kernel_give(slot, &(gm_backend_point){0});
    return NULL;
  }
  kernel_write_set(device, slot, &to, &from);
  return slot;
}

void gm__vulkan_kernel_record(const gm__vulkan_recording *recording, const gm__vulkan_kernel_slot *slot) {
  const gm__vulkan_syms *vk = &recording->device->syms;
  const gm__vulkan_kernels *kernels = &recording->device->kernels;
  const VkPipelineBindPoint compute = VK_PIPELINE_BIND_POINT_COMPUTE;
  vk->vkCmdBindPipeline(recording->buffer, compute, slot->pipeline);
  vk->vkCmdBindDescriptorSets(recording->buffer, compute, kernels->layout, 0, 1, &slot->set, 0, NULL);
  vk->vkCmdDispatch(recording->buffer, slot->groups, 1, 1);
}

/* ---- expansion ---- */

/* The most numbers that a thread has beside others; the device may have fewer threads. */
enum { KERNEL_GROUP = 64, KERNEL_GROUPS_MOST = 1024 };

typedef struct kernel_expansion {
  kernel_part to, from;
  uint32_t row[4]; /* as expand.comp reads it */
} kernel_expansion;

static bool kernel_expands(const gm__vulkan_device *device, const gm_memory *dst, uint64_t dst_offset,
                           const gm_memory *src, uint64_t src_offset, uint64_t count, kernel_expansion *out) {
  const gm__vulkan_memory *to = gm__vulkan_memory_of(dst), *from = gm__vulkan_memory_of(src);
  const uint64_t to_at = to->buffer_at + dst_offset, from_at = from->buffer_at + src_offset;
  if (to->wrapped || from->wrapped || to_at % 4 || from_at % 2 || count > UINT32_MAX / 4) return false;
  out->to = (kernel_part){to, to_at, to_at + 4 * count};
  out->from = (kernel_part){from, from_at, gm__round_up(from_at + 2 * count, KERNEL_WORD)};
  if (out->from.end > from->buffer_bytes) return false;
  if (!kernel_part_suits(device, &out->to) || !kernel_part_suits(device, &out->from)) return false;
  out->row[0] = (uint32_t)((to_at - out->to.first) / 4);
  out->row[1] = (uint32_t)((from_at - out->from.first) / 2);
  out->row[2] = (uint32_t)count;
  return true;
}

/* A slot, once the device does not use it. NULL: others hold all of them, or the device is lost. */
static gm__vulkan_kernel_slot *kernel_slot_in_time(gm__vulkan_device *device) {
  gm__vulkan_kernel_slot *slot = kernel_slot(device);
  for (uint32_t i = 0; i < VULKAN_KERNEL_SLOTS && !slot; i++) {
    gm__vulkan_kernel_slot *next = &device->kernels.slots[i];
    if (atomic_exchange(&next->held, true)) continue;
    if (gm__vulkan_point_wait(device, &next->busy, UINT64_MAX, NULL) == GM_OK) slot = next;
    if (!slot) atomic_store(&next->held, false);
  }
  return slot;
}

/* A slot with the numbers' places, or NULL: there is no shader, or others hold all slots. */
static gm__vulkan_kernel_slot *kernel_take_expansion(gm__vulkan_device *device, const gm__vulkan_stream *stream,
                                                     const kernel_expansion *what) {
  gm__vulkan_kernels *kernels = &device->kernels;
  if (!(device->physical.compute_families >> stream->queue->family & 1) || !kernel_ready(device)) return NULL;
  gm__vulkan_kernel_slot *slot = kernel_slot_in_time(device);
  if (!slot) return NULL;
  memcpy(kernels->host + slot->offset, what->row, sizeof what->row);
  if (gm__vulkan_flush(device, kernels->memory, slot->offset, KERNEL_TABLE, NULL) != GM_OK) {
    gm__vulkan_kernel_give(slot, &(gm_backend_point){0});
    return NULL;
  }
  slot->pipeline = kernels->expand;
  slot->groups = (uint32_t)gm__min(1 + what->row[2] / KERNEL_GROUP, KERNEL_GROUPS_MOST);
  kernel_write_set(device, slot, &what->to, &what->from);
  return slot;
}

gm_status gm__vulkan_op_expand(void *user, void *user_stream, const gm_memory *dst, uint64_t dst_offset,
                               const gm_memory *src, uint64_t src_offset, uint64_t count, gm_dtype from,
                               gm_backend_point *out, gm_error *err) {
  static const char op[] = "gm_backend_ops.expand";
  gm__vulkan_device *device = user;
  gm__vulkan_stream *stream = user_stream;
  kernel_expansion what = {.row = {0, 0, 0, from == GM_DTYPE_F16}};
  gm__vulkan_recording recording;
  gm_backend_point point = {0};
  gm_status status = gm__vulkan_copy_check(stream, op, err);
  if (status || !count) return gm__vulkan_copy_finish(device, status, &point, out, err);
  gm__vulkan_kernel_slot *slot = NULL;
  if (kernel_expands(device, dst, dst_offset, src, src_offset, count, &what)) {
    slot = kernel_take_expansion(device, stream, &what);
  }
  if (!slot) return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "no shader expands these numbers");
  status = gm__vulkan_command_begin(device, stream->queue->family, &recording, err);
  if (!status) {
    gm__vulkan_kernel_record(&recording, slot);
    status = gm__vulkan_command_submit(&recording, stream, &point, err);
  }
  gm__vulkan_kernel_give(slot, &point);
  return gm__vulkan_copy_finish(device, status, &point, out, err);
}

void gm__vulkan_kernel_give(gm__vulkan_kernel_slot *slot, const gm_backend_point *point) {
  slot->busy = *point;
  atomic_store(&slot->held, false);
}

/* ---- the end ---- */

void gm__vulkan_kernels_clear(gm__vulkan_device *device) {
  const gm__vulkan_syms *vk = &device->syms;
  gm__vulkan_kernels *kernels = &device->kernels;
  if (kernels->pool) vk->vkDestroyDescriptorPool(device->handle, kernels->pool, NULL);
  if (kernels->scatter) vk->vkDestroyPipeline(device->handle, kernels->scatter, NULL);
  if (kernels->expand) vk->vkDestroyPipeline(device->handle, kernels->expand, NULL);
  if (kernels->layout) vk->vkDestroyPipelineLayout(device->handle, kernels->layout, NULL);
  if (kernels->set_layout) vk->vkDestroyDescriptorSetLayout(device->handle, kernels->set_layout, NULL);
  gm__vulkan_memory_unmake(device, kernels->memory, GM_CLOSE_NORMAL);
  kernels->memory = NULL;
}

void gm__vulkan_kernels_forget(gm__vulkan_device *device) {
  gm__vulkan_memory_unmake(device, device->kernels.memory, GM_CLOSE_ABANDON);
  device->kernels.memory = NULL;
}
