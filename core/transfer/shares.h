/* The share of a device's measured links that so many bytes in some seconds took. */
#ifndef GM_CORE_TRANSFER_SHARES_H
#define GM_CORE_TRANSFER_SHARES_H

#include <stdint.h>

struct gm_device;

/* All 0 where the links were not measured. */
typedef struct gm__shares {
  double up, down; /* seconds for which each way is busy with its bytes */
  double up_utilisation, down_utilisation, overhead, overlap;
} gm__shares;

gm__shares gm__shares_of(struct gm_device *device, uint64_t up_bytes, uint64_t down_bytes, double seconds);

#endif
