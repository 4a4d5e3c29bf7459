/* Models of one architecture differ by tensors that no key tells of: GGUF's names in the first layer. */
#include <stdio.h>

#include "core/fit/op_rows.h"

enum { CHOICE_NAME = 64 };

static bool choice_has(const gm_model *model, const char *part) {
  char name[CHOICE_NAME];
  uint64_t index = 0;
  snprintf(name, sizeof name, "blk.0.%.40s.weight", part);
  return model && gm_model_find(model, name, &index, NULL) == GM_OK;
}

static bool choice_suits(const gm__op_row *row, const gm_model *model) {
  return (!row->has || choice_has(model, row->has)) && (!row->lacks || !choice_has(model, row->lacks));
}

/* Whether the names are GGUF's. */
static bool choice_is_known(const gm_model *model) {
  return choice_has(model, "attn_q") || choice_has(model, "attn_qkv");
}

/* Recurrent layers have matrices of such names, too, and compressed ones have none. */
bool gm__op_row_joins(const gm__op_row *row) {
  return !row->mixer && !row->compressed && !row->low_rank && !row->adapters && !row->unordered;
}

static bool choice_fused(const gm__op_row *row, const gm_model *model) {
  if (!gm__op_row_joins(row) || !choice_is_known(model)) return row->fused_qkv;
  return choice_has(model, "attn_qkv");
}

static const gm__op_row *choice_row(const gm__op_row *first, const gm_model *model) {
  const gm__op_row *row = first;
  do {
    if (choice_suits(row, model)) return row;
    row = gm__op_row_next(row);
  } while (row);
  return first;
}

gm__op_choice gm__op_choose(const char *architecture, const gm_model *model) {
  const gm__op_row *first = gm__op_row_find(architecture);
  const bool known = choice_is_known(model);
  const gm__op_row *row = known ? choice_row(first, model) : first;
  const bool is_open = !known && (gm__op_row_next(first) != NULL || gm__op_row_joins(first));
  return (gm__op_choice){.row = row, .is_open = is_open, .fused_qkv = choice_fused(row, model)};
}
