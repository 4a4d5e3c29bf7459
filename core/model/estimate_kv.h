/* Rules 2 and 3: keys, values, recurrent state; the output buffer. Exact. */
#ifndef GM_CORE_MODEL_ESTIMATE_KV_H
#define GM_CORE_MODEL_ESTIMATE_KV_H

#include "core/model/estimate_shape.h"

typedef struct gm__kv_bytes {
  uint64_t host, device;
} gm__kv_bytes;

gm__kv_bytes gm__kv_estimate(const gm_model_config *config, const gm__shape *shape,
                             const gm_estimate_settings *settings);

/* The cache of one layer, as it lies on the device. */
uint64_t gm__kv_layer(const gm_model_config *config, const gm__shape *shape, uint64_t layer);

uint64_t gm__output_estimate(const gm__shape *shape, const gm_estimate_settings *settings);

#endif
