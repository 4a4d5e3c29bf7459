/* What the memory groups of this process leave it (rules H6 to H8): every level of both trees is evaluated. */
#ifndef GM_CORE_DEVICE_CGROUP_H
#define GM_CORE_DEVICE_CGROUP_H

#include "core/device/host_bounds.h"

/* Offer every limit and room to `bounds`, version 1 from the root down, then version 2. `mem_total`: of the machine, or
 * GM_UNKNOWN_BYTES. */
void gm__cgroup_bound(const char *root, uint64_t mem_total, gm__host_bounds *bounds);

#endif
