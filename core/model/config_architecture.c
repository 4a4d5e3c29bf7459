/* Tables only: a new architecture is a row. */
#include "core/model/config_architecture.h"

#include <string.h>

typedef struct architecture_type {
  const char *type;
  const char *name;
} architecture_type;

static const architecture_type architecture_types[] = {
    {"mistral", "llama"},
    {"mixtral", "llama"},
    {"ministral", "llama"},
    {"gemma3_text", "gemma3"},
    {"gemma3n_text", "gemma3n"},
    {"gpt_neox", "gptneox"},
    {"gpt_oss", "gpt-oss"},
    {"gpt_bigcode", "starcoder"},
    {"RefinedWeb", "falcon"},
    {"RefinedWebModel", "falcon"},
    {"cohere", "command-r"},
    {"qwen2_moe", "qwen2moe"},
    {"qwen2_vl", "qwen2vl"},
    {"qwen2_5_vl", "qwen2vl"},
    {"qwen2_5_vl_text", "qwen2vl"},
    {"qwen2_vl_text", "qwen2vl"},
    {"qwen3_moe", "qwen3moe"},
    {"qwen3_vl_text", "qwen3vl"},
    {"qwen3_next", "qwen3next"},
    {"deepseek_v2", "deepseek2"},
    {"deepseek_v3", "deepseek2"},
    {"kimi_k2", "deepseek2"},
    {"phi", "phi2"},
    {"phi-msft", "phi2"},
    {"stablelm_epoch", "stablelm"},
    {"granitemoehybrid", "granitehybrid"},
    {"olmo3", "olmo2"},
    {"llama4_text", "llama4"},
    {"mllama_text_model", "mllama"},
    {"nomic_bert", "nomic-bert"},
    {"modernbert", "modern-bert"},
    {"roberta", "bert"},
    {"xlm-roberta", "bert"},
    {"camembert", "bert"},
    {"distilbert", "bert"},
    {"mt5", "t5"},
    {"umt5", "t5"},
    {"glm4_moe", "glm4moe"},
    {"nemotron_h", "nemotron_h"},
    {"lfm2_moe", "lfm2moe"},
    {"qwen3_5_text", "qwen35"},
    {"qwen3_5_moe_text", "qwen35moe"},
    {"falcon_mamba", "mamba"},
    {"falcon_h1", "falcon-h1"},
    {"hunyuan_v1_moe", "hunyuan-moe"},
};

const char *gm__architecture_of_type(const char *type) {
  for (size_t i = 0; i < sizeof architecture_types / sizeof *architecture_types; i++) {
    if (strcmp(architecture_types[i].type, type) == 0) return architecture_types[i].name;
  }
  return type;
}

typedef struct architecture_default {
  const char *name;
  gm__dimension field;
  uint64_t value;
} architecture_default;

/* Where published files rely on the defaults of their class: Gemma 3's text_config, Gemma's head size and others. */
static const architecture_default architecture_defaults[] = {
    {"gemma", GM__DIM_HEAD_SIZE, 256},  {"gemma2", GM__DIM_HEAD_SIZE, 256},   {"gemma2", GM__DIM_WINDOW, 4096},
    {"gemma3", GM__DIM_HEADS, 8},       {"gemma3", GM__DIM_KV_HEADS, 4},      {"gemma3", GM__DIM_HEAD_SIZE, 256},
    {"gemma3", GM__DIM_VOCAB, 262208},  {"gemma3", GM__DIM_CONTEXT, 131072},  {"gemma3", GM__DIM_WINDOW, 4096},
    {"qwen3", GM__DIM_HEAD_SIZE, 128},  {"qwen3moe", GM__DIM_HEAD_SIZE, 128}, {"falcon", GM__DIM_CONTEXT, 2048},
    {"gpt-oss", GM__DIM_HEAD_SIZE, 64}, {"mamba", GM__DIM_CONV_KERNEL, 4},    {"mamba", GM__DIM_STATE_SIZE, 16},
    {"mamba", GM__DIM_EXPAND, 2},
};

void gm__architecture_defaults(gm__dimensions *config) {
  for (size_t i = 0; i < sizeof architecture_defaults / sizeof *architecture_defaults; i++) {
    const architecture_default *row = &architecture_defaults[i];
    if (strcmp(row->name, config->architecture) != 0 || config->stated[row->field]) continue;
    gm__dimensions_state(config, row->field, row->value);
  }
}
