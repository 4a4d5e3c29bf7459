/* Where a tensor goes is in its name: embeddings stay on the host, layers are numbered, all else goes with the output
 * matrix. Names of safetensors checkpoints are understood as far as layers and embeddings go. */
#include "core/fit/estimate_weights.h"

#include <string.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/model/layers.h"

#define WEIGHTS_NO_LAYER UINT64_MAX

uint64_t gm__weights_first_layer(const gm__shape *shape, const gm_estimate_settings *settings) {
  if (settings->place == GM_ESTIMATE_DEVICE) return 0;
  if (settings->place == GM_ESTIMATE_HOST || settings->device_layers == 0) return UINT64_MAX;
  return gm__sub_sat(shape->layers + 1, settings->device_layers);
}

uint64_t gm__weights_padded(gm_dtype type, uint64_t row, uint64_t bytes, uint64_t alignment, bool on_device) {
  uint32_t elements = 1, block = 0;
  if (on_device && gm_dtype_block(type, &elements, &block) == GM_OK && elements > 1) {
    uint64_t rest = row % GM__ESTIMATE_QUANT_ROW;
    if (rest) bytes = gm__add_sat(bytes, (GM__ESTIMATE_QUANT_ROW - rest) / elements * block);
  }
  return gm__round_up(bytes, alignment);
}

/* ---- names ---- */

static bool weights_ends_with(const char *name, const char *end) {
  size_t length = strlen(name), end_length = strlen(end);
  return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

/* Embeddings are looked up row by row, which the host does. */
static const struct {
  const char *end;
  bool of_tokens; /* a model without an output matrix uses it as one */
} weights_embeddings[] = {{"token_embd.weight", true},   {"embed_tokens.weight", true},
                          {"wte.weight", true},          {"word_embeddings.weight", true},
                          {"embed_in.weight", true},     {"position_embd.weight", false},
                          {"token_types.weight", false}, {"wpe.weight", false}};

static bool weights_stay_on_host(const char *name) {
  for (size_t i = 0; i < sizeof weights_embeddings / sizeof *weights_embeddings; i++) {
    if (weights_ends_with(name, weights_embeddings[i].end)) return true;
  }
  return false;
}

/* A whole part of the name: models have others beside it, such as per_layer_token_embd.weight. */
static bool weights_is_embedding(const char *name) {
  for (size_t i = 0; i < sizeof weights_embeddings / sizeof *weights_embeddings; i++) {
    const size_t length = strlen(name), end = strlen(weights_embeddings[i].end);
    if (!weights_embeddings[i].of_tokens || !weights_ends_with(name, weights_embeddings[i].end)) continue;
    if (length == end || name[length - end - 1] == '.') return true;
  }
  return false;
}

static bool weights_is_output(const char *name) {
  return strcmp(name, "output.weight") == 0 || weights_ends_with(name, "lm_head.weight") ||
         weights_ends_with(name, "embed_out.weight");
}

/* The first part of the name, between dots, that is a number. */
static uint64_t weights_layer(const char *name) {
  for (const char *part = name; part; part = strchr(part, '.') ? strchr(part, '.') + 1 : NULL) {
    size_t digits = strspn(part, "0123456789");
    if (digits == 0 || digits > 6 || part[digits] != '.') continue;
    uint64_t value = 0;
    for (size_t i = 0; i < digits; i++) value = value * 10 + (uint64_t)(part[i] - '0');
    return value;
  }
  return WEIGHTS_NO_LAYER;
}

/* ---- the sum ---- */

typedef struct weights_sum {
  const gm__shape *shape;
  uint64_t first_layer;
  uint64_t embedding_device; /* what the embedding takes as an output matrix on the device; 0: none was seen */
  bool has_output;
  gm__layer_weights *layers;
  gm__weights total;
} weights_sum;

static uint64_t weights_elements(const gm_tensor_info *tensor) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < tensor->rank; i++) count = gm__mul_sat(count, tensor->shape[i]);
  return count;
}

/* Add a tensor of no layer to the output matrix. Two are elsewhere: the frequencies of rope are wherever layers are,
 * and the norm of the embeddings is with the first layer. */
static void weights_add_shared(weights_sum *sum, const char *name, uint64_t on_host, uint64_t on_device) {
  bool any_device = sum->first_layer != UINT64_MAX, all_device = sum->first_layer == 0;
  bool to_device = any_device, to_host = !any_device;
  if (weights_stay_on_host(name) || (weights_ends_with(name, "token_embd_norm.weight") && !all_device) ||
      (weights_ends_with(name, "token_embd_norm.bias") && !all_device)) {
    to_device = false;
    to_host = true;
  }
  if (weights_ends_with(name, "rope_freqs.weight") && !all_device) to_host = true;
  if (to_device) sum->total.device = gm__add_sat(sum->total.device, on_device);
  if (to_host) sum->total.host = gm__add_sat(sum->total.host, on_host);
}

static bool weights_is_expert(const char *name) { return strstr(name, "_exps.") || strstr(name, ".experts."); }

static void weights_add_layer(weights_sum *sum, uint64_t layer, const char *name, uint64_t on_host,
                              uint64_t on_device) {
  uint64_t *part = weights_is_expert(name) ? &sum->layers[layer].experts : &sum->layers[layer].bytes;
  *part = gm__add_sat(*part, on_device);
  if (layer >= sum->first_layer) {
    sum->total.device = gm__add_sat(sum->total.device, on_device);
  } else {
    sum->total.host = gm__add_sat(sum->total.host, on_host);
  }
}

/* Engines leave the layers of multi-token prediction in the file. */
static bool weights_is_left(const weights_sum *sum, uint64_t layer) {
  return layer < sum->shape->layers && gm__shape_layer(sum->shape, layer)->flags & GM_LAYER_UNUSED;
}

static void weights_add(weights_sum *sum, const gm_tensor_info *tensor) {
  uint64_t row = tensor->rank ? tensor->shape[tensor->rank - 1] : 1;
  uint64_t layer = weights_layer(tensor->name);
  uint64_t on_device = gm__weights_padded(tensor->dtype, row, tensor->bytes, sum->shape->alignment, true);
  uint64_t on_host = gm__weights_padded(tensor->dtype, row, tensor->bytes, GM__ESTIMATE_HOST_ALIGNMENT, false);
  sum->total.parameters = gm__add_sat(sum->total.parameters, weights_elements(tensor));
  if (weights_is_left(sum, layer)) return;
  if (weights_is_output(tensor->name)) {
    sum->has_output = true;
    sum->total.output = on_device;
  }
  if (weights_is_embedding(tensor->name)) sum->embedding_device = on_device;
  if (layer < sum->shape->layers) {
    weights_add_layer(sum, layer, tensor->name, on_host, on_device);
  } else {
    weights_add_shared(sum, tensor->name, on_host, on_device);
  }
}

/* A tied embedding is the output matrix, too: there is a copy of it on the device. */
static void weights_finish(weights_sum *sum, gm__weights *out) {
  if (!sum->has_output && !sum->shape->encoder_only && !sum->shape->traits->host_head) {
    sum->total.output = sum->embedding_device;
    if (sum->first_layer != UINT64_MAX) sum->total.tied = sum->embedding_device;
    sum->total.device = gm__add_sat(sum->total.device, sum->total.tied);
  }
  for (uint64_t i = 0; i < sum->shape->layers; i++) {
    sum->total.largest_layer =
        gm__max(sum->total.largest_layer, gm__add_sat(sum->layers[i].bytes, sum->layers[i].experts));
  }
  *out = sum->total;
}

gm_status gm__weights_of_model(const gm_model *model, const gm__shape *shape, const gm_estimate_settings *settings,
                               gm__layer_weights *layers, gm__weights *out, gm_error *err) {
  weights_sum sum = {.shape = shape, .first_layer = gm__weights_first_layer(shape, settings), .layers = layers};
  gm_status status = GM_OK;
  uint64_t count = gm_model_tensor_count(model);
  if (count == 0) {
    return gm__bad_argument(err, "gm_estimate_memory", "`model` holds no tensors: a vocabulary alone is no model");
  }
  for (uint64_t i = 0; i < count && status == GM_OK; i++) {
    gm_tensor_info tensor = {.struct_size = sizeof tensor};
    status = gm_model_tensor(model, i, &tensor, err);
    if (status == GM_OK) weights_add(&sum, &tensor);
  }
  if (status == GM_OK) weights_finish(&sum, out);
  return status;
}

/* ---- from dimensions ---- */

static uint64_t weights_attention_parameters(const gm__shape *shape, const gm_layer_kind *kind, uint64_t cached) {
  uint64_t query = gm__mul_sat(shape->hidden, gm__mul_sat(kind->heads, gm__layer_query_size(kind)));
  uint64_t result = gm__mul_sat(shape->hidden, gm__mul_sat(kind->heads, gm__layer_result_size(kind)));
  return gm__add_sat(gm__add_sat(query, result), gm__mul_sat(shape->hidden, cached));
}

static uint64_t weights_matrices(const gm__shape *shape) { return shape->traits->plain ? 2 : 3; }

/* A recurrent layer (Mamba): projections in and out, convolution, step sizes, state. A short convolution of the
 * residual stream has three gates. */
static uint64_t weights_recurrent_parameters(const gm_model_config *config, const gm_layer_kind *kind) {
  uint64_t inner = kind->inner_size, state = kind->state_size, step = (config->hidden + 15) / 16;
  if (kind->state_elements == 0) {
    return gm__add_sat(gm__mul_sat(4 * config->hidden, config->hidden),
                       gm__add_sat(kind->conv_elements, config->hidden));
  }
  uint64_t matrices = gm__mul_sat(3 * config->hidden, inner) + gm__mul_sat(inner, 2 * step + 2 * state);
  return gm__add_sat(matrices, inner * ((uint64_t)kind->conv_kernel + 1) + inner * (state + 2) + config->hidden);
}

/* Beside the layers that are counted: those of an encoder, which attend to their own tokens alone. They are as wide as
 * the widest of the decoder. */
static uint64_t weights_encoder_parameters(const gm_model_config *config, const gm__shape *shape) {
  const gm_layer_kind widest = gm_model_widest_layer(config);
  uint64_t inner = gm__mul_sat(3 * shape->hidden, widest.intermediate);
  uint64_t attention = weights_attention_parameters(shape, &widest, shape->key_width + shape->value_width);
  uint64_t layer = gm__add_sat(attention, gm__add_sat(inner, 2 * shape->hidden));
  return gm__mul_sat(config->encoder_layers, layer);
}

/* Queries, keys and values go through narrow rows; only the rotated part of a key does not. */
static uint64_t weights_compressed_parameters(const gm_layer_kind *kind, const gm__shape *shape) {
  const uint64_t heads = kind->heads, head = gm__layer_query_size(kind), narrow = kind->query_rank;
  const uint64_t query = gm__mul_sat(heads, head), value = gm__mul_sat(heads, gm__layer_result_size(kind));
  const uint64_t rank = gm__sub_sat(kind->key_size, kind->rotated_size);
  const uint64_t plain = gm__mul_sat(heads, gm__sub_sat(head, kind->rotated_size));
  uint64_t count = gm__mul_sat(narrow ? narrow : shape->hidden, query);
  count = gm__add_sat(count, gm__mul_sat(shape->hidden, narrow + kind->key_size));
  count = gm__add_sat(count, gm__mul_sat(rank, gm__add_sat(plain, value)));
  return gm__add_sat(count, gm__mul_sat(value, shape->hidden));
}

static uint64_t weights_mixing_parameters(const gm_model_config *config, const gm__shape *shape,
                                          const gm_layer_kind *kind) {
  const bool projects = kind->flags & (GM_LAYER_ATTENDS | GM_LAYER_UNCACHED);
  const uint64_t cached = projects ? gm__mul_sat(kind->kv_heads, (uint64_t)kind->key_size + kind->value_size) : 0;
  const bool attends = projects || kind->flags & GM_LAYER_SHARES;
  uint64_t count = attends ? weights_attention_parameters(shape, kind, cached) : 0;
  if (kind->flags & GM_LAYER_COMPRESSED) count = weights_compressed_parameters(kind, shape);
  if (attends && shape->encoder_decoder) count = gm__add_sat(gm__mul_sat(2, count), shape->hidden);
  return kind->flags & GM_LAYER_RECURRENT ? gm__add_sat(count, weights_recurrent_parameters(config, kind)) : count;
}

typedef struct weights_layer_count {
  uint64_t dense, experts;
} weights_layer_count;

static weights_layer_count weights_layer_parameters(const gm_model_config *config, const gm__shape *shape,
                                                    const gm_layer_kind *kind) {
  const uint64_t column = weights_matrices(shape) * shape->hidden;
  if (kind->flags & GM_LAYER_UNUSED) return (weights_layer_count){0, 0};
  if (config->parameters_counted) return (weights_layer_count){kind->parameters, kind->expert_parameters};
  weights_layer_count out = {.dense = weights_mixing_parameters(config, shape, kind)};
  if (shape->recurrent) return out;
  out.dense = gm__add_sat(out.dense, gm__mul_sat(column, kind->intermediate));
  if (kind->flags & GM_LAYER_EXPERTS) {
    out.experts = gm__mul_sat(gm__mul_sat(column, kind->expert_intermediate), kind->experts);
    out.dense = gm__add_sat(out.dense, gm__mul_sat(column, kind->shared_intermediate));
    out.dense = gm__add_sat(out.dense, gm__mul_sat(shape->hidden, kind->experts));
  }
  out.dense = gm__add_sat(out.dense, (shape->row && shape->row->layer_norm ? 4 : 2) * shape->hidden);
  return out;
}

static uint64_t weights_bytes(gm_dtype type, uint64_t elements) {
  uint32_t block = 1, bytes = 0;
  if (gm_dtype_block(type, &block, &bytes) != GM_OK) return 0;
  return gm__mul_sat(elements / block, bytes);
}

/* How elements become bytes: matrices of layers may be quantised, all else has a type. */
typedef struct weights_scale {
  gm_dtype type;
  double dense_bits, expert_bits; /* 0: as `type` */
} weights_scale;

static uint64_t weights_scaled(const weights_scale *scale, double bits, uint64_t elements) {
  return bits > 0 ? gm__scale_sat(elements, bits / 8) : weights_bytes(scale->type, elements);
}

static weights_scale weights_scale_of(const gm_model_config *config, const gm_estimate_settings *settings) {
  weights_scale out = {.type = settings->weight_type ? settings->weight_type : config->weight_type};
  if (out.type == GM_DTYPE_F64) out.type = GM_DTYPE_F16;
  if (settings->weight_type) return out;
  out.expert_bits = config->matrix_bits;
  out.dense_bits = config->experts_quantised ? 0 : config->matrix_bits;
  return out;
}

/* Elements of all layers; bytes of them on each side. */
typedef struct weights_count {
  uint64_t layers, device, host;
} weights_count;

static weights_count weights_count_layers(const gm_model_config *config, const gm__shape *shape, uint64_t first,
                                          const weights_scale *scale, gm__layer_weights *layers, gm__weights *out) {
  weights_count sum = {0};
  for (uint64_t i = 0; i < shape->layers; i++) {
    const weights_layer_count count = weights_layer_parameters(config, shape, gm__shape_layer(shape, i));
    layers[i] = (gm__layer_weights){weights_scaled(scale, scale->dense_bits, count.dense),
                                    weights_scaled(scale, scale->expert_bits, count.experts)};
    const uint64_t bytes = gm__add_sat(layers[i].bytes, layers[i].experts);
    uint64_t *side = i >= first ? &sum.device : &sum.host;
    *side = gm__add_sat(*side, bytes);
    sum.layers = gm__add_sat(sum.layers, gm__add_sat(count.dense, count.experts));
    out->largest_layer = gm__max(out->largest_layer, bytes);
  }
  return sum;
}

/* Parameters beside the layers: tables that are looked up, and those behind the layers, each parameter once. */
typedef struct weights_ends {
  uint64_t embedding, behind, copied; /* copied: of the embedding, which is the output matrix too */
} weights_ends;

static weights_ends weights_ends_of(const gm_model_config *config, const gm__shape *shape) {
  const uint64_t table = shape->vocab * shape->hidden;
  weights_ends out = {.embedding = table, .copied = config->tied_embeddings ? table : 0};
  if (config->parameters_counted) {
    out.embedding = config->embedding_parameters;
    out.behind = gm__add_sat(config->output_parameters, config->other_parameters);
    return out;
  }
  out.behind = gm__add_sat(shape->hidden, weights_encoder_parameters(config, shape));
  if (!config->tied_embeddings) out.behind = gm__add_sat(out.behind, table);
  return out;
}

gm_status gm__weights_of_config(const gm_model_config *config, const gm__shape *shape,
                                const gm_estimate_settings *settings, gm__layer_weights *layers, gm__weights *out,
                                gm_error *err) {
  const weights_scale scale = weights_scale_of(config, settings);
  const gm_dtype type = scale.type;
  if (gm_dtype_block(type, NULL, NULL) != GM_OK) {
    return gm__bad_argument(err, "gm_estimate_memory", "`weight_type` is %d, which is no type", (int)type);
  }
  const weights_ends ends = weights_ends_of(config, shape);
  const uint64_t first = gm__weights_first_layer(shape, settings);
  const weights_count sum = weights_count_layers(config, shape, first, &scale, layers, out);
  const bool any_device = first != UINT64_MAX;
  const uint64_t device = any_device ? gm__add_sat(ends.behind, ends.copied) : 0;
  const uint64_t host = any_device ? ends.embedding : gm__add_sat(ends.embedding, ends.behind);
  out->parameters = gm__add_sat(sum.layers, gm__add_sat(ends.embedding, ends.behind));
  out->device = gm__add_sat(sum.device, weights_bytes(type, device));
  out->host = gm__add_sat(sum.host, weights_bytes(type, host));
  out->output = weights_bytes(type, shape->vocab * shape->hidden);
  out->tied = any_device && ends.copied ? out->output : 0;
  return GM_OK;
}
