#include "core/model/config_key.h"

#include <stddef.h>
#include <string.h>

/* Keys that look as if they mattered, and do not: their sizes are in tensors, or concern no memory. */
static const char *const key_harmless[] = {
    "decay_lora_rank",
    "iclr_lora_rank",
    "residual_mix_lora_rank",
    "gate_lora_rank",
    "output_lora_rank",
    "adapters.",
    "time_step_rank",
    "dt_b_c_rms",
    "dt_rank",
    "indexer.head_count",
    "indexer.block_size",
    "indexer.local_",
    "indexer.top_k",
    "rope.",
    "rope_",
    "swiglu_",
    "xielu",
    "activation",
    "deepstack_mapping",
    "expert_",
    "kda.safe_gate",
    "kda.gate_lower",
    "window_pattern",
    "ple.",
    "layer_norm",
    "feat_",
    "relative_attention",
    "layer_multiplier",
    "tokenizer",
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
