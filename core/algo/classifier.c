#include "core/algo/classifier.h"

#include <math.h>

#include "core/base/error.h"

/* Invariant: the answer never lies below the level of the plain thresholds, so that hysteresis can only delay a relief,
 * never an alarm. */

const char *gm_pressure_level_name(gm_pressure_level level) {
  switch (level) {
    case GM_PRESSURE_LOW: return "low";
    case GM_PRESSURE_MEDIUM: return "medium";
    case GM_PRESSURE_HIGH: return "high";
    case GM_PRESSURE_CRITICAL: return "critical";
    case GM_PRESSURE_BORROWED: return "borrowed";
  }
  return "?";
}

/* Each comparison is written so that it is false for not-a-number. */
gm_status gm__classifier_check(const gm_pressure_thresholds *thresholds, gm_error *err) {
  const gm_pressure_thresholds *t = thresholds;
  const char *op = "gm_pressure_thresholds";
  if (!(t->medium > 0)) return gm__bad_argument(err, op, "`medium` must be above 0, is %g", t->medium);
  if (!(t->high > t->medium)) {
    return gm__bad_argument(err, op, "`high` must be above `medium` (%g), is %g", t->medium, t->high);
  }
  if (!(t->critical > t->high && t->critical <= 1)) {
    return gm__bad_argument(err, op, "`critical` must be above `high` (%g) and at most 1, is %g", t->high, t->critical);
  }
  if (!(t->hysteresis >= 0 && t->hysteresis < t->medium)) {
    return gm__bad_argument(err, op, "`hysteresis` must be from 0 to below `medium` (%g), is %g", t->medium,
                            t->hysteresis);
  }
  return GM_OK;
}

static gm_pressure_level classifier_enter(double ratio, const gm_pressure_thresholds *t) {
  if (ratio > t->critical) return GM_PRESSURE_CRITICAL;
  if (ratio >= t->high) return GM_PRESSURE_HIGH;
  return ratio >= t->medium ? GM_PRESSURE_MEDIUM : GM_PRESSURE_LOW;
}

/* The highest level that `ratio` is not low enough to leave. */
static gm_pressure_level classifier_hold(double ratio, const gm_pressure_thresholds *t) {
  if (ratio >= t->critical - t->hysteresis) return GM_PRESSURE_CRITICAL;
  if (ratio >= t->high - t->hysteresis) return GM_PRESSURE_HIGH;
  return ratio >= t->medium - t->hysteresis ? GM_PRESSURE_MEDIUM : GM_PRESSURE_LOW;
}

gm_pressure_level gm__classifier_level(gm_pressure_level previous, double ratio,
                                       const gm_pressure_thresholds *thresholds) {
  if (isnan(ratio)) return previous;
  gm_pressure_level entered = classifier_enter(ratio, thresholds);
  gm_pressure_level held = classifier_hold(ratio, thresholds);
  if (held > previous) held = previous;
  return entered > held ? entered : held;
}
