#include "gm/dtype.h"

#include <stddef.h>

#include "core/base/text.h"

typedef struct dtype_row {
  const char *name;
  uint32_t elements;
  uint32_t bytes;
} dtype_row;

/* Indexed by gm_dtype: the numbers are pinned and without gaps. */
static const dtype_row dtype_rows[] = {
#define X(name, value, text, elements, bytes) [value] = {text, elements, bytes},
    GM_DTYPE_MAP(X)
#undef X
};

enum { DTYPE_COUNT = sizeof dtype_rows / sizeof *dtype_rows };

static const dtype_row *dtype_find(gm_dtype dtype) {
  return (size_t)dtype < DTYPE_COUNT ? &dtype_rows[(size_t)dtype] : NULL;
}

const char *gm_dtype_name(gm_dtype dtype) {
  const dtype_row *row = dtype_find(dtype);
  return row ? row->name : "?";
}

gm_status gm_dtype_from_name(const char *name, gm_dtype *out) {
  if (!name || !out) return GM_ERR_INVALID_ARGUMENT;
  for (size_t i = 0; i < DTYPE_COUNT; i++) {
    if (!gm__text_same(name, dtype_rows[i].name)) continue;
    *out = (gm_dtype)i;
    return GM_OK;
  }
  return GM_ERR_NOT_FOUND;
}

gm_status gm_dtype_block(gm_dtype dtype, uint32_t *out_elements, uint32_t *out_bytes) {
  const dtype_row *row = dtype_find(dtype);
  if (!row) return GM_ERR_INVALID_ARGUMENT;
  if (out_elements) *out_elements = row->elements;
  if (out_bytes) *out_bytes = row->bytes;
  return GM_OK;
}

gm_status gm_dtype_bytes(gm_dtype dtype, uint64_t elements, uint64_t *out) {
  const dtype_row *row = dtype_find(dtype);
  if (!row || !out || elements % row->elements) return GM_ERR_INVALID_ARGUMENT;
  uint64_t blocks = elements / row->elements;
  if (blocks > UINT64_MAX / row->bytes) return GM_ERR_INVALID_ARGUMENT;
  *out = blocks * row->bytes;
  return GM_OK;
}
