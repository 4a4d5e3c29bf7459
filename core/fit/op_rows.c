/* One row for each architecture, by GGUF's name. */
#include "core/fit/op_rows.h"

#include <stddef.h>
#include <string.h>

static const gm__op_row op_rows[] = {
    {.architecture = "llama"},
    {.architecture = "deci"},
    {.architecture = "ernie4_5"},
    {.architecture = "exaone"},
    {.architecture = "granite"},
    {.architecture = "granite_swa", .windows = true},
    {.architecture = "hunyuan-dense", .head_norm = true},
    {.architecture = "hunyuan_vl", .head_norm = true},
    {.architecture = "internlm2"},
    {.architecture = "maincoder", .head_norm = true},
    {.architecture = "maple", .head_norm = true, .windows = true},
    {.architecture = "mellum", .head_norm = true, .windows = true},
    {.architecture = "minicpm"},
    {.architecture = "mistral3"},
    {.architecture = "nanbeige"},
    {.architecture = "pangu-embedded"},
    {.architecture = "seed_oss"},
    {.architecture = "xverse"},
    {.architecture = "gemma"},
    {.architecture = "qwen2"},
    {.architecture = "qwen3", .head_norm = true},
    {.architecture = "qwen3moe", .head_norm = true},
    {.architecture = "gemma2", .key_first = true, .windows = true},
    {.architecture = "gemma3", .head_norm = true, .key_first = true, .windows = true},
    {.architecture = "olmo2", .no_pre_norm = true, .windows = true},
    {.architecture = "exaone4", .no_pre_norm = true, .head_norm = true, .windows = true},
    {.architecture = "glm4", .fused_gate = true},
    {.architecture = "chatglm", .fused_qkv = true, .fused_gate = true},
    {.architecture = "plamo", .parallel = true},
    {.architecture = "plamo3", .head_norm = true, .fused_qkv = true, .fused_gate = true, .windows = true},
    {.architecture = "arcee", .plain = true},
    {.architecture = "apertus", .head_norm = true, .plain = true},
    {.architecture = "orion", .layer_norm = true},
    {.architecture = "olmo", .layer_norm = true},
    {.architecture = "jais2", .layer_norm = true, .plain = true},
    {.architecture = "nemotron", .layer_norm = true, .plain = true},
    {.architecture = "codeshell", .layer_norm = true, .fused_qkv = true, .plain = true},
    {.architecture = "stablelm", .layer_norm = true},
    {.architecture = "starcoder2", .layer_norm = true, .plain = true},
    {.architecture = "phi3", .fused_qkv = true, .fused_gate = true, .residual_first = true},
    {.architecture = "gpt2", .layer_norm = true, .fused_qkv = true, .no_rope = true, .plain = true},
    {.architecture = "gptneox",
     .layer_norm = true,
     .fused_qkv = true,
     .parallel = true,
     .parallel_norm = true,
     .plain = true},
    {.architecture = "falcon", .layer_norm = true, .fused_qkv = true, .parallel = true, .plain = true},
    {.architecture = "command-r", .layer_norm = true, .parallel = true},
    {.architecture = "gpt-oss", .key_first = true, .outputs_at_end = true, .late_softmax = true, .windows = true},
};

const gm__op_row *gm__op_row_find(const char *architecture) {
  for (size_t i = 0; i < sizeof op_rows / sizeof *op_rows; i++) {
    if (strcmp(op_rows[i].architecture, architecture) == 0) return &op_rows[i];
  }
  return NULL;
}
