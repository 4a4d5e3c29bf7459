/* Staging: a few slots of host-visible memory. Bytes go through them to memory that the host cannot map. gm makes a
 * slot when it needs one. When other threads hold all of them (perhaps in an engine's lock hook), it makes a further
 * one. Where the heap is full, it waits for one of theirs, for a second at most. Thread-safe, but for clear. */
#ifndef GM_BACKENDS_VULKAN_STAGING_H
#define GM_BACKENDS_VULKAN_STAGING_H

#include <stdbool.h>

#include "core/base/thread.h"
#include "gm/backend.h"

enum { VULKAN_STAGING_SLOTS = 8 };

typedef struct gm__vulkan_device gm__vulkan_device;
typedef struct gm__vulkan_memory gm__vulkan_memory;

typedef struct gm__vulkan_slot {
  gm__vulkan_memory *memory; /* the slot is all of it */
  unsigned char *host;
  struct gm__vulkan_slot *next;
  bool held;
  uint64_t turn;         /* a slot that came back earlier has a smaller one */
  gm_backend_point busy; /* the device may use the slot until this is reached */
} gm__vulkan_slot;

/* REQUIRES: device lock. */
typedef struct gm__vulkan_staging {
  gm__vulkan_slot *slots;
  uint32_t count;
  uint64_t turns;
  gm__cond given; /* a slot came back */
} gm__vulkan_staging;

/* Take a slot, which the device does not use. The call waits for the device, and for another thread only where the heap
 * is full. Errors: those of gm__vulkan_host_make, and of the wait. */
gm_status gm__vulkan_staging_take(gm__vulkan_device *device, gm__vulkan_slot **out, gm_error *err);

/* Give the slot back. The device uses it until `point` (NULL: not at all). */
void gm__vulkan_staging_give(gm__vulkan_device *device, gm__vulkan_slot *slot, const gm_backend_point *point);

/* GM_CLOSE_NORMAL frees the driver's memory and the records, the other mode only the records. */
void gm__vulkan_staging_clear(gm__vulkan_device *device, gm_close_mode mode);

#endif
