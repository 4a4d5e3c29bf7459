#include "backends/vulkan/vulkan_staging.h"

#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_host.h"
#include "backends/vulkan/vulkan_mem_open.h"
#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"

/* Invariants: one thread holds a slot, or nobody holds it and it is busy until its point. Staging counts in its heap
 * like any other memory. It never exceeds STAGING_BYTES, but for extra slots. Those go when they are idle and another
 * slot is unused. No thread waits without a limit for a slot that another thread holds: the holder may wait in a hook.
 */

enum { STAGING_BYTES = 16 << 20, STAGING_LEAST = 64 << 10 };

#define STAGING_PATIENCE_NS UINT64_C(100000000)

void gm__vulkan_staging_init(gm__vulkan_staging *staging) {
  gm__mutex_init(&staging->mutex, GM__RANK_STAGING);
  gm__cond_init(&staging->cond);
}

void gm__vulkan_staging_destroy(gm__vulkan_staging *staging) {
  gm__cond_destroy(&staging->cond);
  gm__mutex_destroy(&staging->mutex);
}

/* Make memory that the host sees. Ask for half as much each time the heap is full, down to `least`. */
static gm_status staging_memory(gm__vulkan_device *device, uint64_t most, uint64_t least, gm__vulkan_memory **out,
                                unsigned char **out_host, gm_error *err) {
  gm_status status = GM_ERR_OUT_OF_DEVICE_MEMORY;
  for (uint64_t bytes = most; status && bytes >= least; bytes /= 2) {
    status = gm__vulkan_host_make(device, bytes, false, "gm_backend_ops.copy", out, out_host, err);
    if (status != GM_ERR_OUT_OF_DEVICE_MEMORY && status != GM_ERR_ALLOCATION_TOO_LARGE) break;
  }
  return status;
}

/* REQUIRES: staging lock. */
static gm_status staging_make(gm__vulkan_device *device, gm_error *err) {
  gm__vulkan_staging *staging = &device->staging;
  gm__vulkan_memory *memory;
  if (staging->memory) return GM_OK;
  gm_status status = staging_memory(device, STAGING_BYTES, STAGING_LEAST, &memory, &staging->host, err);
  if (status) return status;
  staging->memory = memory;
  staging->slot_bytes = memory->bytes / VULKAN_STAGING_SLOTS;
  return GM_OK;
}

static void extra_unmake(gm__vulkan_device *device, gm__vulkan_extra *extra, gm_close_mode mode) {
  gm__vulkan_memory_unmake(device, extra->memory, mode);
  gm__release(device->services, extra, sizeof *extra);
}

/* REQUIRES: staging lock. */
static gm_status extra_make(gm__vulkan_device *device, gm__vulkan_extra **out, gm_error *err) {
  gm__vulkan_staging *staging = &device->staging;
  gm__vulkan_extra *extra = gm__alloc(device->services, sizeof *extra);
  if (!extra) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_backend_ops.copy", "no host memory for a piece of staging");
  }
  const uint64_t most = staging->slot_bytes, least = STAGING_LEAST / VULKAN_STAGING_SLOTS;
  gm_status status = staging_memory(device, most, most < least ? most : least, &extra->memory, &extra->host, err);
  if (status) {
    gm__release(device->services, extra, sizeof *extra);
    return status;
  }
  extra->next = staging->extras;
  staging->extras = extra;
  *out = extra;
  return GM_OK;
}

/* Free the extra slots that nobody holds and the device does not use. REQUIRES: staging lock. */
static void extras_drop(gm__vulkan_device *device) {
  for (gm__vulkan_extra **at = &device->staging.extras; *at;) {
    gm__vulkan_extra *extra = *at;
    bool done = false;
    if (!extra->held && !gm__vulkan_point_done(device, &extra->busy, &done, NULL) && done) {
      *at = extra->next;
      extra_unmake(device, extra, GM_CLOSE_NORMAL);
    } else {
      at = &extra->next;
    }
  }
}

/* Pick the unused slot that was given back longest ago. REQUIRES: staging lock. */
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

/* An extra slot that nobody holds, or NULL. REQUIRES: staging lock. */
static gm__vulkan_extra *extra_pick(const gm__vulkan_staging *staging) {
  gm__vulkan_extra *extra = staging->extras;
  while (extra && extra->held) extra = extra->next;
  return extra;
}

/* Choose an extra slot, or the slot *out_at where *out is NULL. REQUIRES: staging lock. */
static gm_status staging_choose(gm__vulkan_device *device, uint32_t *out_at, gm__vulkan_extra **out, gm_error *err) {
  gm__vulkan_staging *staging = &device->staging;
  const uint64_t deadline = gm__deadline_after(STAGING_PATIENCE_NS);
  *out = NULL;
  for (bool wait = true;;) {
    if (staging_pick(staging, out_at)) {
      extras_drop(device);
      return GM_OK;
    }
    *out = extra_pick(staging);
    if (*out) return GM_OK;
    if (!wait) return extra_make(device, out, err);
    wait = gm__cond_wait_until(&staging->cond, &staging->mutex, deadline);
  }
}

static gm_status staging_reserve(gm__vulkan_device *device, gm__vulkan_slot *out, gm_backend_point *out_busy,
                                 gm_error *err) {
  gm__vulkan_staging *staging = &device->staging;
  gm__vulkan_extra *extra = NULL;
  uint32_t at = 0;
  gm__mutex_lock(&staging->mutex);
  gm_status status = staging_make(device, err);
  if (!status) status = staging_choose(device, &at, &extra, err);
  if (!status && extra) {
    extra->held = true;
    *out = (gm__vulkan_slot){extra->memory, extra->host, 0, extra->memory->bytes, 0, extra};
    *out_busy = extra->busy;
  } else if (!status) {
    staging->held[at] = true;
    uint64_t offset = at * staging->slot_bytes;
    *out = (gm__vulkan_slot){staging->memory, staging->host + offset, offset, staging->slot_bytes, at, NULL};
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
  *(slot->extra ? &slot->extra->held : &staging->held[slot->index]) = false;
  *(slot->extra ? &slot->extra->busy : &staging->busy[slot->index]) = point ? *point : (gm_backend_point){0};
  gm__cond_signal(&staging->cond);
  gm__mutex_unlock(&staging->mutex);
}

static void staging_unmake(gm__vulkan_device *device, gm_close_mode mode) {
  gm__vulkan_staging *staging = &device->staging;
  gm__vulkan_memory_unmake(device, staging->memory, mode);
  staging->memory = NULL;
  for (gm__vulkan_extra *extra = staging->extras, *next; extra; extra = next) {
    next = extra->next;
    extra_unmake(device, extra, mode);
  }
  staging->extras = NULL;
}

void gm__vulkan_staging_clear(gm__vulkan_device *device) { staging_unmake(device, GM_CLOSE_NORMAL); }

void gm__vulkan_staging_forget(gm__vulkan_device *device) { staging_unmake(device, GM_CLOSE_ABANDON); }
