#include "backends/vulkan/vulkan_staging.h"

#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_host.h"
#include "backends/vulkan/vulkan_mem_open.h"
#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"

/* Invariants: one thread holds a slot, or nobody holds it and it is busy until its point. All slots are in the list.
 * Staging counts in its heap like any other memory. A slot beyond VULKAN_STAGING_SLOTS goes when it is idle. */

enum { STAGING_BYTES = 2 << 20, STAGING_LEAST = 8 << 10 };
#define STAGING_PATIENCE_NS UINT64_C(1000000000) /* who holds a slot may wait in an engine's hook, for this copy */

static bool staging_is_short(gm_status status) {
  return status == GM_ERR_OUT_OF_DEVICE_MEMORY || status == GM_ERR_ALLOCATION_TOO_LARGE;
}

/* Ask for half as much each time the heap is full, down to `least`. */
static gm_status staging_memory(gm__vulkan_device *device, uint64_t least, gm__vulkan_slot *slot, gm_error *err) {
  gm_status status = GM_ERR_OUT_OF_DEVICE_MEMORY;
  for (uint64_t bytes = STAGING_BYTES; status && bytes >= least; bytes /= 2) {
    status = gm__vulkan_host_make(device, bytes, false, "gm_backend_ops.copy", &slot->memory, &slot->host, err);
    if (!staging_is_short(status)) break;
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
  gm__cond_broadcast(&device->staging.given);
  gm__mutex_unlock(&device->mutex);
}

/* Waits until a slot is free. False: none came back in time, or there is none. */
static bool staging_await(gm__vulkan_device *device, uint64_t deadline) {
  gm__vulkan_staging *staging = &device->staging;
  bool is_free = false, in_time = true;
  gm__mutex_lock(&device->mutex);
  while (staging->slots && !is_free && in_time) {
    for (const gm__vulkan_slot *slot = staging->slots; slot; slot = slot->next) is_free = is_free || !slot->held;
    if (!is_free) in_time = gm__cond_wait_until(&staging->given, &device->mutex, deadline);
  }
  gm__mutex_unlock(&device->mutex);
  return is_free;
}

/* A slot in the caller's hands: one that is there, or a new one. The heap may be full. */
static gm_status staging_find(gm__vulkan_device *device, gm__vulkan_slot **out, bool *out_new, bool *out_full,
                              gm_error *err) {
  const uint64_t deadline = gm__deadline_after(STAGING_PATIENCE_NS);
  gm_status status = GM_OK;
  *out_new = false;
  do {
    *out = staging_pick(device, out_full);
    if (*out) return GM_OK;
    status = staging_make(device, STAGING_LEAST, out, err);
    *out_new = !status;
  } while (staging_is_short(status) && staging_await(device, deadline));
  return status;
}

gm_status gm__vulkan_staging_take(gm__vulkan_device *device, gm__vulkan_slot **out, gm_error *err) {
  bool full, made, done = false;
  gm__vulkan_slot *slot;
  gm_status status = staging_find(device, &slot, &made, &full, err);
  if (status) return status;
  *out = slot;
  if (made) return GM_OK;
  if (!full && gm__vulkan_point_done(device, &slot->busy, &done, NULL) == GM_OK && !done &&
      staging_make(device, STAGING_BYTES, out, NULL) == GM_OK) {
    staging_leave(device, slot);
    return GM_OK;
  }
  status = gm__vulkan_point_wait(device, &slot->busy, UINT64_MAX, err);
  if (status) staging_leave(device, slot);
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
  gm__cond_broadcast(&staging->given);
  gm__mutex_unlock(&device->mutex);
  if (extra) staging_unmake(device, slot, GM_CLOSE_NORMAL);
}

void gm__vulkan_staging_clear(gm__vulkan_device *device, gm_close_mode mode) {
  for (gm__vulkan_slot *slot = device->staging.slots, *next; slot; slot = next) {
    next = slot->next;
    staging_unmake(device, slot, mode);
  }
  device->staging.slots = NULL;
  device->staging.count = 0;
}
