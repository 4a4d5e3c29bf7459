/* Staging: a bounded piece of host-visible memory, cut into slots. Bytes go through it to memory that the host cannot
 * map. gm makes it at the first need. When other threads hold all slots for long (perhaps in an engine's lock hook), gm
 * makes an extra slot. Thread-safe. */
#ifndef GM_BACKENDS_VULKAN_STAGING_H
#define GM_BACKENDS_VULKAN_STAGING_H

#include <stdbool.h>

#include "core/base/thread.h"
#include "gm/backend.h"

enum { VULKAN_STAGING_SLOTS = 8 };

typedef struct gm__vulkan_device gm__vulkan_device;
typedef struct gm__vulkan_memory gm__vulkan_memory;

/* A slot with its own memory. */
typedef struct gm__vulkan_extra {
  struct gm__vulkan_extra *next;
  gm__vulkan_memory *memory;
  unsigned char *host;
  bool held;
  gm_backend_point busy;
} gm__vulkan_extra;

typedef struct gm__vulkan_staging {
  gm__mutex mutex;
  gm__cond cond;             /* a thread has given a slot back */
  gm__vulkan_memory *memory; /* NULL until first needed */
  unsigned char *host;
  uint64_t slot_bytes;
  uint32_t next;
  bool held[VULKAN_STAGING_SLOTS];
  gm_backend_point busy[VULKAN_STAGING_SLOTS]; /* the device may use the slot until this is reached */
  gm__vulkan_extra *extras;
} gm__vulkan_staging;

/* A slot that the caller holds. */
typedef struct gm__vulkan_slot {
  gm__vulkan_memory *memory;
  unsigned char *host;
  uint64_t offset; /* in `memory` */
  uint64_t bytes;
  uint32_t index;
  gm__vulkan_extra *extra; /* NULL: this is the slot `index` */
} gm__vulkan_slot;

void gm__vulkan_staging_init(gm__vulkan_staging *staging);
void gm__vulkan_staging_destroy(gm__vulkan_staging *staging);

/* Take a slot. The call waits until the device does not use it. It waits a tenth of a second for other threads. */
gm_status gm__vulkan_staging_take(gm__vulkan_device *device, gm__vulkan_slot *out, gm_error *err);

/* Give the slot back. The device uses it until `point` (NULL: not at all). */
void gm__vulkan_staging_give(gm__vulkan_device *device, const gm__vulkan_slot *slot, const gm_backend_point *point);

/* Clear frees the driver's memory and the records. Forget frees only the records. */
void gm__vulkan_staging_clear(gm__vulkan_device *device);
void gm__vulkan_staging_forget(gm__vulkan_device *device);

#endif
