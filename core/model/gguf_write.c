#include "core/model/gguf_write.h"

#include <string.h>

#include "core/base/saturate.h"
#include "core/base/utf8.h"
#include "core/model/gguf.h"
#include "core/model/gguf_values.h"
#include "core/model/header_text.h"

enum { GGUF_WRITE_VERSION = 3, GGUF_WRITE_RANK = 4, GGUF_WRITE_NAME = 63 /* of ggml */, GGUF_WRITE_KEY = 65535 };

static const char gguf_alignment_key[] = "general.alignment", gguf_split_keys[] = "split.";

/* ---- what it can hold ---- */

static bool gguf_is_text(const char *text, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i++) {
    if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) return false;
  }
  return bytes && gm__utf8_is(text, bytes);
}

static bool gguf_has_empty_row(const gm__file_tensor *tensor) {
  for (uint32_t i = 0; i < tensor->rank; i++) {
    if (!tensor->shape[i]) return true;
  }
  return false;
}

const char *gm__gguf_refuses(const gm__file_tensor *tensor) {
  const uint64_t length = strlen(tensor->name);
  uint32_t type = 0;
  if (!gm__gguf_tensor_type(tensor->dtype, &type)) return "has a type that GGUF does not know";
  if (tensor->rank > GGUF_WRITE_RANK) return "has more than the four dimensions of GGUF";
  if (gguf_has_empty_row(tensor)) return "has a dimension of 0, which readers of GGUF do not expect";
  if (length > GGUF_WRITE_NAME) return "has a name of more than 63 bytes, which readers of GGUF refuse";
  return gguf_is_text(tensor->name, length) ? NULL : "has a name that is empty, not UTF-8, or has control characters";
}

bool gm__gguf_is_of_file(const gm__json_text *key) {
  const size_t split = strlen(gguf_split_keys);
  return gm__json_text_is(key, gguf_alignment_key) ||
         (key->length >= split && memcmp(key->text, gguf_split_keys, split) == 0);
}

bool gm__gguf_holds(const gm__file_value *value) {
  return value->key.length <= GGUF_WRITE_KEY && gguf_is_text(value->key.text, value->key.length) &&
         !gm__gguf_is_of_file(&value->key);
}

/* ---- the header ---- */

static void gguf_put_string(gm__header_text *text, const char *string, uint64_t bytes) {
  gm__header_number(text, bytes, 8);
  gm__header_add(text, string, bytes);
}

static void gguf_put_text(gm__header_text *text, const gm__json_text *string) {
  gguf_put_string(text, string->text, string->length);
}

static void gguf_put_elements(gm__header_text *text, const gm__contents *contents, const gm__value *value,
                              uint32_t type, uint64_t count) {
  if (type != GM__GGUF_STRING) {
    gm__header_add(text, contents->header + value->at, count * gm__gguf_type_bytes(type));
    return;
  }
  for (uint64_t i = 0; i < count; i++) {
    const gm__json_text string = gm__value_string(contents, value, i);
    gguf_put_text(text, &string);
  }
}

static void gguf_put_value(gm__header_text *text, const gm__file_value *value) {
  gguf_put_text(text, &value->key);
  gm__header_number(text, value->contents ? value->value->type : GM__GGUF_STRING, 4);
  if (!value->contents) {
    gguf_put_text(text, &value->text);
  } else if (value->value->type == GM__GGUF_ARRAY) {
    gm__header_number(text, value->value->element_type, 4);
    gm__header_number(text, value->value->count, 8);
    gguf_put_elements(text, value->contents, value->value, value->value->element_type, value->value->count);
  } else {
    gguf_put_elements(text, value->contents, value->value, value->value->type, 1);
  }
}

static void gguf_put_tensor(gm__header_text *text, const gm__file_tensor *tensor, uint64_t begin) {
  uint32_t type = 0;
  (void)gm__gguf_tensor_type(tensor->dtype, &type); /* it is not refused */
  gguf_put_string(text, tensor->name, strlen(tensor->name));
  gm__header_number(text, tensor->rank, 4);
  for (uint32_t i = tensor->rank; i-- > 0;) gm__header_number(text, tensor->shape[i], 8);
  gm__header_number(text, type, 4);
  gm__header_number(text, begin, 8);
}

static void gguf_put_file(gm__header_text *text, const gm__file_table *table) {
  uint64_t begin = 0;
  gm__header_add(text, "GGUF", GM__GGUF_MAGIC_BYTES);
  gm__header_number(text, GGUF_WRITE_VERSION, 4);
  gm__header_number(text, table->count, 8);
  gm__header_number(text, table->value_count + 1, 8);
  gguf_put_string(text, gguf_alignment_key, strlen(gguf_alignment_key));
  gm__header_number(text, GM__GGUF_U32, 4);
  gm__header_number(text, GM__FILE_ALIGN, 4);
  for (size_t i = 0; i < table->value_count; i++) gguf_put_value(text, &table->values[i]);
  for (size_t i = 0; i < table->count; i++) {
    gguf_put_tensor(text, &table->tensors[i], begin);
    begin += gm__round_up(table->tensors[i].bytes, GM__FILE_ALIGN);
  }
  gm__header_fill(text, GM__FILE_ALIGN, '\0');
}

gm_status gm__gguf_begin(const gm__file_table *table, char **out, uint64_t *out_bytes, gm_error *err) {
  return gm__header_make(table, GM__GGUF_HEADER_MAX, gguf_put_file, out, out_bytes, err);
}
