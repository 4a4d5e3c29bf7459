/* What an estimate says about single layers, for who places them. A layer's compute buffer is that of the whole run but
 * for the logits, which only the output layer makes: each device plans its own. */
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/model/estimate_parts.h"

static void layers_fill(const gm_model_config *config, const gm__estimate_parts *parts, gm_fit_layer *layers,
                        gm_fit_request *out) {
  const gm__shape *shape = &parts->shape;
  uint64_t inner = gm__compute_formula_inner(shape), held = 0;
  for (uint64_t i = 0; i < shape->layers; i++) {
    layers[i] = (gm_fit_layer){.weight_bytes = parts->layers[i].bytes,
                               .expert_bytes = parts->layers[i].experts,
                               .kv_bytes = gm__kv_layer(config, shape, i),
                               .compute_bytes = gm__min(inner, parts->compute.device.bytes)};
    held = gm__add_sat(held, gm__add_sat(layers[i].weight_bytes, layers[i].expert_bytes));
  }
  layers[shape->layers] = (gm_fit_layer){.weight_bytes = gm__sub_sat(parts->weights.device, held),
                                         .compute_bytes = parts->compute.device.bytes};
  out->layers = layers;
  out->layer_count = (uint32_t)shape->layers + 1;
  out->host_fixed_bytes = gm__add_sat(gm__add_sat(parts->weights.host, parts->compute.host.bytes), parts->output);
  out->partial_bytes = gm__compute_copied_weights(shape, &parts->weights);
}

gm_status gm_estimate_layers(const gm_services *services, const gm_model_config *config, const gm_model *model,
                             const gm_estimate_settings *settings, gm_fit_layer *layers, uint32_t capacity,
                             gm_fit_request *out, gm_error *err) {
  gm_estimate_settings all = {.struct_size = sizeof all};
  if (!layers || !out) return gm__bad_argument(err, "gm_estimate_layers", "`layers` and `out` must not be NULL");
  if (settings && settings->struct_size != sizeof all) {
    return gm__bad_argument(err, "gm_estimate_layers", "`settings->struct_size` is %u, must be %zu",
                            settings->struct_size, sizeof all);
  }
  if (settings) all = *settings;
  all.place = GM_ESTIMATE_DEVICE;
  gm__estimate_parts parts;
  gm_status status = gm__estimate_make(services, config, model, &all, &parts, err);
  if (status == GM_OK && capacity < parts.shape.layers + 1) {
    status = gm__bad_argument(err, "gm_estimate_layers", "`capacity` is %u, %llu layers and the output need more",
                              capacity, (unsigned long long)parts.shape.layers);
  }
  if (status == GM_OK) layers_fill(config, &parts, layers, out);
  gm__estimate_release(services, &parts);
  return status;
}
