/* One allocation at the backend, and the account of what a device object holds. Thread-safe. */
#ifndef GM_CORE_DEVICE_DEVICE_ALLOC_H
#define GM_CORE_DEVICE_DEVICE_ALLOC_H

#include "core/base/inner.h"
#include "core/device/type_wish.h"

typedef struct gm__device_request {
  uint64_t bytes;
  uint32_t align, usage, flags; /* flags: GM_HOST_VISIBLE, GM_COMMIT, GM_DEDICATED */
  gm_must_be must_be;
  gm__type_wish wish;
  bool beside_device;  /* only memory that is not the device's own: pinned host memory */
  bool managed;        /* only memory that migrates; no other request gets such memory */
  gm_share_kind share; /* made so that it can be exported in this way */
  float priority;      /* gm_memory_params.priority */
} gm__device_request;

/* Ask the backend for memory of a type that satisfies `must_be`, `flags` and `wish`. Types with more of the preferred
 * flags are tried first, then the backend's order counts. Where one is out of memory, the next one is tried. New
 * memory counts in own_bytes and `used`. ALLOCATION_TOO_LARGE: more than max_alloc_bytes; nobody was asked. On failure
 * `err` is that of the most telling attempt. */
gm_status gm__device_alloc(gm_device *device, const gm__device_request *request, gm_memory *out, gm_error *err);
gm_status gm__device_free(gm_device *device, const gm_memory *memory, gm_error *err);

/* Make physical memory of that type, without an address; it counts as an allocation does. The backend's answers; DRIVER
 * when it said success without a handle. */
gm_status gm__device_create_physical(gm_device *device, uint32_t type, uint64_t bytes, uint64_t *out_handle,
                                     gm_error *err);
/* Give it back. A forked child gives back host memory only. */
void gm__device_destroy_physical(gm_device *device, uint32_t type, uint64_t handle, uint64_t bytes);

/* The host's address of a range of memory whose type has GM_MEMORY_PERSISTENT_MAP. It is good as long as the memory.
 * Waits for nothing. REQUIRES: as gm__submitting. */
gm_status gm__device_map_for_life(const gm_device *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                  void **out, gm_error *err);

/* The types that the request may have: bit 1 << index. */
GM__INNER uint32_t gm__device_types(const gm_device *device, const gm__device_request *request);

/* Whether one of these types takes of the device's own bytes. */
bool gm__device_takes_own(const gm_device *device, const gm__device_request *request);

/* Whether all such types are host memory, with a host pointer. */
bool gm__device_has_host_types_only(const gm_device *device, const gm__device_request *request);

/* Whether this memory takes of the device's own bytes on gm's account. Pinned host memory of a card and the engine's
 * wrapped memory do not: nobody counts them. */
bool gm__device_is_charged(const gm_device *device, const gm_memory *memory);

/* `bytes` of charged memory moved from "handed out" to "pooled" (negative: back). Keeps reclaimable figures right. */
void gm__device_note_pooled(gm_device *device, int64_t bytes);

#endif
