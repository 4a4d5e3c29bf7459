/* Typed values that a model file states about itself: the key-value part of a GGUF file. A safetensors file has none;
 * its strings come from gm_model_metadata. Every function is thread-safe. */
#ifndef GM_MODEL_VALUE_H
#define GM_MODEL_VALUE_H

#include <stdint.h>

#include "gm/model.h"

GM_BEGIN_DECLS

/* Columns: enumerator, number, name. A file has integers of 8 to 64 bits, and floats of 32 or 64. Here both have 64. */
#define GM_VALUE_KIND_MAP(X)      \
  X(GM_VALUE_U64, 0, "u64")       \
  X(GM_VALUE_I64, 1, "i64")       \
  X(GM_VALUE_F64, 2, "f64")       \
  X(GM_VALUE_BOOL, 3, "bool")     \
  X(GM_VALUE_STRING, 4, "string") \
  X(GM_VALUE_ARRAY, 5, "array")

typedef enum gm_value_kind {
#define X(name, value, text) name = value,
  GM_VALUE_KIND_MAP(X)
#undef X
} gm_value_kind;

/* One value. Only the member of its kind is set. A bool is 0 or 1 in `u64`. */
typedef struct gm_model_value {
  uint32_t struct_size; /* set by the caller: sizeof(gm_model_value) */
  gm_value_kind kind;
  gm_value_kind element_kind; /* of an array; never GM_VALUE_ARRAY */
  uint64_t u64;
  int64_t i64;
  double f64;
  const char *string; /* borrowed from the model, and ended by a NUL; it may hold NULs before that, and need not be
                         UTF-8 */
  uint64_t length;    /* bytes of a string without the final NUL; elements of an array */
} gm_model_value;

/* Returns the number of values in one shard. 0 for NULL, and where there is no such shard. In split files shard 0 has
 * the model's values. */
GM_API uint64_t gm_model_value_count(const gm_model *model, uint32_t shard);

/* Returns value number `index` of a shard, in the order of the file, and its key. The key is borrowed; `out_key` may be
 * NULL. INVALID_ARGUMENT: `model` or `out` is NULL, gm does not know struct_size, or there is no such shard or index.
 */
GM_API gm_status gm_model_value_at(const gm_model *model, uint32_t shard, uint64_t index, const char **out_key,
                                   gm_model_value *out, gm_error *err);

/* Finds the value of `key` in shard 0. NOT_FOUND: there is no such key. INVALID_ARGUMENT: an argument is NULL, or gm
 * does not know struct_size. */
GM_API gm_status gm_model_find_value(const gm_model *model, const char *key, gm_model_value *out, gm_error *err);

/* Returns element number `index` of the array `key` in shard 0. NOT_FOUND: there is no such key. INVALID_ARGUMENT: an
 * argument is NULL, gm does not know struct_size, the value is no array, or `index` is not below its length. */
GM_API gm_status gm_model_value_element(const gm_model *model, const char *key, uint64_t index, gm_model_value *out,
                                        gm_error *err);

GM_END_DECLS

#endif
