/* Pressure levels out of a ratio, with hysteresis. Pure and thread-safe. */
#ifndef GM_CORE_ALGO_CLASSIFIER_H
#define GM_CORE_ALGO_CLASSIFIER_H

#include "gm/pressure.h"
#include "gm/status.h"

/* GM_ERR_INVALID_ARGUMENT naming the member that breaks the order of gm_pressure_thresholds; not-a-number breaks it
 * too. */
gm_status gm__classifier_check(const gm_pressure_thresholds *thresholds, gm_error *err);

/* The level at `ratio` (used / total) after `previous`: up at once, down only once the ratio is below threshold -
 * hysteresis. A ratio that is not a number says nothing: `previous` stays. */
gm_pressure_level gm__classifier_level(gm_pressure_level previous, double ratio,
                                       const gm_pressure_thresholds *thresholds);

#endif
