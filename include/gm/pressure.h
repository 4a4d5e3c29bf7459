/* Memory pressure: how full a memory is, in four levels. Every function is thread-safe. */
#ifndef GM_PRESSURE_H
#define GM_PRESSURE_H

#include <stdint.h>

#include "gm/status.h"

GM_BEGIN_DECLS

/* Levels of the ratio used / total. Memory that gm can give back on demand counts as free. */
typedef enum gm_pressure_level {
  GM_PRESSURE_LOW = 0,     /* below the threshold `medium` */
  GM_PRESSURE_MEDIUM = 1,  /* from the threshold `medium` on */
  GM_PRESSURE_HIGH = 2,    /* from the threshold `high` on */
  GM_PRESSURE_CRITICAL = 3 /* above the threshold `critical` */
} gm_pressure_level;

/* Thresholds as ratios: 0 < medium < high < critical <= 1, and 0 <= hysteresis < medium. A level is entered at once. It
 * is left only when the ratio falls below its threshold - hysteresis. Never grows. */
typedef struct gm_pressure_thresholds {
  double medium;     /* 0.60 */
  double high;       /* 0.80 */
  double critical;   /* 0.95 */
  double hysteresis; /* 0.02 */
} gm_pressure_thresholds;

/* The default thresholds. */
#define GM_PRESSURE_THRESHOLDS_DEFAULT \
  { 0.60, 0.80, 0.95, 0.02 }

/* Returns the word of a level: "low", "medium", "high" or "critical". Another number gives "?". The string is static
 * and never NULL. */
GM_API const char *gm_pressure_level_name(gm_pressure_level level);

struct gm_context;
struct gm_device;
struct gm_pool;

/* The pressure on a memory at one moment. Pooled memory, which gm can give back on demand, counts as free. */
typedef struct gm_pressure {
  uint32_t struct_size;
  gm_pressure_level level; /* with hysteresis: it depends on the levels answered before */
  double ratio;            /* used / total, 0 to 1; 1 also when there is no memory at all */
  uint64_t used_bytes;
  uint64_t total_bytes;
} gm_pressure;

/* Returns the pressure on a device's memory now, by the thresholds of the configuration (pressure.medium and so on).
 * The caller sets out->struct_size. After a failure `out` is unchanged. Errors: FORKED, OUT_OF_HOST_MEMORY.
 * INVALID_ARGUMENT: also where thresholds are out of order; the message names them. UNAVAILABLE: the figures are
 * unknown. */
GM_API gm_status gm_device_pressure(struct gm_device *device, gm_pressure *out, gm_error *err);

/* Returns the pressure on a pool: the bytes it has handed out, of those it may take. It may take its cap, or what the
 * device leaves it. Errors: those of gm_device_pressure. */
GM_API gm_status gm_pool_pressure(struct gm_pool *pool, gm_pressure *out, gm_error *err);

/* Returns the pressure on the host memory that this process may have. Errors: those of gm_device_pressure. */
GM_API gm_status gm_host_pressure(struct gm_context *ctx, gm_pressure *out, gm_error *err);

GM_END_DECLS

#endif
