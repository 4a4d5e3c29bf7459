/* From a backend's raw figures to a gm_memory_info: collects what the rules need and asks the one resolver. */
#ifndef GM_CORE_DEVICE_DEVICE_FIGURES_H
#define GM_CORE_DEVICE_DEVICE_FIGURES_H

#include "core/context/process.h"
#include "core/device/registry.h"

/* The counter of bytes that all contexts of the process hold in the same physical memory. */
gm__used_bytes *gm__device_used(const gm__driver *driver, const gm_device_info *info);

/* Whose figures. */
typedef struct gm__figures_subject {
  gm__driver *driver;
  const gm_device_info *info;
  void *device;  /* NULL: before opening, by info->index */
  bool thorough; /* also look at what other processes hold (fdinfo): a file for each of their descriptors */
  bool managed;  /* the question is about managed allocations */
} gm__figures_subject;

/* Read now. A query that fails makes figures unknown, not the call; it fails only with OUT_OF_HOST_MEMORY. */
gm_status gm__device_figures(const gm__figures_subject *subject, gm_memory_info *out, gm_error *err);

/* For an API without a free query: the figure of another loaded backend's entry for the same card, read now. False:
 * there is none, or that backend is busy. */
bool gm__peer_figures(gm__driver *driver, const gm_device_info *info, gm_memory_info *out);

/* min_free_bytes of the configuration for a device with that total: min(512 MiB, 5 %) when it is auto. */
uint64_t gm__device_margin(gm_context *ctx, uint64_t total_bytes);

#endif
