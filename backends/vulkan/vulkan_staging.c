#include "backends/vulkan/vulkan_staging.h"

#include "backends/vulkan/vulkan_device.h"
#include "backends/vulkan/vulkan_map.h"
#include "backends/vulkan/vulkan_stream.h"
#include "core/base/error.h"

/* Invariants: a slot is in the hands of one thread, or free and busy until its point; what staging holds counts in its
 * heap like any other memory and never exceeds STAGING_BYTES. */

enum { STAGING_BYTES = 16 << 20, STAGING_LEAST = 64 << 10 };

void gm__vulkan_staging_init(gm__vulkan_staging *staging) {
  gm__mutex_init(&staging->mutex, GM__RANK_STAGING);
  gm__cond_init(&staging->cond);
}

void gm__vulkan_staging_destroy(gm__vulkan_staging *staging) {
  gm__cond_destroy(&staging->cond);
  gm__mutex_destroy(&staging->mutex);
}

/* The host reads and writes it: its own cached memory first, then cached, then any. */
static int staging_worth(const gm__vulkan_type *type) {
  if (!(type->flags & GM_MEMORY_HOST_VISIBLE)) return 0;
  return 1 + (type->flags & GM_MEMORY_HOST_CACHED ? 2 : 0) + (type->flags & GM_MEMORY_DEVICE_LOCAL ? 0 : 1);
}

static const gm__vulkan_type *staging_type(const gm__vulkan_device *device) {
  const gm__vulkan_type *best = NULL;
  for (uint32_t i = 0; i < device->type_count; i++) {
    const gm__vulkan_type *type = &device->types[i];
    if (staging_worth(type) > (best ? staging_worth(best) : 0)) best = type;
  }
  return best;
}

/* Half as much each time the heap has no room, down to what is still useful. */
static gm_status staging_allocate(gm__vulkan_device *device, const gm__vulkan_type *type, gm__vulkan_memory **out,
                                  gm_error *err) {
  gm_status status = GM_ERR_OUT_OF_DEVICE_MEMORY;
  for (uint64_t bytes = STAGING_BYTES; status && bytes >= STAGING_LEAST; bytes /= 2) {
    gm__vulkan_memory_wish wish = {.type = type, .bytes = bytes};
    status = gm__vulkan_memory_make(device, &wish, out, err);
    if (status != GM_ERR_OUT_OF_DEVICE_MEMORY && status != GM_ERR_ALLOCATION_TOO_LARGE) break;
  }
  return status;
}

/* Under the mutex. */
static gm_status staging_make(gm__vulkan_device *device, gm_error *err) {
  gm__vulkan_staging *staging = &device->staging;
  if (staging->memory) return GM_OK;
  const gm__vulkan_type *type = staging_type(device);
  if (!type) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "gm_backend_ops.copy", "the device has no host-visible memory type");
  }
  gm__vulkan_memory *memory;
  gm_status status = staging_allocate(device, type, &memory, err);
  if (status) return status;
  status = gm__vulkan_host(device, memory, &staging->host, err);
  if (status) {
    gm__vulkan_memory_unmake(device, memory, GM_CLOSE_NORMAL);
    return status;
  }
  staging->memory = memory;
  staging->slot_bytes = memory->bytes / VULKAN_STAGING_SLOTS;
  return GM_OK;
}

/* Under the mutex: the free slot that was given back longest ago. */
static bool staging_pick(gm__vulkan_staging *staging, uint32_t *out) {
  for (uint32_t i = 0; i < VULKAN_STAGING_SLOTS; i++) {
    uint32_t at = (staging->next + i) % VULKAN_STAGING_SLOTS;
    if (staging->held[at]) continue;
    staging->next = at + 1;
    *out = at;
    return true;
  }
  return false;
}

static gm_status staging_reserve(gm__vulkan_device *device, gm__vulkan_slot *out, gm_backend_point *out_busy,
                                 gm_error *err) {
  gm__vulkan_staging *staging = &device->staging;
  gm__mutex_lock(&staging->mutex);
  gm_status status = staging_make(device, err);
  uint32_t at = 0;
  if (!status) {
    while (!staging_pick(staging, &at)) gm__cond_wait(&staging->cond, &staging->mutex);
    staging->held[at] = true;
    uint64_t offset = at * staging->slot_bytes;
    *out = (gm__vulkan_slot){staging->memory, staging->host + offset, offset, staging->slot_bytes, at};
    *out_busy = staging->busy[at];
  }
  gm__mutex_unlock(&staging->mutex);
  return status;
}

gm_status gm__vulkan_staging_take(gm__vulkan_device *device, gm__vulkan_slot *out, gm_error *err) {
  gm__vulkan_slot slot;
  gm_backend_point busy;
  gm_status status = staging_reserve(device, &slot, &busy, err);
  if (status) return status;
  status = gm__vulkan_point_wait(device, &busy, UINT64_MAX, err);
  if (status) {
    gm__vulkan_staging_give(device, &slot, &busy);
    return status;
  }
  *out = slot;
  return GM_OK;
}

void gm__vulkan_staging_give(gm__vulkan_device *device, const gm__vulkan_slot *slot, const gm_backend_point *point) {
  gm__vulkan_staging *staging = &device->staging;
  gm__mutex_lock(&staging->mutex);
  staging->held[slot->index] = false;
  staging->busy[slot->index] = point ? *point : (gm_backend_point){0};
  gm__cond_signal(&staging->cond);
  gm__mutex_unlock(&staging->mutex);
}

void gm__vulkan_staging_clear(gm__vulkan_device *device) {
  gm__vulkan_memory_unmake(device, device->staging.memory, GM_CLOSE_NORMAL);
  device->staging.memory = NULL;
}

void gm__vulkan_staging_forget(gm__vulkan_device *device) {
  gm__vulkan_memory_unmake(device, device->staging.memory, GM_CLOSE_ABANDON);
  device->staging.memory = NULL;
}
