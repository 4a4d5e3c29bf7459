#include "core/model/config_key.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/model/config_json_keys.h"

/* Keys that look as if they mattered, and do not: their sizes are in tensors, or concern no memory. */
static const char *const key_harmless[] = {
    "decay_lora_rank", "iclr_lora_rank", "residual_mix_lora_rank", "gate_lora_rank", "output_lora_rank", "adapters.",
    "time_step_rank", "dt_b_c_rms", "dt_rank", "indexer.head_count", "indexer.local_", "indexer.top_k", "rope.",
    "rope_", "swiglu_", "xielu", "activation", "deepstack_mapping", "expert_", "kda.safe_gate", "kda.gate_lower",
    "window_pattern", "ple.", "layer_norm", "feat_", "relative_attention", "layer_multiplier", "tokenizer",
    /* of a config.json: */
    "use_cache", "cache_implementation", "cache_dtype", "no_repeat_ngram",
    "qk_head_dim", /* the sum of two that gm reads */
    "conv_dim",    /* the width of the model */
    "conv_bias", "conv_use_", "mamba_chunk_size", "mamba_dt_", "mamba_proj_bias", "mamba_hidden_act",
    "mamba_norm_before_gate", "mamba_rms_norm", "mamba_inner_layernorms", "hidden_mamba_act", "use_mamba_kernels",
    "_multiplier", "_factor", "full_attn_idxs", "moe_layers", /* which layers have experts: a step says it too */
};

/* Parts of names that have to do with what layers keep. */
static const char *const key_weighty[] = {
    "ssm.",      "ssm_",      "lora_rank",  "sliding_window", "window_size", "_swa",         "swa_",
    "indexer",   "index_",    "recurrent",  "compress",       "kda",         "wkv",          "shortconv",
    "shared_kv", "kv_shared", "num_loops",  "mamba_",         "linear_attn", "linear_conv",  "linear_value",
    "conv_",     "cache",     "kv_heads",   "head_count",     "key_length",  "value_length", "_head_dim",
    "ngram",     "latent",    "state_size",
};

static bool key_has_any(const char *rest, const char *const *parts, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (strstr(rest, parts[i])) return true;
  }
  return false;
}

bool gm__config_key_matters(const char *rest, bool is_list) {
  if (key_has_any(rest, key_harmless, sizeof key_harmless / sizeof *key_harmless)) return false;
  return is_list || key_has_any(rest, key_weighty, sizeof key_weighty / sizeof *key_weighty);
}

/* ---- of a config.json ---- */

static bool key_is_of_language(const char *object) {
  static const char *const names[] = {"", "text_config", "llm_config", "language_config", "ffn_config", "attn_config"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(object, names[i]) == 0) return true;
  }
  return false;
}

static bool key_is_list(const gm__config_values *values, const gm__config_value *value, uint64_t layers) {
  if (value->is.form != GM__CONFIG_LIST || layers < 2 || value->length != layers) return false;
  return values->element[value->first].form != GM__CONFIG_TEXT;
}

/* An object that is not the language model's is a key, too. */
static const char *key_in_doubt(const gm__config_values *values, const gm__config_value *value,
                                const gm__json_names *names, uint64_t layers) {
  const bool inside = key_is_of_language(value->object);
  const gm__json_text key = {.text = value->key, .length = strlen(value->key)};
  if (value->is.form == GM__CONFIG_COUNT && value->is.count == 0) return NULL;
  if (value->is.form == GM__CONFIG_LIST && value->length == 0) return NULL;
  if (!inside) return gm__config_key_matters(value->object, false) ? value->object : NULL;
  if (gm__json_names_find(names, &key) < GM__JSON_KEYS) return NULL;
  return gm__config_key_matters(value->key, key_is_list(values, value, layers)) ? value->key : NULL;
}

void gm__config_doubts(const gm__config_values *values, gm_model_config *out) {
  gm__json_names names;
  gm__json_names_init(&names);
  for (uint32_t i = 0; i < values->count && !out->unsure[0]; i++) {
    const char *key = key_in_doubt(values, &values->value[i], &names, out->layers);
    if (key) snprintf(out->unsure, sizeof out->unsure, "gm does not know the key \"%.48s\"", key);
  }
}
