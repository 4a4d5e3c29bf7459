/* Figures of single layers, for a placement. A layer's compute buffer is that of the whole run without the logits,
 * which only the output layer makes. Each device plans its own. */
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/fit/estimate_parts.h"

static void layers_fill(const gm__estimate_parts *parts, gm_fit_layer *layers, gm_fit_request *out) {
  const gm__shape *shape = &parts->shape;
  const uint64_t inner = gm__compute_formula_inner(shape);
  uint64_t held = 0;
  for (uint64_t i = 0; i < shape->layers; i++) {
    layers[i] = (gm_fit_layer){.weight_bytes = parts->layers[i].bytes,
                               .expert_bytes = parts->layers[i].experts,
                               .kv_bytes = gm__kv_layer(shape, i),
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

/* Figures that nobody knows are 0. */
static void layers_forget(const gm__estimate_parts *parts, const gm_memory_estimate *whole, gm_fit_layer *layers,
                          gm_fit_request *out) {
  const gm_estimate_part *part = whole->parts;
  const bool weights = part[GM_ESTIMATE_WEIGHTS].standing == GM_STANDING_UNKNOWN;
  const bool cache = part[GM_ESTIMATE_CACHE].standing == GM_STANDING_UNKNOWN;
  const bool compute = part[GM_ESTIMATE_COMPUTE].standing == GM_STANDING_UNKNOWN;
  out->standing = whole->standing;
  for (uint32_t i = 0; i < out->layer_count; i++) {
    if (weights) layers[i].weight_bytes = layers[i].expert_bytes = 0;
    if (cache) layers[i].kv_bytes = 0;
    if (compute) layers[i].compute_bytes = 0;
  }
  if (weights || compute) out->partial_bytes = 0;
  if (weights) out->host_fixed_bytes = gm__sub_sat(out->host_fixed_bytes, parts->weights.host);
  if (compute) out->host_fixed_bytes = gm__sub_sat(out->host_fixed_bytes, parts->compute.host.bytes);
}

gm_status gm_estimate_layers(const gm_services *services, const gm_model_config *config, const gm_model *model,
                             const gm_estimate_settings *settings, gm_fit_layer *layers, uint32_t capacity,
                             gm_fit_request *out, gm_error *err) {
  static const char op[] = "gm_estimate_layers";
  gm_estimate_settings all = {.struct_size = sizeof all};
  gm_model_config dimensions;
  gm_fit_request request;
  if (!layers) return gm__bad_argument(err, op, "`layers` is NULL");
  gm_status status = gm__sized_in(&request, sizeof request, out, op, "out", err);
  if (status == GM_OK) status = gm__sized_in(&dimensions, sizeof dimensions, config, op, "config", err);
  if (status == GM_OK && settings) status = gm__sized_in(&all, sizeof all, settings, op, "settings", err);
  if (status != GM_OK) return status;
  all.place = GM_ESTIMATE_DEVICE;
  gm__estimate_parts parts;
  status = gm__estimate_make(services, &dimensions, model, &all, &parts, err);
  if (status == GM_OK && capacity < parts.shape.layers + 1) {
    status = gm__bad_argument(err, op, "`capacity` is %u, %llu layers and the output need more", capacity,
                              (unsigned long long)parts.shape.layers);
  }
  if (status == GM_OK) {
    gm_memory_estimate whole = {.struct_size = sizeof whole};
    gm__standing_fill(&parts, model != NULL, &all, &whole);
    layers_fill(&parts, layers, &request);
    layers_forget(&parts, &whole, layers, &request);
    gm__sized_out(out, &request, sizeof request);
  }
  gm__estimate_release(services, &parts);
  return status;
}
