#include "backends/vulkan/vulkan_staging.h"

#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_host.h"
#include "backends/vulkan/vulkan_mem_open.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

/* Invariants: one thread holds a slot, or nobody holds it and it is busy until its point. All slots are in the list.
 * Staging counts in its heap like any other memory. A slot beyond VULKAN_STAGING_SLOTS goes when it is idle. */

enum { STAGING_BYTES = 2 << 20, STAGING_LEAST = 8 << 10 };

/* Ask for half as much each time the heap is full, down to `least`. */
static gm_status staging_memory(gm__vulkan_device *device, uint64_t least, gm__vulkan_slot *slot, gm_error *err) {
  gm_status status = GM_ERR_OUT_OF_DEVICE_MEMORY;
  for (uint64_t bytes = STAGING_BYTES; status && bytes >= least; bytes /= 2) {
    status = gm__vulkan_host_make(device, bytes, false, "gm_backend_ops.copy", &slot->memory, &slot->host, err);
    if (status != GM_ERR_OUT_OF_DEVICE_MEMORY && status != GM_ERR_ALLOCATION_TOO_LARGE) break;
  }
  return status;
}

/* A new slot, which the caller holds. */
static gm_status staging_make(gm__vulkan_device *device, uint64_t least, gm__vulkan_slot **out, gm_error *err) {
  gm__vulkan_slot *slot = gm__alloc(device->services, sizeof *slot);
  if (!slot) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_backend_ops.copy", "no host memory for staging");
  slot->held = true;
  const gm_status status = staging_memory(device, least, slot, err);
  if (status) {
    gm__release(device->services, slot, sizeof *slot);
    return status;
  }
  gm__mutex_lock(&device->mutex);
  slot->next = device->staging.slots;
  device->staging.slots = slot;
  device->staging.count++;
  gm__mutex_unlock(&device->mutex);
  *out = slot;
  return GM_OK;
}

/* Takes the slot that came back first among those that nobody holds. NULL: there is none. *out_full: the caller makes
 * no further one for it. */
static gm__vulkan_slot *staging_pick(gm__vulkan_device *device, bool *out_full) {
  gm__vulkan_slot *first = NULL;
  gm__mutex_lock(&device->mutex);
  for (gm__vulkan_slot *slot = device->staging.slots; slot; slot = slot->next) {
    if (!slot->held && (!first || slot->turn < first->turn)) first = slot;
  }
  if (first) first->held = true;
  *out_full = device->staging.count >= VULKAN_STAGING_SLOTS;
  gm__mutex_unlock(&device->mutex);
  return first;
}

/* The slot keeps its point and its turn. */
static void staging_leave(gm__vulkan_device *device, gm__vulkan_slot *slot) {
  gm__mutex_lock(&device->mutex);
  slot->held = false;
  gm__mutex_unlock(&device->mutex);
}

gm_status gm__vulkan_staging_take(gm__vulkan_device *device, gm__vulkan_slot **out, gm_error *err) {
  bool full, done = false;
  gm__vulkan_slot *slot = staging_pick(device, &full);
  if (!slot) return staging_make(device, STAGING_LEAST, out, err);
  if (!full && gm__vulkan_point_done(device, &slot->busy, &done, NULL) == GM_OK && !done &&
      staging_make(device, STAGING_BYTES, out, NULL) == GM_OK) {
    staging_leave(device, slot);
    return GM_OK;
  }
  const gm_status status = gm__vulkan_point_wait(device, &slot->busy, UINT64_MAX, err);
  if (status) staging_leave(device, slot);
  if (!status) *out = slot;
  return status;
}

static void staging_unmake(gm__vulkan_device *device, gm__vulkan_slot *slot, gm_close_mode mode) {
  gm__vulkan_memory_unmake(device, slot->memory, mode);
  gm__release(device->services, slot, sizeof *slot);
}

void gm__vulkan_staging_give(gm__vulkan_device *device, gm__vulkan_slot *slot, const gm_backend_point *point) {
  gm__vulkan_staging *staging = &device->staging;
  bool done = !point;
  if (point && gm__vulkan_point_done(device, point, &done, NULL)) done = false;
  gm__mutex_lock(&device->mutex);
  const bool extra = done && staging->count > VULKAN_STAGING_SLOTS;
  gm__vulkan_slot **at = &staging->slots;
  while (extra && *at != slot) at = &(*at)->next;
  if (extra) *at = slot->next;
  staging->count -= extra;
  slot->held = false;
  slot->turn = ++staging->turns;
  slot->busy = point ? *point : (gm_backend_point){0};
  gm__mutex_unlock(&device->mutex);
  if (extra) staging_unmake(device, slot, GM_CLOSE_NORMAL);
}

void gm__vulkan_staging_clear(gm__vulkan_device *device, gm_close_mode mode) {
  for (gm__vulkan_slot *slot = device->staging.slots, *next; slot; slot = next) {
    next = slot->next;
    staging_unmake(device, slot, mode);
  }
  device->staging = (gm__vulkan_staging){0};
}
