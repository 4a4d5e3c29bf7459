/* How full a memory is, in four levels (F29). Thread-safe. */
#ifndef GM_PRESSURE_H
#define GM_PRESSURE_H

#include <stdint.h>

#include "gm/status.h"

GM_BEGIN_DECLS

/* Of the ratio used / total, where what gm can give back on demand counts as free. */
typedef enum gm_pressure_level {
  GM_PRESSURE_LOW = 0,     /* below `medium` */
  GM_PRESSURE_MEDIUM = 1,  /* from `medium` */
  GM_PRESSURE_HIGH = 2,    /* from `high` */
  GM_PRESSURE_CRITICAL = 3 /* above `critical` */
} gm_pressure_level;

/* Ratios: 0 < medium < high < critical <= 1, and 0 <= hysteresis < medium. A level is entered at once, and left only
 * when the ratio is below its threshold - hysteresis. Never grows. */
typedef struct gm_pressure_thresholds {
  double medium;     /* 0.60 */
  double high;       /* 0.80 */
  double critical;   /* 0.95 */
  double hysteresis; /* 0.02 */
} gm_pressure_thresholds;

/* The defaults named above. */
#define GM_PRESSURE_THRESHOLDS_DEFAULT \
  { 0.60, 0.80, 0.95, 0.02 }

/* "low", "medium", "high", "critical"; "?" for a number that is none. Static storage, never NULL. */
GM_API const char *gm_pressure_level_name(gm_pressure_level level);

struct gm_context;
struct gm_device;
struct gm_pool;

/* The pressure on a memory now. What gm can give back on demand (pooled memory) counts as free. */
typedef struct gm_pressure {
  uint32_t struct_size;
  gm_pressure_level level; /* with hysteresis: depends on the levels that were answered before */
  double ratio;            /* used / total, 0..1; 1 when there is nothing to be had at all */
  uint64_t used_bytes;
  uint64_t total_bytes;
} gm_pressure;

/* Read now, by the thresholds of the configuration (pressure.medium, ...). `out` has struct_size set; it is untouched
 * on failure. INVALID_ARGUMENT (also thresholds out of order, by name), FORKED, OUT_OF_HOST_MEMORY, UNAVAILABLE: the
 * figures are not known. */
GM_API gm_status gm_device_pressure(struct gm_device *device, gm_pressure *out, gm_error *err);

/* As gm_device_pressure, of the bytes that a pool may take: its cap, or what the device leaves it. Used are those
 * handed out. */
GM_API gm_status gm_pool_pressure(struct gm_pool *pool, gm_pressure *out, gm_error *err);

/* As gm_device_pressure, of the memory that this process may have on the host. */
GM_API gm_status gm_host_pressure(struct gm_context *ctx, gm_pressure *out, gm_error *err);

GM_END_DECLS

#endif
