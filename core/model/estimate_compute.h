/* Rules 4 and 5b to 5d: compute buffers by formula, and how far they can be off. */
#ifndef GM_CORE_MODEL_ESTIMATE_COMPUTE_H
#define GM_CORE_MODEL_ESTIMATE_COMPUTE_H

#include "core/model/estimate_weights.h"

typedef struct gm__compute {
  gm_estimate_method method;
  gm_memory_range host, device;
} gm__compute;

/* Rule 5b with 5c. */
uint64_t gm__compute_formula(const gm__shape *shape);

/* The same without the logits: what a device needs that does not make them. */
uint64_t gm__compute_formula_inner(const gm__shape *shape);

/* Rule 5d: copies of the host's weights on the device, when some layers are there. */
uint64_t gm__compute_copied_weights(const gm__shape *shape, const gm__weights *weights);

/* Rule 4. */
uint64_t gm__compute_host_inputs(const gm__shape *shape);

gm_status gm__compute_estimate(const gm_services *services, const gm__shape *shape,
                               const gm_estimate_settings *settings, const gm__weights *weights, gm__compute *out,
                               gm_error *err);

#endif
