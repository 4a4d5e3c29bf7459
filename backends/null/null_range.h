/* Addresses without memory: naturally aligned ranges of 2^k bytes, which are used again after their release. The caller
 * synchronises. */
#ifndef GM_BACKENDS_NULL_NULL_RANGE_H
#define GM_BACKENDS_NULL_NULL_RANGE_H

#include "gm/services.h"
#include "gm/status.h"

#include <stdint.h>

enum { GM__NULL_RANGE_CLASSES = 64 };

typedef struct gm__null_range {
  struct gm__null_range *next; /* while it is unused */
  uint64_t address;            /* a multiple of 2^order */
  uint32_t order;
  uint64_t bytes; /* the owner's: the bytes that it has charged */
} gm__null_range;

typedef struct gm__null_ranges {
  const gm_services *services;
  uint64_t next, end; /* addresses that were never handed out */
  gm__null_range *unused[GM__NULL_RANGE_CLASSES];
} gm__null_ranges;

/* Device `index` gets 2^47 addresses from 2^48 + index * 2^47 on, where Linux places nothing of a process. */
void gm__null_ranges_init(gm__null_ranges *ranges, const gm_services *services, uint32_t index);

/* Release the unused ranges. An owner keeps its range. */
void gm__null_ranges_clear(gm__null_ranges *ranges);

/* Take at least `bytes` (1 to 2^62), aligned to at least `align` (a power of two). GM_ERR_OUT_OF_HOST_MEMORY.
 * GM_ERR_OUT_OF_DEVICE_MEMORY when no addresses are left. */
gm_status gm__null_range_take(gm__null_ranges *ranges, uint64_t bytes, uint64_t align, gm__null_range **out,
                              gm_error *err);
void gm__null_range_free(gm__null_ranges *ranges, gm__null_range *range);

#endif
