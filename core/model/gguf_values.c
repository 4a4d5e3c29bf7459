/* Invariants: a value that is kept lies within the header whole. by_key is strictly ascending. For strings their place
 * is kept, for numbers the place of the first. */
#include "core/model/gguf_values.h"

#include <string.h>

#include "core/model/gguf.h"
#include "core/model/model_memory.h"

enum { GGUF_KEY_MAX = 65535 };             /* the format's own limit */
enum { GGUF_VALUE_LEAST = 4 + 1 + 4 + 1 }; /* a key of one byte, a type, one byte */

typedef struct gguf_type_row {
  uint32_t bytes;
  bool has_sign;
} gguf_type_row;

static const gguf_type_row gguf_type_rows[GM__GGUF_TYPES] = {
    [GM__GGUF_U8] = {1, false},  [GM__GGUF_I8] = {1, true},  [GM__GGUF_U16] = {2, false}, [GM__GGUF_I16] = {2, true},
    [GM__GGUF_U32] = {4, false}, [GM__GGUF_I32] = {4, true}, [GM__GGUF_F32] = {4, false}, [GM__GGUF_BOOL] = {1, false},
    [GM__GGUF_U64] = {8, false}, [GM__GGUF_I64] = {8, true}, [GM__GGUF_F64] = {8, false},
};

uint32_t gm__gguf_type_bytes(uint32_t type) { return type < GM__GGUF_TYPES ? gguf_type_rows[type].bytes : 0; }

/* ---- reading ---- */

static bool value_check_bools(gm__gguf_reader *reader, uint64_t at, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    if ((unsigned char)reader->contents->header[at + i] > 1) {
      return gm__gguf_fail(reader, GM_ERR_FORMAT, at + i, "a bool that is neither 0 nor 1");
    }
  }
  return true;
}

static bool value_take_numbers(gm__gguf_reader *reader, uint32_t type, uint64_t count, uint64_t *out_at) {
  uint32_t bytes = gm__gguf_type_bytes(type);
  if (bytes == 0) return gm__gguf_fail(reader, GM_ERR_FORMAT, reader->at, "type %u of a value is none", type);
  if (!gm__gguf_room(reader, count, bytes, "elements of a value")) return false;
  if (!gm__gguf_take(reader, count * bytes, "a value", out_at)) return false;
  return type != GM__GGUF_BOOL || value_check_bools(reader, *out_at, count);
}

/* gm keeps a note of each item. */
static bool value_limit(gm__gguf_reader *reader, uint64_t count, uint64_t limit, const char *what) {
  if (count <= limit) return true;
  return gm__gguf_fail(reader, GM_ERR_NOT_SUPPORTED, reader->at, "%llu %s, more than gm reads",
                       (unsigned long long)count, what);
}

static bool value_take_strings(gm__gguf_reader *reader, uint64_t count, uint64_t *out_first) {
  gm__contents *contents = reader->contents;
  *out_first = contents->string_count;
  if (!gm__gguf_room(reader, count, 4, "strings")) return false;
  if (!value_limit(reader, count + contents->string_count, GM__GGUF_STRINGS_MAX, "strings in lists")) return false;
  for (uint64_t i = 0; i < count; i++) {
    gm__header_string string = {0};
    if (!gm__gguf_string(reader, "a string of an array", &string)) return false;
    gm_status status = gm__model_grow(reader->services, &contents->strings, &contents->string_capacity,
                                      contents->string_count, sizeof string, reader->err);
    if (!gm__gguf_keep(reader, status)) return false;
    contents->strings[contents->string_count++] = string;
  }
  return true;
}

static bool value_take_array(gm__gguf_reader *reader, gm__value *value) {
  uint64_t start = reader->at;
  if (!gm__gguf_u32(reader, "the type of an array", &value->element_type)) return false;
  if (value->element_type == GM__GGUF_ARRAY) {
    return gm__gguf_fail(reader, GM_ERR_FORMAT, start, "an array of arrays");
  }
  if (!gm__gguf_size(reader, "the length of an array", &value->count)) return false;
  if (value->element_type == GM__GGUF_STRING) return value_take_strings(reader, value->count, &value->at);
  return value_take_numbers(reader, value->element_type, value->count, &value->at);
}

static bool value_take_string(gm__gguf_reader *reader, gm__value *value) {
  gm__header_string string = {0};
  if (!gm__gguf_string(reader, "a string", &string)) return false;
  value->at = string.at;
  value->count = string.length;
  return true;
}

static bool value_take(gm__gguf_reader *reader, gm__value *value) {
  if (!gm__gguf_u32(reader, "the type of a value", &value->type)) return false;
  switch (value->type) {
    case GM__GGUF_STRING: return value_take_string(reader, value);
    case GM__GGUF_ARRAY: return value_take_array(reader, value);
    default: return value_take_numbers(reader, value->type, 1, &value->at);
  }
}

static bool value_read(gm__gguf_reader *reader) {
  gm__contents *contents = reader->contents;
  gm__value value = {0};
  if (!gm__gguf_name(reader, "a key", GGUF_KEY_MAX, &value.key) || !value_take(reader, &value)) return false;
  gm_status status = gm__model_grow(reader->services, &contents->values, &contents->value_capacity,
                                    contents->value_count, sizeof value, reader->err);
  if (!gm__gguf_keep(reader, status)) return false;
  contents->values[contents->value_count++] = value;
  return true;
}

/* ---- the whole ---- */

static int value_compare(const void *items, uint32_t a, uint32_t b) {
  const gm__value *values = items;
  return gm__json_text_compare(&values[a].key, &values[b].key);
}

static bool value_check_keys(gm__gguf_reader *reader) {
  const gm__contents *contents = reader->contents;
  for (uint64_t i = 1; i < contents->value_count; i++) {
    const gm__json_text *key = &contents->values[contents->by_key[i]].key;
    if (value_compare(contents->values, contents->by_key[i - 1], contents->by_key[i]) != 0) continue;
    return gm__gguf_fail(reader, GM_ERR_FORMAT, key->at, "key \"%.80s\" is there twice", key->text);
  }
  return true;
}

void gm__gguf_point_keys(gm__contents *contents) {
  for (uint64_t i = 0; i < contents->value_count; i++) {
    contents->values[i].key.text = contents->header + contents->values[i].key.at;
  }
}

bool gm__gguf_read_values(gm__gguf_reader *reader, uint64_t count) {
  gm__contents *contents = reader->contents;
  if (!gm__gguf_room(reader, count, GGUF_VALUE_LEAST, "values")) return false;
  if (!value_limit(reader, count, GM__GGUF_VALUES_MAX, "values")) return false;
  for (uint64_t i = 0; i < count; i++) {
    if (!value_read(reader)) return false;
  }
  gm__gguf_point_keys(contents);
  gm_status status = gm__model_order(reader->services, contents->values, (uint32_t)count, value_compare,
                                     &contents->by_key, reader->err);
  return gm__gguf_keep(reader, status) && value_check_keys(reader);
}

/* ---- asking ---- */

const gm__value *gm__contents_find_value(const gm__contents *contents, const char *key) {
  gm__json_text wanted = {.text = key, .length = strlen(key)};
  uint64_t low = 0, high = contents->value_count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    const gm__value *value = &contents->values[contents->by_key[middle]];
    int order = gm__json_text_compare(&value->key, &wanted);
    if (order == 0) return value;
    if (order < 0) low = middle + 1;
    if (order > 0) high = middle;
  }
  return NULL;
}

static uint32_t value_number_type(const gm__value *value) {
  return value->type == GM__GGUF_ARRAY ? value->element_type : value->type;
}

uint64_t gm__value_bits(const gm__contents *contents, const gm__value *value, uint64_t index) {
  uint32_t bytes = gm__gguf_type_bytes(value_number_type(value));
  return gm__gguf_number(contents, value->at + index * bytes, bytes);
}

gm__json_text gm__value_string(const gm__contents *contents, const gm__value *value, uint64_t index) {
  if (value->type == GM__GGUF_STRING) return (gm__json_text){contents->header + value->at, value->count, value->at};
  const gm__header_string *string = &contents->strings[value->at + index];
  return (gm__json_text){contents->header + string->at, string->length, string->at};
}

bool gm__value_u64(const gm__contents *contents, const gm__value *value, uint64_t index, uint64_t *out) {
  uint32_t type = value_number_type(value);
  bool whole = type < GM__GGUF_TYPES && type != GM__GGUF_F32 && type != GM__GGUF_F64 && gguf_type_rows[type].bytes > 0;
  if (!whole) return false;
  uint64_t bits = gm__value_bits(contents, value, index);
  if (gguf_type_rows[type].has_sign && bits >> (8 * gguf_type_rows[type].bytes - 1)) return false;
  *out = bits;
  return true;
}
