/* Headroom: what gm may still take of a device's own memory. Thread-safe. */
#ifndef GM_CORE_DEVICE_DEVICE_HEADROOM_H
#define GM_CORE_DEVICE_DEVICE_HEADROOM_H

#include "core/device/device.h"
#include "core/room/card_turn.h"

/* The bounds of a pool beside its cap, as gm_pool_params has them. In both, 0 means by configuration. */
typedef struct gm__limits {
  double memory_fraction;
  uint64_t min_free_bytes;         /* GM_NO_LIMIT, GM_NO_BYTES, or bytes */
  struct gm__holding *promises;    /* bound to the pool: holding.h. Under the card's grow lock */
  _Atomic uint64_t promised_bytes; /* what is left of them: others' promises bound the pool, its own do not */
  bool heeds_others;               /* promises of other processes bound it, also on an adopted device */
} gm__limits;

enum { GM__HOLDER_TEXT = 96 };

/* Returns the bytes that a pool may take now, if nothing is given back first. `limits` NULL: all by configuration. It
 * is min(memory_fraction * total - used by us, free - min_free_bytes), less what is promised to others. UINT64_MAX
 * where no limit and no promise holds, and where nothing is known. 0 without host memory. The figures are at most 10 ms
 * old, or with `read_now` read for this call. Since then gm counts exactly what it took and gave back. */
uint64_t gm__device_headroom(gm_device *device, const gm__limits *limits, bool read_now);

/* For a new pool: reads the configuration anew. */
void gm__device_headroom_renew(gm_device *device);

/* Returns the aim of a turn of the device's card that takes bytes. The engine of an adopted device has planned its
 * memory: there promises of other processes hold only if somebody has set reserve.share. */
gm__card_aim gm__device_aim(gm_device *device);

/* Returns the bytes of the device that reservations hold for others than the pool with those limits. */
uint64_t gm__device_promised(gm_device *device, const gm__limits *limits);

/* Returns how many of those bytes other processes hold. */
uint64_t gm__device_promised_elsewhere(gm_device *device, const gm__limits *limits);

/* Names the process that holds most of it: ", 1024 of them process 4711 (name)". "" if no other process holds any.
 * Returns `out`, of GM__HOLDER_TEXT bytes. */
const char *gm__device_holder_text(gm_device *device, const gm__limits *limits, char *out);

/* Says how those promises can end: this process can cancel only its own. */
const char *gm__device_promise_advice(gm_device *device, const gm__limits *limits);

/* Answers as gm__device_headroom does with `read_now`, for managed allocations, which promises do not bound. */
uint64_t gm__device_headroom_managed(gm_device *device, const gm__limits *limits);

#endif
