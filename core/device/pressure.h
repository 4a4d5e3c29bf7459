/* From used and total bytes to a pressure level, by thresholds, mostly those of the configuration. Thread-safe. */
#ifndef GM_CORE_DEVICE_PRESSURE_H
#define GM_CORE_DEVICE_PRESSURE_H

#include <stdatomic.h>

#include "core/context/context.h"
#include "gm/pressure.h"

/* INVALID_ARGUMENT: `out` is NULL, or has no struct_size. */
gm_status gm__pressure_check(const gm_pressure *out, const char *op, gm_error *err);

/* Used of total bytes. Used above total counts as all of it. The level is at least `least`. */
typedef struct gm__pressure_ratio {
  uint64_t used_bytes, total_bytes;
  gm_pressure_level least;
  const gm_pressure_thresholds *thresholds; /* NULL: those of the configuration */
} gm__pressure_ratio;

/* Fill `out`. *level is the level said last, and becomes the new one. */
gm_status gm__pressure_fill(gm_context *ctx, const gm__pressure_ratio *ratio, _Atomic int *level, gm_pressure *out,
                            gm_error *err);

/* Reads the pressure on `subject`. *level is as in gm__pressure_fill. */
typedef gm_status (*gm__pressure_read)(void *subject, _Atomic int *level, gm_pressure *out, gm_error *err);

gm_status gm__pressure_read_device(void *device, _Atomic int *level, gm_pressure *out, gm_error *err);
gm_status gm__pressure_read_host(void *ctx, _Atomic int *level, gm_pressure *out, gm_error *err);

#endif
