/* All that an estimate is made of. */
#ifndef GM_CORE_MODEL_ESTIMATE_PARTS_H
#define GM_CORE_MODEL_ESTIMATE_PARTS_H

#include "core/model/estimate_compute.h"
#include "core/model/estimate_kv.h"

typedef struct gm__estimate_parts {
  gm__shape shape;
  gm__weights weights;
  gm__layer_weights *layers; /* of each layer */
  gm__kv_bytes kv;
  gm__compute compute;
  uint64_t output;
} gm__estimate_parts;

/* Give `out` back with gm__estimate_release, also after a failure. */
gm_status gm__estimate_make(const gm_services *services, const gm_model_config *config, const gm_model *model,
                            const gm_estimate_settings *settings, gm__estimate_parts *out, gm_error *err);
void gm__estimate_release(const gm_services *services, gm__estimate_parts *parts);

#endif
