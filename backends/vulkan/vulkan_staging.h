/* Staging: a bounded piece of host-visible memory, cut into slots, through which bytes reach memory that the host
 * cannot map. Made at the first need. Where other threads hold all slots for long, perhaps in the lock hook of an
 * engine, an extra slot is made. Thread-safe. */
#ifndef GM_BACKENDS_VULKAN_STAGING_H
#define GM_BACKENDS_VULKAN_STAGING_H

#include <stdbool.h>

#include "core/base/thread.h"
#include "gm/backend.h"

enum { VULKAN_STAGING_SLOTS = 8 };

typedef struct gm__vulkan_device gm__vulkan_device;
typedef struct gm__vulkan_memory gm__vulkan_memory;

/* A slot with memory of its own. */
typedef struct gm__vulkan_extra {
  struct gm__vulkan_extra *next;
  gm__vulkan_memory *memory;
  unsigned char *host;
  bool held;
  gm_backend_point busy;
} gm__vulkan_extra;

typedef struct gm__vulkan_staging {
  gm__mutex mutex;
  gm__cond cond;             /* a slot was given back */
  gm__vulkan_memory *memory; /* NULL until first needed */
  unsigned char *host;
  uint64_t slot_bytes;
  uint32_t next;
  bool held[VULKAN_STAGING_SLOTS];
  gm_backend_point busy[VULKAN_STAGING_SLOTS]; /* until reached the device may use the slot */
  gm__vulkan_extra *extras;
} gm__vulkan_staging;

/* A slot in the caller's hands. */
typedef struct gm__vulkan_slot {
  gm__vulkan_memory *memory;
  unsigned char *host;
  uint64_t offset; /* in `memory` */
  uint64_t bytes;
  uint32_t index;
  gm__vulkan_extra *extra; /* NULL: it is the slot `index` */
} gm__vulkan_slot;

void gm__vulkan_staging_init(gm__vulkan_staging *staging);
void gm__vulkan_staging_destroy(gm__vulkan_staging *staging);

/* A slot that nobody uses; waits for the device to be done with it, and for other threads a tenth of a second. */
gm_status gm__vulkan_staging_take(gm__vulkan_device *device, gm__vulkan_slot *out, gm_error *err);

/* Give it back; the device uses it until `point` (NULL: not at all). */
void gm__vulkan_staging_give(gm__vulkan_device *device, const gm__vulkan_slot *slot, const gm_backend_point *point);

/* Give back the memory at the driver and in the host; the host's record alone. */
void gm__vulkan_staging_clear(gm__vulkan_device *device);
void gm__vulkan_staging_forget(gm__vulkan_device *device);

#endif
