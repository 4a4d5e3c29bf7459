/* The two parts of a GGUF header: key-value pairs, and the table of tensors. */
#ifndef GM_CORE_MODEL_GGUF_VALUES_H
#define GM_CORE_MODEL_GGUF_VALUES_H

#include "core/model/gguf_reader.h"

/* The numbers are the format's. */
typedef enum gm__gguf_type {
  GM__GGUF_U8,
  GM__GGUF_I8,
  GM__GGUF_U16,
  GM__GGUF_I16,
  GM__GGUF_U32,
  GM__GGUF_I32,
  GM__GGUF_F32,
  GM__GGUF_BOOL,
  GM__GGUF_STRING,
  GM__GGUF_ARRAY,
  GM__GGUF_U64,
  GM__GGUF_I64,
  GM__GGUF_F64,
  GM__GGUF_TYPES
} gm__gguf_type;

/* Bytes of a number of that type; 0 for strings, arrays and what is no type. */
uint32_t gm__gguf_type_bytes(uint32_t type);

/* Read `count` values, and check that no key is there twice. False: the reader has the failure. */
bool gm__gguf_read_values(gm__gguf_reader *reader, uint64_t count);

/* Let the keys point into the header where it is now: it moves while it grows. */
void gm__gguf_point_keys(gm__contents *contents);

/* The value of `key`, NULL when there is none. */
const gm__value *gm__contents_find_value(const gm__contents *contents, const char *key);

/* Element `index` of a value: its type's number, from the header. `index` is 0 for what is no array. */
uint64_t gm__value_bits(const gm__contents *contents, const gm__value *value, uint64_t index);

/* A string, or element `index` of an array of strings. */
gm__json_text gm__value_string(const gm__contents *contents, const gm__value *value, uint64_t index);

/* Element `index` as a number that is not negative: false where it is none (a float, a string, -1). */
bool gm__value_u64(const gm__contents *contents, const gm__value *value, uint64_t index, uint64_t *out);

/* ---- tensors ---- */

/* The format's number of a type. False: it has none. */
bool gm__gguf_tensor_type(gm_dtype dtype, uint32_t *out);

/* Read `count` tensors: each checked by itself, its data at a multiple of `alignment`. False: the reader has the
 * failure. */
bool gm__gguf_read_tensors(gm__gguf_reader *reader, uint64_t count, uint64_t alignment);

/* With the place and size of the data known: order the tensors, and check that they lie within it without overlap. */
bool gm__gguf_place_tensors(gm__gguf_reader *reader);

#endif
