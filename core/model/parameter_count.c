/* Invariants: whatever is taken off the unique count was counted among the stored, and once. */
#include <string.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/model/model.h"
#include "gm/model_config.h"

typedef struct count_row {
  const char *end;  /* of a tensor's name, from a dot or the beginning on */
  const char *twin; /* of the name of the tensor that it is a copy of; NULL: it is no parameter */
  uint32_t rank;    /* 0: any */
  bool when_tied;   /* only in a model with tied embeddings */
} count_row;

/* Copies of the embedding, and what files hold beside parameters: tables of positions and masks. */
static const count_row count_rows[] = {
    {"output.weight", "token_embd.weight", 2, true},
    {"lm_head.weight", "embed_tokens.weight", 2, true},
    {"lm_head.weight", "word_embeddings.weight", 2, true},
    {"lm_head.weight", "wte.weight", 2, true},
    {"lm_head.weight", "shared.weight", 2, true},
    {"lm_head.weight", "embeddings.weight", 2, true},
    {"lm_head.weight", "embedding.weight", 2, true},
    {"embed_out.weight", "embed_in.weight", 2, true},
    {"cls.predictions.decoder.weight", "word_embeddings.weight", 2, true},
    {"encoder.embed_tokens.weight", "shared.weight", 2, false},
    {"decoder.embed_tokens.weight", "shared.weight", 2, false},
    {"rope_freqs.weight", NULL, 1, false},
    {"rope_factors_long.weight", NULL, 1, false},
    {"rope_factors_short.weight", NULL, 1, false},
    {"rotary_emb.inv_freq", NULL, 0, false},
    {"attn.bias", NULL, 4, false},
    {"attn.masked_bias", NULL, 0, false},
    {"attention.bias", NULL, 4, false},
    {"attention.masked_bias", NULL, 0, false},
    {"embeddings.position_ids", NULL, 0, false},
};

enum { COUNT_ROWS = sizeof count_rows / sizeof *count_rows };

static bool count_ends_with(const gm__json_text *name, const char *end) {
  size_t length = strlen(end);
  if (name->length < length || memcmp(name->text + name->length - length, end, length) != 0) return false;
  return name->length == length || name->text[name->length - length - 1] == '.';
}

/* A model of scalars has no dimensions to point to. */
static const uint64_t *count_shape(const gm_model *model, const gm__tensor *tensor) {
  static const uint64_t none[1];
  return tensor->rank == 0 ? none : model->shards[tensor->shard].contents.dims + tensor->shape_at;
}

/* Types of less than a byte may have 2^64 elements and more. */
static uint64_t count_elements(const gm_model *model, const gm__tensor *tensor) {
  uint64_t elements = 0;
  return gm__shape_elements(count_shape(model, tensor), tensor->rank, &elements) ? elements : UINT64_MAX;
}

/* The first tensor that each row's twin names. */
static void count_find_twins(const gm_model *model, const gm__tensor *twins[COUNT_ROWS]) {
  for (uint32_t i = 0; i < model->tensor_count; i++) {
    for (int row = 0; row < COUNT_ROWS; row++) {
      const char *twin = count_rows[row].twin;
      if (twin && !twins[row] && count_ends_with(&model->tensors[i]->name, twin)) twins[row] = model->tensors[i];
    }
  }
}

static bool count_is_copy(const gm_model *model, const gm__tensor *tensor, const gm__tensor *twin) {
  if (!twin || twin == tensor || twin->rank != tensor->rank) return false;
  return memcmp(count_shape(model, tensor), count_shape(model, twin), tensor->rank * sizeof(uint64_t)) == 0;
}

static bool count_is_extra(const gm_model *model, const gm__tensor *tensor, const gm__tensor *const twins[COUNT_ROWS],
                           bool tied) {
  for (int i = 0; i < COUNT_ROWS; i++) {
    const count_row *row = &count_rows[i];
    if ((row->rank > 0 && row->rank != tensor->rank) || (row->when_tied && !tied)) continue;
    if (!count_ends_with(&tensor->name, row->end)) continue;
    if (!row->twin || count_is_copy(model, tensor, twins[i])) return true;
  }
  return false;
}

gm_status gm_model_parameter_count(const gm_model *model, uint64_t *out_stored, uint64_t *out_unique, gm_error *err) {
  if (!model) return gm__bad_argument(err, "gm_model_parameter_count", "`model` is NULL");
  const gm__tensor *twins[COUNT_ROWS] = {NULL};
  gm_model_config config = {.struct_size = sizeof config};
  bool tied = gm_model_read_config(model, &config, NULL) == GM_OK && config.tied_embeddings;
  uint64_t stored = 0, unique = 0;
  count_find_twins(model, twins);
  for (uint32_t i = 0; i < model->tensor_count; i++) {
    uint64_t elements = count_elements(model, model->tensors[i]);
    stored = gm__add_sat(stored, elements);
    if (!count_is_extra(model, model->tensors[i], twins, tied)) unique = gm__add_sat(unique, elements);
  }
  if (out_stored) *out_stored = stored;
  if (out_unique) *out_unique = unique;
  return GM_OK;
}
