/* How full a memory is, in four levels. Pure and thread-safe. */
#ifndef GM_PRESSURE_H
#define GM_PRESSURE_H

#include "gm/export.h"

GM_BEGIN_DECLS

/* Of the ratio used / total, where what gm can give back on demand counts as free. */
typedef enum gm_pressure_level {
  GM_PRESSURE_LOW = 0,     /* below `medium` */
  GM_PRESSURE_MEDIUM = 1,  /* from `medium` */
  GM_PRESSURE_HIGH = 2,    /* from `high` */
  GM_PRESSURE_CRITICAL = 3 /* above `critical` */
} gm_pressure_level;

/* Ratios: 0 < medium < high < critical <= 1, and 0 <= hysteresis < medium. A level is entered at once, and left only
 * when the ratio is below its threshold - hysteresis. */
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

GM_END_DECLS

#endif
