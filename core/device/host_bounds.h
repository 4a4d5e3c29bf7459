/* The running minimum over everything that bounds the host's memory, with who gave it. Sources are offered in the order
 * of their rank: on equal values the earlier one stays (rule H9). */
#ifndef GM_CORE_DEVICE_HOST_BOUNDS_H
#define GM_CORE_DEVICE_HOST_BOUNDS_H

#include "gm/memory_info.h"

typedef struct gm__host_bound {
  uint64_t bytes; /* GM_UNKNOWN_BYTES: nothing bounds */
  bool by_group;
  char source[GM_HOST_SOURCE_SIZE];
} gm__host_bound;

typedef struct gm__host_bounds {
  gm__host_bound total;
  gm__host_bound room; /* what could still be taken */
  bool estimated;      /* some figure was missing, repaired or only an upper bound */
} gm__host_bounds;

void gm__host_bounds_init(gm__host_bounds *out);

/* Offer a bound; GM_UNKNOWN_BYTES is none. The source is `kind`, and with a directory "kind:directory". */
void gm__host_bound_by(gm__host_bound *bound, uint64_t bytes, const char *kind, const char *directory);

#endif
