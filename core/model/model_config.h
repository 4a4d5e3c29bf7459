/* The readers of a model's dimensions, and how they finish. */
#ifndef GM_CORE_MODEL_MODEL_CONFIG_H
#define GM_CORE_MODEL_MODEL_CONFIG_H

#include "core/model/config_architecture.h"
#include "gm/model_config.h"

/* Names of keys for messages about a missing one: the prefix, then the name of its field. */
typedef struct gm__dimensions_names {
  const char *prefix;
  const char *const *by_field;
} gm__dimensions_names;

/* The sizes of a layer of which no list says otherwise. Like those of gm_layer_kind, but for a layer with all
 * parts. */
typedef struct gm__layer_sizes {
  uint64_t intermediate, heads, kv_heads, head_size, value_head_size;
  uint64_t window, window_period; /* one of so many layers attends to everything; 0: no layer has a window */
  bool window_first;              /* the first layers of a period have the window; the last attends to everything */
  uint64_t experts, experts_used, expert_intermediate, shared_intermediate;
  uint64_t leading_dense_layers;    /* layers before the first one with experts */
  uint64_t kv_lora_rank, rope_size; /* compressed: width of the row, and of the part of a key beside it */
  uint64_t q_lora_rank;
  uint64_t conv_kernel, state_size, inner_size;
} gm__layer_sizes;

/* Fill *out: stated fields, defaults, and what follows from other fields. GM_ERR_NOT_FOUND names a needed field that
 * is not stated. */
gm_status gm__dimensions_finish(const gm__dimensions *config, const gm__dimensions_names *names, const char *op,
                                const char *path, gm_model_config *out, gm_error *err);

/* Fill the kinds of the layers of *out, whose other members are there, from what the file states. GM_ERR_FORMAT: a list
 * has another length than the model has layers. GM_ERR_NOT_SUPPORTED: too many layers or kinds. */
gm_status gm__layers_fill(const gm__dimensions *stated, const gm__layer_sizes *sizes, const char *op, const char *path,
                          gm_model_config *out, gm_error *err);

/* ---- readers ---- */

/* Read the dimensions from a GGUF model's values and tensors. */
gm_status gm__model_config_from_gguf(const gm_model *model, gm_model_config *out, gm_error *err);

enum { GM__MODEL_CONFIG_JSON_MAX = 16 << 20 }; /* bytes of a config.json; real ones have a few kilobytes */

/* Read the dimensions from a config.json. `op` is for messages. */
gm_status gm__model_config_from_json(const gm_services *services, const char *path, const char *op,
                                     gm_model_config *out, gm_error *err);

/* Like gm__model_config_from_json, from text in memory, which is written to. */
gm_status gm__model_config_parse_json(char *text, uint64_t length, const char *path, const char *op,
                                      gm_model_config *out, gm_error *err);

enum { GM__PARAMETERS_JSON_MAX = 1 << 20 }; /* bytes; a longer text is that of no model */

/* Count the parameters of the model that a config.json describes, as the class of its family makes them. The text is
 * written to; one above GM__PARAMETERS_JSON_MAX is not looked at. The other members of *out are there. A key that may
 * matter and is not read makes *out unsure. Where gm cannot count, *out says why, and the call is GM_OK all the same.
 * OUT_OF_HOST_MEMORY. */
gm_status gm__config_parameters(const gm_services *services, char *text, uint64_t length, gm_model_config *out,
                                gm_error *err);

#endif
