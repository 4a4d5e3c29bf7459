/* What a file states about a model's dimensions, before defaults: one number per field, from whatever key. */
#ifndef GM_CORE_MODEL_CONFIG_H
#define GM_CORE_MODEL_CONFIG_H

#include "core/model/model.h"
#include "gm/model_config.h"

typedef enum gm__config_field {
  GM__CONFIG_HIDDEN,
  GM__CONFIG_INTERMEDIATE,
  GM__CONFIG_LAYERS,
  GM__CONFIG_VOCAB,
  GM__CONFIG_HEADS,
  GM__CONFIG_KV_HEADS,
  GM__CONFIG_HEAD_SIZE,
  GM__CONFIG_VALUE_HEAD_SIZE,
  GM__CONFIG_CONTEXT,
  GM__CONFIG_WINDOW,
  GM__CONFIG_WINDOW_PERIOD,
  GM__CONFIG_USE_WINDOW,
  GM__CONFIG_EXPERTS,
  GM__CONFIG_EXPERTS_USED,
  GM__CONFIG_EXPERT_INTERMEDIATE,
  GM__CONFIG_EXPERTS_SHARED,
  GM__CONFIG_SHARED_INTERMEDIATE,
  GM__CONFIG_LEADING_DENSE,
  GM__CONFIG_KV_LORA_RANK,
  GM__CONFIG_ROPE_SIZE,
  GM__CONFIG_NOPE_SIZE,
  GM__CONFIG_MLA_HEAD_SIZE,
  GM__CONFIG_MLA_VALUE_SIZE,
  GM__CONFIG_CONV_KERNEL,
  GM__CONFIG_STATE_SIZE,
  GM__CONFIG_INNER_SIZE,
  GM__CONFIG_EXPAND,
  GM__CONFIG_ENCODER_LAYERS,
  GM__CONFIG_DECODER_LAYERS,
  GM__CONFIG_ENCODER_DECODER,
  GM__CONFIG_CAUSAL,
  GM__CONFIG_MULTI_QUERY,
  GM__CONFIG_NEW_DECODER,
  GM__CONFIG_TIED,
  GM__CONFIG_FIELDS
} gm__config_field;

/* No dimension of a model comes near it, and products of three still fit 128 bits, of one and 4 bytes 64. */
#define GM__CONFIG_VALUE_MAX ((uint64_t)1 << 40)

/* Layers in turn, as a list of them says which have a window. */
typedef struct gm__config_windows {
  uint64_t layers, windowed;
  uint64_t first_full, second_full; /* the numbers of those layers from 1; 0: none yet */
} gm__config_windows;

typedef struct gm__config {
  char architecture[sizeof((gm_model_config *)0)->architecture];
  uint64_t value[GM__CONFIG_FIELDS];
  bool stated[GM__CONFIG_FIELDS];
  gm__config_windows windows;
} gm__config;

void gm__config_state(gm__config *config, gm__config_field field, uint64_t value);

/* The next layer of a list has a window or attends to everything. */
void gm__config_note_layer(gm__config_windows *windows, bool windowed);

/* What a key is called in a message when it is missing: the prefix, then the name of its field. */
typedef struct gm__config_names {
  const char *prefix;
  const char *const *by_field;
} gm__config_names;

/* Defaults, and what follows from other fields; into *out. GM_ERR_NOT_FOUND: a needed one is not stated, by its name.
 */
gm_status gm__config_finish(const gm__config *config, const gm__config_names *names, const char *op, const char *path,
                            gm_model_config *out, gm_error *err);

/* ---- readers ---- */

/* From the values and tensors of a GGUF model. */
gm_status gm__config_from_gguf(const gm_model *model, gm_model_config *out, gm_error *err);

enum { GM__CONFIG_JSON_MAX = 16 << 20 }; /* bytes of a config.json; real ones have a few kilobytes */

/* From a config.json. `op` is for messages. */
gm_status gm__config_from_json(const gm_services *services, const char *path, const char *op, gm_model_config *out,
                               gm_error *err);

/* The same from text in memory, which is written to. */
gm_status gm__config_parse_json(char *text, uint64_t length, const char *path, const char *op, gm_model_config *out,
                                gm_error *err);

#endif
