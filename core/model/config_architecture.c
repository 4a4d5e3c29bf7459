/* Tables only: a new architecture is a row. */
#include "core/model/config_architecture.h"

#include <string.h>

static const gm__architecture architectures[] = {
    {.name = "bert", .encoder_only = true, .tied = true},
    {.name = "nomic-bert", .encoder_only = true, .tied = true},
    {.name = "nomic-bert-moe", .encoder_only = true, .tied = true},
    {.name = "neo-bert", .encoder_only = true, .tied = true},
    {.name = "jina-bert-v2", .encoder_only = true, .tied = true},
    {.name = "jina-bert-v3", .encoder_only = true, .tied = true},
    {.name = "modern-bert", .encoder_only = true, .tied = true, .window_period = 3, .full_first = true},
    {.name = "gemma-embedding", .encoder_only = true, .tied = true, .window_period = 6},
    {.name = "t5encoder", .encoder_only = true, .tied = true},
    {.name = "t5", .encoder_decoder = true, .tied = true},
    {.name = "mamba", .recurrent = true, .tied = true},
    {.name = "mamba2", .recurrent = true},
    {.name = "gemma", .tied = true},
    {.name = "gemma2", .tied = true, .window_period = 2},
    {.name = "gemma3", .tied = true, .window_period = 6},
    {.name = "gemma3n", .tied = true, .window_period = 5, .cached_layers = 20},
    {.name = "gemma4", .tied = true, .window_period = 6},
    {.name = "gpt-oss", .window_period = 2},
    {.name = "cohere2", .tied = true, .window_period = 4},
    {.name = "command-r", .tied = true},
    {.name = "olmo2", .window_period = 4}, /* OLMo 3 has this name, too; OLMo 2 states no window */
    {.name = "exaone4", .window_period = 4},
    {.name = "exaone-moe", .window_period = 4},
    {.name = "llama4", .window_period = 4, .window = 8192},
    {.name = "afmoe", .window_period = 4},
    {.name = "mellum", .window_period = 4},
    {.name = "plamo3", .window_period = 8},
    {.name = "smallthinker", .window_period = 4, .full_first = true},
    {.name = "cohere2moe", .tied = true, .window_period = 4, .full_first = true},
    {.name = "laguna", .window_period = 4, .full_first = true},
    {.name = "minicpm3", .never_compressed = true},
    {.name = "plm", .never_compressed = true},
    {.name = "lfm2", .tied = true, .mixes = GM__RECURRENT_NO_HEADS},
    {.name = "lfm2moe", .tied = true, .mixes = GM__RECURRENT_NO_HEADS},
    {.name = "granitehybrid", .mixes = GM__RECURRENT_NO_HEADS},
    {.name = "jamba", .mixes = GM__RECURRENT_NO_HEADS},
    {.name = "nemotron_h", .mixes = GM__RECURRENT_NEITHER},
    {.name = "nemotron_h_moe", .mixes = GM__RECURRENT_NEITHER},
    {.name = "qwen3next", .mixes = GM__RECURRENT_INTERVAL},
    {.name = "qwen35", .mixes = GM__RECURRENT_INTERVAL},
    {.name = "qwen35moe", .mixes = GM__RECURRENT_INTERVAL},
    {.name = "falcon-h1", .mixes = GM__RECURRENT_BOTH},
    {.name = "falcon", .tied = true, .head_twice = true, .intermediate_x = 4},
    {.name = "gpt2", .tied = true, .head_twice = true, .intermediate_x = 4},
    {.name = "starcoder", .tied = true, .head_twice = true, .intermediate_x = 4},
    {.name = "bloom", .tied = true, .head_twice = true, .intermediate_x = 4},
    {.name = "mpt", .tied = true, .head_twice = true, .intermediate_x = 4},
    {.name = "gptj", .intermediate_x = 4},
    {.name = "starcoder2", .tied = true},
};

const gm__architecture *gm__architecture_find(const char *name) {
  static const gm__architecture unknown = {.name = ""};
  for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
    if (strcmp(architectures[i].name, name) == 0) return &architectures[i];
  }
  return &unknown;
}

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
