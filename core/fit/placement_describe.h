/* Splits of layers over devices, as numbers. Pure but for host memory. */
#ifndef GM_CORE_FIT_PLACEMENT_DESCRIBE_H
#define GM_CORE_FIT_PLACEMENT_DESCRIBE_H

#include "gm/fit.h"

/* One split. Layers before `on_host` are on the host, and experts of layers before `experts` (at least on_host),
 * too. Layers before ends[d] are on device d or an earlier one. */
typedef struct gm__split {
  uint32_t on_host, experts;
  uint32_t ends[GM_FIT_DEVICES_MAX];
} gm__split;

/* The number of layers that a device gets at least, when it gets any. */
uint32_t gm__placement_least(const gm_fit_request *request);

/* The bytes that a device has for layers. False: margin and overhead alone are too much; then *out is 0. */
bool gm__placement_room(const gm_fit_device *device, uint64_t *out);

/* The bytes that a split needs on the host. */
uint64_t gm__placement_host_need(const gm_fit_request *request, const gm__split *split);

/* Describe a split: its parts and its plan. `parts` may be NULL. */
void gm__placement_describe(const gm_fit_request *request, const gm__split *split, gm_fit_part *parts,
                            gm_fit_plan *plan);

#endif
