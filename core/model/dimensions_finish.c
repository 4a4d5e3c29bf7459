/* Invariants: what is not stated is 0, or follows from what is stated. Nothing is divided by what may be 0. A value
 * above GM__DIM_VALUE_MAX never comes here. */
#include "core/model/model_config.h"

#include <string.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/model/config_architecture.h"

/* ---- windows ---- */

static void config_windows(const gm__dimensions *config, const gm__architecture *architecture, uint64_t layers,
                           gm__layer_sizes *out) {
  const bool unused = config->stated[GM__DIM_USE_WINDOW] && config->value[GM__DIM_USE_WINDOW] == 0;
  const bool stated = config->stated[GM__DIM_WINDOW_PERIOD];
  const bool other_size = architecture->window_layers && layers != architecture->window_layers;
  out->window = config->stated[GM__DIM_WINDOW] ? config->value[GM__DIM_WINDOW] : architecture->window;
  if (unused || other_size) out->window = 0;
  if (out->window > 0 && architecture->window_fixed) out->window = architecture->window_fixed;
  out->window_period = stated ? config->value[GM__DIM_WINDOW_PERIOD] : architecture->window_period;
  if (architecture->all_windows) out->window_period = layers + 1;
  out->window_first = !architecture->full_first;
}

/* ---- heads ---- */

/* A config.json states the parts of keys and values in names of compressed attention, also where engines keep full
 * heads. */
static void config_full_heads(const gm__dimensions *config, gm__layer_sizes *out) {
  const uint64_t *value = config->value;
  if (!config->stated[GM__DIM_NOPE_SIZE]) return;
  out->head_size = value[GM__DIM_NOPE_SIZE] + value[GM__DIM_ROPE_SIZE];
  if (config->stated[GM__DIM_MLA_VALUE_SIZE]) out->value_head_size = value[GM__DIM_MLA_VALUE_SIZE];
}

/* Compressed only where the file has the parts of a compressed head: engines keep the full heads of other files. */
static void config_heads(const gm__dimensions *config, bool full, gm__layer_sizes *out) {
  const uint64_t *value = config->value;
  const bool *stated = config->stated;
  bool one_head = value[GM__DIM_MULTI_QUERY] && !value[GM__DIM_NEW_DECODER] && !stated[GM__DIM_KV_HEADS];
  uint64_t share = out->heads > 0 ? value[GM__DIM_HIDDEN] / out->heads : 0;
  out->kv_heads = stated[GM__DIM_KV_HEADS] ? value[GM__DIM_KV_HEADS] : one_head ? 1 : out->heads;
  out->head_size = stated[GM__DIM_HEAD_SIZE] ? value[GM__DIM_HEAD_SIZE] : share;
  out->value_head_size = stated[GM__DIM_VALUE_HEAD_SIZE] ? value[GM__DIM_VALUE_HEAD_SIZE] : out->head_size;
  const bool both = stated[GM__DIM_MLA_HEAD_SIZE] && stated[GM__DIM_MLA_VALUE_SIZE];
  out->kv_lora_rank = (both || stated[GM__DIM_NOPE_SIZE]) && !full ? value[GM__DIM_KV_LORA_RANK] : 0;
  if (out->kv_lora_rank == 0) {
    config_full_heads(config, out);
    return;
  }
  out->kv_heads = 1;
  out->q_lora_rank = value[GM__DIM_Q_LORA_RANK];
  out->rope_size = value[GM__DIM_ROPE_SIZE];
  if (stated[GM__DIM_NOPE_SIZE]) out->head_size = value[GM__DIM_NOPE_SIZE] + out->rope_size;
  if (stated[GM__DIM_MLA_HEAD_SIZE]) out->head_size = value[GM__DIM_MLA_HEAD_SIZE];
  if (stated[GM__DIM_MLA_VALUE_SIZE]) out->value_head_size = value[GM__DIM_MLA_VALUE_SIZE];
}

/* ---- experts, recurrence, encoders ---- */

static void config_experts(const gm__dimensions *config, gm__layer_sizes *out) {
  const uint64_t *value = config->value;
  out->experts = value[GM__DIM_EXPERTS];
  out->experts_used = value[GM__DIM_EXPERTS_USED];
  out->expert_intermediate = value[GM__DIM_EXPERT_INTERMEDIATE];
  if (out->expert_intermediate == 0) out->expert_intermediate = out->intermediate;
  out->shared_intermediate = value[GM__DIM_SHARED_INTERMEDIATE];
  if (out->shared_intermediate == 0) {
    out->shared_intermediate = gm__mul_sat(value[GM__DIM_EXPERTS_SHARED], out->expert_intermediate);
  }
  out->leading_dense_layers = value[GM__DIM_LEADING_DENSE];
}

static void config_recurrent(const gm__dimensions *config, bool recurrent, gm__layer_sizes *out) {
  const uint64_t *value = config->value;
  out->conv_kernel = value[GM__DIM_CONV_KERNEL];
  out->state_size = value[GM__DIM_STATE_SIZE];
  out->inner_size = value[GM__DIM_INNER_SIZE];
  if (out->inner_size == 0) out->inner_size = gm__mul_sat(value[GM__DIM_STATE_HEADS], value[GM__DIM_STATE_HEAD_SIZE]);
  if (out->inner_size == 0 && recurrent) out->inner_size = out->intermediate;
  if (out->inner_size == 0) out->inner_size = gm__mul_sat(value[GM__DIM_EXPAND], value[GM__DIM_HIDDEN]);
  if (!recurrent) return;
  out->intermediate = out->heads = 0;
}

/* LFM2 states a width of which it takes two thirds, rounded up. */
static void config_forward(const gm__dimensions *config, const gm__architecture *architecture, gm__layer_sizes *out) {
  const uint64_t multiple = config->value[GM__DIM_FORWARD_MULTIPLE];
  if (out->intermediate == 0) out->intermediate = architecture->intermediate_x * config->value[GM__DIM_HIDDEN];
  if (!config->value[GM__DIM_FORWARD_ADJUSTED]) return;
  out->intermediate = 2 * out->intermediate / 3;
  if (multiple) out->intermediate = (out->intermediate + multiple - 1) / multiple * multiple;
}

static void config_encoder(const gm__dimensions *config, const gm__architecture *architecture, gm_model_config *out) {
  const uint64_t *value = config->value;
  bool both = architecture->encoder_decoder || value[GM__DIM_ENCODER_DECODER];
  out->encoder_only = architecture->encoder_only || (config->stated[GM__DIM_CAUSAL] && value[GM__DIM_CAUSAL] == 0);
  if (!both) return;
  out->encoder_layers = config->stated[GM__DIM_ENCODER_LAYERS] ? value[GM__DIM_ENCODER_LAYERS] : out->layers;
  if (config->stated[GM__DIM_DECODER_LAYERS]) out->layers = value[GM__DIM_DECODER_LAYERS];
}

/* ---- the whole ---- */

static gm_status config_need(const gm__dimensions *config, const gm__dimensions_names *names, gm__dimension field,
                             const char *op, const char *path, gm_error *err) {
  if (config->value[field] > 0) return GM_OK;
  size_t length = strlen(path);
  return gm__fail(err, config->stated[field] ? GM_ERR_FORMAT : GM_ERR_NOT_FOUND, op, "%s: \"%.40s%s\" is %s",
                  length > 180 ? path + (length - 180) : path, names->prefix, names->by_field[field],
                  config->stated[field] ? "0" : "not stated");
}

static gm_status config_check(const gm__dimensions *config, const gm__architecture *architecture,
                              const gm__dimensions_names *names, const char *op, const char *path, gm_error *err) {
  gm_status status = config_need(config, names, GM__DIM_HIDDEN, op, path, err);
  if (status == GM_OK) status = config_need(config, names, GM__DIM_LAYERS, op, path, err);
  if (status != GM_OK || architecture->recurrent) return status;
  return config_need(config, names, GM__DIM_HEADS, op, path, err);
}

gm_status gm__dimensions_finish(const gm__dimensions *config, const gm__dimensions_names *names, const char *op,
                                const char *path, gm_model_config *out, gm_error *err) {
  const gm__architecture *architecture = gm__architecture_find(config->architecture);
  const uint64_t *value = config->value;
  gm_status status = config_check(config, architecture, names, op, path, err);
  if (status != GM_OK) return status;
  *out = (gm_model_config){.struct_size = sizeof *out,
                           .hidden = value[GM__DIM_HIDDEN],
                           .layers = value[GM__DIM_LAYERS],
                           .vocab = value[GM__DIM_VOCAB],
                           .context = value[GM__DIM_CONTEXT],
                           .layer_embedding = value[GM__DIM_PER_LAYER],
                           .indexer_block = value[GM__DIM_INDEXER_BLOCK],
                           .residual_streams = value[GM__DIM_STREAMS],
                           .residual_period = value[GM__DIM_RESIDUAL_PERIOD],
                           .expert_latent = gm__max(value[GM__DIM_EXPERT_LATENT], value[GM__DIM_MOE_LATENT]),
                           .weight_type = config->weight_type,
                           .matrix_bits = config->matrix_bits,
                           .experts_quantised = config->experts_quantised};
  memcpy(out->architecture, config->architecture, sizeof out->architecture);
  config_encoder(config, architecture, out);
  out->tied_embeddings = config->stated[GM__DIM_TIED] ? value[GM__DIM_TIED] != 0 : architecture->tied;
  gm__layer_sizes sizes = {.intermediate = value[GM__DIM_INTERMEDIATE], .heads = value[GM__DIM_HEADS]};
  config_forward(config, architecture, &sizes);
  config_experts(config, &sizes);
  config_recurrent(config, architecture->recurrent, &sizes);
  if (!architecture->recurrent) config_heads(config, architecture->never_compressed, &sizes);
  config_windows(config, architecture, out->layers, &sizes);
  return gm__layers_fill(config, &sizes, op, path, out, err);
}
