/* Addresses that stand for no memory: naturally aligned ranges of 2^k bytes, used again after release. Externally
 * synchronised. */
#ifndef GM_BACKENDS_NULL_NULL_RANGE_H
#define GM_BACKENDS_NULL_NULL_RANGE_H

#include "gm/services.h"
#include "gm/status.h"

#include <stdint.h>

enum { GM__NULL_RANGE_CLASSES = 64 };

typedef struct gm__null_range {
  struct gm__null_range *next; /* while it is spare */
  uint64_t address;            /* a multiple of 2^order */
  uint32_t order;
  uint64_t bytes; /* the owner's: what it has charged */
} gm__null_range;

typedef struct gm__null_ranges {
  const gm_services *services;
  uint64_t next, end; /* never given out so far */
  gm__null_range *spare[GM__NULL_RANGE_CLASSES];
} gm__null_ranges;

/* The addresses of device `index`: 2^47 of them from 2^48 + index * 2^47, where Linux places nothing of a process. */
void gm__null_ranges_init(gm__null_ranges *ranges, const gm_services *services, uint32_t index);

/* Spare ones only: who still has a range keeps it. */
void gm__null_ranges_clear(gm__null_ranges *ranges);

/* At least `bytes` (> 0, at most 2^62), aligned to at least `align` (power of two). GM_ERR_OUT_OF_HOST_MEMORY;
 * GM_ERR_OUT_OF_DEVICE_MEMORY when there are no addresses left. */
gm_status gm__null_range_take(gm__null_ranges *ranges, uint64_t bytes, uint64_t align, gm__null_range **out,
                              gm_error *err);
void gm__null_range_give(gm__null_ranges *ranges, gm__null_range *range);

#endif
