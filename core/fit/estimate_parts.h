/* The parts of an estimate, and all of them together. */
#ifndef GM_CORE_FIT_ESTIMATE_PARTS_H
#define GM_CORE_FIT_ESTIMATE_PARTS_H

#include "core/fit/estimate_weights.h"

/* ---- keys, values, recurrent state, and the output buffer: rules 2 and 3, exact ---- */

typedef struct gm__kv_bytes {
  uint64_t host, device; /* with the state */
  uint64_t state;        /* of recurrent layers, on both */
} gm__kv_bytes;

gm__kv_bytes gm__kv_estimate(const gm__shape *shape, const gm_estimate_settings *settings);

/* The cache of one layer, as it lies on the device. */
uint64_t gm__kv_layer(const gm__shape *shape, uint64_t layer);

uint64_t gm__output_estimate(const gm__shape *shape, const gm_estimate_settings *settings);

/* ---- operations: rule 5a ---- */

/* Walk the operations of a whole decoder, in the engine's order. *out: bytes of the compute buffer when everything runs
 * on the device, or on the host. The shape has a row. */
gm_status gm__op_walk(const gm_services *services, const gm__shape *shape, bool on_host, uint64_t *out, gm_error *err);

/* ---- compute buffers: rules 4 and 5b to 5d, by formula, and how far they can be off ---- */

typedef struct gm__compute {
  gm_estimate_method method;
  gm_memory_range host, device;
  bool bounded; /* measured ones are inside, although the architecture's are not in general */
} gm__compute;

/* Rule 5b with 5c. */
uint64_t gm__compute_formula(const gm__shape *shape);

/* Like gm__compute_formula, without the logits: the need of a device that does not make them. */
uint64_t gm__compute_formula_inner(const gm__shape *shape);

/* Rule 5d: copies of the host's weights on the device, when some layers are there. */
uint64_t gm__compute_copied_weights(const gm__shape *shape, const gm__weights *weights);

/* Rule 4. */
uint64_t gm__compute_host_inputs(const gm__shape *shape);

/* Both stacks of an encoder-decoder, all on a device or all on the host. False: it is none, or runs otherwise. */
bool gm__compute_stacks(const gm__shape *shape, const gm_estimate_settings *settings, gm__compute *out);

gm_status gm__compute_estimate(const gm_services *services, const gm__shape *shape,
                               const gm_estimate_settings *settings, const gm__weights *weights, gm__compute *out,
                               gm_error *err);

/* ---- the whole ---- */

typedef struct gm__estimate_parts {
  gm__shape shape;
  gm__weights weights;
  gm__layer_weights *layers; /* of each layer */
  gm__kv_bytes kv;
  gm__compute compute;
  uint64_t output;
} gm__estimate_parts;

/* Say of each part how far it can be trusted. */
void gm__standing_fill(const gm__estimate_parts *parts, bool from_tensors, const gm_estimate_settings *settings,
                       gm_memory_estimate *out);

/* Give `out` back with gm__estimate_release, also after a failure. It notes what is not sure of a configuration that a
 * program has put together. */
gm_status gm__estimate_make(const gm_services *services, gm_model_config *config, const gm_model *model,
                            const gm_estimate_settings *settings, gm__estimate_parts *out, gm_error *err);
void gm__estimate_release(const gm_services *services, gm__estimate_parts *parts);

#endif
