/* From a backend's raw figures to a gm_memory_info. This collects what the rules need and asks the one resolver. */
#ifndef GM_CORE_DISCOVERY_DEVICE_FIGURES_H
#define GM_CORE_DISCOVERY_DEVICE_FIGURES_H

#include "core/discovery/registry.h"
#include "core/figures/memory_info.h"
#include "core/room/card.h"

/* The record of the physical memory of this device: what all contexts of the process hold and promise there. */
gm__card *gm__device_card(const gm__driver *driver, const gm_device_info *info);

/* The device that a question is about. */
typedef struct gm__figures_subject {
  gm__driver *driver;
  const gm_device_info *info;
  void *device;            /* NULL: before opening, by info->index */
  bool thorough;           /* also look at what other processes hold (fdinfo): a file for each of their descriptors */
  bool listed;             /* it stands in a list of devices: what no source tells is estimated by the total */
  bool managed;            /* the question is about managed allocations */
  bool no_look;            /* what other processes promise is of the last look */
  bool adopted;            /* the engine's own device: the default of min_free_bytes does not hold */
  gm__heap_figures *heaps; /* filled in too, where the API has figures of heaps; NULL: not asked */
} gm__figures_subject;

/* Read the figures now. A query that fails makes figures unknown; the call goes on. OUT_OF_HOST_MEMORY. */
gm_status gm__device_figures(const gm__figures_subject *subject, gm_memory_info *out, gm_error *err);

/* The bytes to keep free on a device with that total: min_free_bytes of the configuration, or gm__margin_auto. */
uint64_t gm__device_margin(gm_context *ctx, uint64_t total_bytes);

#endif
