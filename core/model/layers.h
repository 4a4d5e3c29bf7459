/* Which layer of a model is of which kind. */
#ifndef GM_CORE_MODEL_LAYERS_H
#define GM_CORE_MODEL_LAYERS_H

#include "gm/model_config.h"

/* Say why the layers are not sure, where nothing is said yet: the reason of the architecture, or a state without its
 * size. REQUIRES: `architecture` has an end, and kind_count is at most GM_LAYER_KINDS_MAX. */
void gm__layers_doubt(gm_model_config *config);

/* The kind of a layer. REQUIRES: `layer` is below the model's layers, of at most GM_MODEL_LAYERS_MAX. */
static inline const gm_layer_kind *gm__layer_at(const gm_model_config *config, uint64_t layer) {
  return &config->kinds[config->kind_of[layer]];
}

/* Elements of one head of queries, and of what attention gives. */
static inline uint32_t gm__layer_query_size(const gm_layer_kind *kind) {
  return kind->query_size ? kind->query_size : kind->key_size;
}

static inline uint32_t gm__layer_result_size(const gm_layer_kind *kind) {
  return kind->result_size ? kind->result_size : kind->value_size;
}

#endif
