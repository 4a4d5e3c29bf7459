/* Model files: reading them, estimates of their memory, whether they fit and where, plans, loading. It includes
 * gm/gm.h. */
#ifndef GM_MODEL_ALL_H
#define GM_MODEL_ALL_H

#include "gm/components.h"
#include "gm/estimate.h"
#include "gm/fit.h"
#include "gm/fit_check.h"
#include "gm/gm.h"
#include "gm/load.h"
#include "gm/model.h"
#include "gm/model_config.h"
#include "gm/model_value.h"
#include "gm/plan.h"
#include "gm/save.h"

#endif
