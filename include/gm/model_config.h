/* The dimensions of a model, as its file or its config.json states them: what estimates are made of (F46). */
#ifndef GM_MODEL_CONFIG_H
#define GM_MODEL_CONFIG_H

#include <stdbool.h>

#include "gm/model.h"

GM_BEGIN_DECLS

/* Set struct_size before a call. Plain data; 0 means: does not apply, or not stated. Counts, not bytes. */
typedef struct gm_model_config {
  uint32_t struct_size;
  char architecture[32]; /* GGUF's name: "llama", "gemma2", "qwen3moe"; of a config.json what corresponds to it */
  uint64_t hidden;       /* width of the residual stream */
  uint64_t intermediate; /* width of the feed-forward layer; of the dense layers where there are experts, too */
  uint64_t layers;
  uint64_t vocab; /* rows of the embedding */
  uint64_t heads;
  uint64_t kv_heads;        /* 1 with MLA */
  uint64_t head_size;       /* of a key */
  uint64_t value_head_size; /* of a value */
  uint64_t context;         /* positions it was trained for */
  uint64_t window;          /* of sliding-window layers, in positions */
  uint64_t window_period;   /* of so many layers one attends to everything; 0: no layer has a window */
  bool window_first;        /* the first layers of a period have the window, the last attends to everything */
  bool encoder_only, tied_embeddings;
  uint64_t window_layers; /* how many have it: exact, also where a list of layers has no period */
  uint64_t experts, experts_used, expert_intermediate, experts_shared;
  uint64_t expert_shared_intermediate; /* of all shared experts, where it is not theirs times expert_intermediate */
  uint64_t leading_dense_layers;       /* before the first layer with experts */
  uint64_t kv_lora_rank;               /* MLA: width of the compressed keys and values */
  uint64_t rope_size;                  /* MLA: the part of a key that is rotated */
  uint64_t conv_kernel, state_size, inner_size; /* recurrent state (Mamba) */
  uint64_t encoder_layers;                      /* of an encoder-decoder */
} gm_model_config;

/* From an open model: of a GGUF its metadata; of safetensors the config.json in its folder. What neither states gets
 * the default of its architecture where gm knows one; an unknown architecture keeps its name and what the usual keys
 * say. Thread-safe. GM_ERR_NOT_FOUND: no config.json is there, or the width, layers or heads are not stated, by the
 * key; GM_ERR_FORMAT: a value is not what the key is for, or a key is there twice, with byte;
 * GM_ERR_OUT_OF_HOST_MEMORY; GM_ERR_IO; GM_ERR_INVALID_ARGUMENT: an argument is NULL, or struct_size is none that gm
 * knows. */
GM_API gm_status gm_model_read_config(const gm_model *model, gm_model_config *out, gm_error *err);

/* From a config.json alone, of up to 16 MB. `services` may be NULL. Thread-safe. Errors as above. */
GM_API gm_status gm_model_config_load(const gm_services *services, const char *path, gm_model_config *out,
                                      gm_error *err);

/* Elements of all tensors: those that the files store, and those of parameters that differ. A head that is tied to the
 * embedding and stored all the same counts once among the latter (whether it is tied, the architecture of a GGUF file
 * says, of safetensors the config.json beside it; without one it is not); tables of positions and masks, which files
 * hold beside parameters (rope_freqs, inv_freq), do not. Both stop at 2^64 - 1; either output may be NULL. Thread-safe.
 * GM_ERR_INVALID_ARGUMENT: `model` is NULL. */
GM_API gm_status gm_model_parameter_count(const gm_model *model, uint64_t *out_stored, uint64_t *out_unique,
                                          gm_error *err);

GM_END_DECLS

#endif
