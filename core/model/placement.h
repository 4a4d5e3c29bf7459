/* Splits of layers over devices, as numbers. Pure but for host memory. */
#ifndef GM_CORE_MODEL_PLACEMENT_H
#define GM_CORE_MODEL_PLACEMENT_H

#include "gm/fit.h"

/* One split: layers before `on_host` are on the host, experts of those before `experts` (at least on_host) too, layers
 * before ends[d] on device d or earlier. */
typedef struct gm__split {
  uint32_t on_host, experts;
  uint32_t ends[GM_FIT_DEVICES_MAX];
} gm__split;

/* The layers that a device gets at least when it gets any. */
uint32_t gm__placement_least(const gm_fit_request *request);

/* What a device has for layers. False: not even for margin and overhead; then *out is 0. */
bool gm__placement_room(const gm_fit_device *device, uint64_t *out);

/* What layers `first` to `end` (not with it) need on a device, without its overhead. */
uint64_t gm__placement_need(const gm_fit_request *request, const gm__split *split, uint32_t first, uint32_t end);

/* What a split needs on the host. */
uint64_t gm__placement_host_need(const gm_fit_request *request, const gm__split *split);

/* Parts and plan of a split. `parts` may be NULL. */
void gm__placement_describe(const gm_fit_request *request, const gm__split *split, gm_fit_part *parts,
                            gm_fit_plan *plan);

#endif
