/* The parts put together. Plain dimensions go the same way as a model file: one set of rules. */
#include "gm/estimate.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/fit/estimate_parts.h"
#include "core/model/layers.h"

/* ---- from a few dimensions ---- */

static uint64_t estimate_layer_parameters(const gm_model_dims *dims) {
  uint64_t head = dims->hidden / dims->heads, kv_heads = dims->kv_heads ? dims->kv_heads : dims->heads;
  uint64_t attention = gm__mul_sat(gm__mul_sat(2, dims->hidden), gm__mul_sat(dims->heads, head));
  uint64_t cached = gm__mul_sat(gm__mul_sat(2, dims->hidden), gm__mul_sat(kv_heads, head));
  uint64_t inner = gm__mul_sat(gm__mul_sat(3, dims->hidden), dims->intermediate);
  return gm__add_sat(gm__add_sat(attention, cached), gm__add_sat(inner, gm__mul_sat(2, dims->hidden)));
}

uint64_t gm_estimate_parameters(const gm_model_dims *dims) {
  if (!dims || dims->heads == 0) return 0;
  uint64_t ends = gm__mul_sat(gm__mul_sat(2, dims->vocab), dims->hidden);
  uint64_t layers = gm__mul_sat(dims->layers, estimate_layer_parameters(dims));
  return gm__add_sat(gm__add_sat(ends, layers), dims->hidden);
}

uint64_t gm_estimate_model_memory(const gm_model_dims *dims, uint32_t element_bytes) {
  return gm__mul_sat(gm_estimate_parameters(dims), element_bytes);
}

uint64_t gm_estimate_kv_cache_memory(uint64_t layers, uint64_t kv_heads, uint64_t head_size, uint64_t context,
                                     uint32_t element_bytes) {
  uint64_t cell = gm__mul_sat(gm__mul_sat(2, layers), gm__mul_sat(kv_heads, head_size));
  return gm__mul_sat(gm__mul_sat(cell, context), element_bytes);
}

static uint32_t estimate_small(uint64_t number) { return (uint32_t)gm__min(number, UINT32_MAX); }

/* Rule 5b for the decoder that these dimensions describe; the cache in f16. REQUIRES: `heads` is not 0. */
static uint64_t estimate_activations(const gm_model_dims *dims, uint64_t context) {
  gm__shape shape;
  const uint32_t head = estimate_small(dims->hidden / dims->heads);
  const gm_layer_kind kind = {.flags = GM_LAYER_ATTENDS,
                              .heads = estimate_small(dims->heads),
                              .kv_heads = estimate_small(dims->kv_heads ? dims->kv_heads : dims->heads),
                              .key_size = head,
                              .value_size = head,
                              .intermediate = dims->intermediate};
  const gm_model_config config = {.struct_size = sizeof config,
                                  .architecture = "llama",
                                  .hidden = dims->hidden,
                                  .layers = dims->layers,
                                  .vocab = dims->vocab,
                                  .kinds = {kind},
                                  .kind_count = 1};
  const gm_estimate_settings settings = {.struct_size = sizeof settings, .context = context};
  return gm__shape_make(&config, NULL, &settings, &shape, NULL) == GM_OK ? gm__compute_formula(&shape) : UINT64_MAX;
}

gm_inference_memory gm_estimate_inference_memory(const gm_model_dims *dims, uint64_t context, uint32_t element_bytes) {
  gm_inference_memory out = {.model_bytes = 0};
  if (!dims || dims->heads == 0) return out;
  uint64_t kv_heads = dims->kv_heads ? dims->kv_heads : dims->heads;
  out.model_bytes = gm_estimate_model_memory(dims, element_bytes);
  out.kv_cache_bytes =
      gm_estimate_kv_cache_memory(dims->layers, kv_heads, dims->hidden / dims->heads, context, element_bytes);
  out.activation_bytes = context ? estimate_activations(dims, context) : 0;
  out.total_bytes = gm__add_sat(gm__add_sat(out.model_bytes, out.kv_cache_bytes), out.activation_bytes);
  return out;
}

/* ---- from a model file or its dimensions ---- */

static gm_status estimate_check(const gm_model_config *config, const gm_estimate_settings *settings, gm_error *err) {
  const char *op = "gm_estimate_memory";
  if (!memchr(config->architecture, '\0', sizeof config->architecture)) {
    return gm__bad_argument(err, op, "`architecture` has no end");
  }
  if ((int)settings->place < GM_ESTIMATE_DEVICE || (int)settings->place > GM_ESTIMATE_HOST) {
    return gm__bad_argument(err, op, "`place` is %d, which is none", (int)settings->place);
  }
  return GM_OK;
}

gm_status gm__estimate_make(const gm_services *services, gm_model_config *config, const gm_model *model,
                            const gm_estimate_settings *settings, gm__estimate_parts *out, gm_error *err) {
  *out = (gm__estimate_parts){.layers = NULL};
  gm_status status = estimate_check(config, settings, err);
  if (status == GM_OK) status = gm__services_check(services, err);
  if (status == GM_OK) status = gm__shape_make(config, model, settings, &out->shape, err);
  if (status != GM_OK) return status;
  gm__layers_doubt(config);
  out->layers = gm__alloc_array(services, out->shape.layers, sizeof *out->layers);
  if (!out->layers) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_estimate_memory", "no host memory for %llu layers",
                    (unsigned long long)out->shape.layers);
  }
  gm__weights *weights = &out->weights;
  status = model ? gm__weights_of_model(model, &out->shape, settings, out->layers, weights, err)
                 : gm__weights_of_config(config, &out->shape, settings, out->layers, weights, err);
  if (status == GM_OK) status = gm__compute_estimate(services, &out->shape, settings, weights, &out->compute, err);
  if (status != GM_OK) return status;
  out->kv = gm__kv_estimate(&out->shape, settings);
  out->output = gm__output_estimate(&out->shape, settings);
  return GM_OK;
}

void gm__estimate_release(const gm_services *services, gm__estimate_parts *parts) {
  gm__release(services, parts->layers, parts->shape.layers * sizeof *parts->layers);
  parts->layers = NULL;
}

static void estimate_fill(const gm__estimate_parts *parts, gm_memory_estimate *out) {
  const gm__shape *shape = &parts->shape;
  const gm__weights *weights = &parts->weights;
  const gm_memory_range *host = &parts->compute.host, *device = &parts->compute.device;
  out->method = parts->compute.method;
  out->parameters = weights->parameters;
  out->host_weights = weights->host;
  out->device_weights = weights->device;
  out->tied_weights = weights->tied;
  out->host_kv = parts->kv.host;
  out->device_kv = parts->kv.device;
  out->host_compute = *host;
  out->device_compute = *device;
  out->output = parts->output;
  out->context = gm__mul_sat(shape->cells, shape->streams);
  out->cells = shape->cells;
  out->window_cells = shape->window_cells;
  out->streams = shape->streams;
  out->micro_batch = shape->tokens;
}

static void estimate_add(gm_memory_range *total, const gm_memory_range *range) {
  total->bytes = gm__add_sat(total->bytes, range->bytes);
  total->low = gm__add_sat(total->low, range->low);
  total->high = gm__add_sat(total->high, range->high);
}

/* A compute buffer that is exact for this engine has a range for others, which counts here. */
static void estimate_sum(gm_memory_estimate *out) {
  for (int i = 0; i < GM_ESTIMATE_COMPUTE; i++) estimate_add(&out->total, &out->parts[i].range);
  estimate_add(&out->total, &out->host_compute);
  estimate_add(&out->total, &out->device_compute);
}

gm_status gm_estimate_memory(const gm_services *services, const gm_model_config *config, const gm_model *model,
                             const gm_estimate_settings *settings, gm_memory_estimate *out, gm_error *err) {
  static const char op[] = "gm_estimate_memory";
  gm_model_config dimensions;
  gm_estimate_settings run = {.struct_size = sizeof run};
  gm_memory_estimate estimate = {.struct_size = sizeof estimate, .weights_exact = model != NULL};
  gm_status status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status == GM_OK) status = gm__sized_in(&dimensions, sizeof dimensions, config, op, "config", err);
  if (status == GM_OK && settings) status = gm__sized_in(&run, sizeof run, settings, op, "settings", err);
  if (status != GM_OK) return status;
  gm__estimate_parts parts;
  status = gm__estimate_make(services, &dimensions, model, &run, &parts, err);
  if (status == GM_OK) {
    estimate_fill(&parts, &estimate);
    gm__standing_fill(&parts, model != NULL, &run, &estimate);
    estimate_sum(&estimate);
    gm__sized_out(out, &estimate, sizeof estimate);
  }
  gm__estimate_release(services, &parts);
  return status;
}
