/* The memory of weights, tensor by tensor (rule 1). */
#ifndef GM_CORE_FIT_ESTIMATE_WEIGHTS_H
#define GM_CORE_FIT_ESTIMATE_WEIGHTS_H

#include "core/fit/estimate_shape.h"

typedef struct gm__weights {
  uint64_t parameters;
  uint64_t host, device;
  uint64_t tied;          /* of `device`: the copy of an embedding that is the output matrix, too */
  uint64_t largest_layer; /* as it lies on the device */
  uint64_t output;        /* the matrix that makes logits */
} gm__weights;

/* The first layer that is on the device; UINT64_MAX: nothing is. */
uint64_t gm__weights_first_layer(const gm__shape *shape, const gm_estimate_settings *settings);

/* The weights of a layer, as they lie on the device. */
typedef struct gm__layer_weights {
  uint64_t bytes;   /* without experts */
  uint64_t experts; /* those that only chosen tokens pass */
} gm__layer_weights;

/* `layers` has room for all layers of the shape. */
gm_status gm__weights_of_model(const gm_model *model, const gm__shape *shape, const gm_estimate_settings *settings,
                               gm__layer_weights *layers, gm__weights *out, gm_error *err);

/* Like gm__weights_of_model, counted from the dimensions; all tensors are of settings->weight_type. */
gm_status gm__weights_of_config(const gm_model_config *config, const gm__shape *shape,
                                const gm_estimate_settings *settings, gm__layer_weights *layers, gm__weights *out,
                                gm_error *err);

/* The bytes of a tensor of `bytes` in a buffer of `alignment`. On a device a quantised row that is no multiple of
 * 512 elements gets the bytes up to the next, once. */
uint64_t gm__weights_padded(gm_dtype type, uint64_t row, uint64_t bytes, uint64_t alignment, bool on_device);

#endif
