#include "core/model/safetensors_write.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "core/model/header_text.h"
#include "core/model/safetensors.h"

static const char write_metadata_key[] = "__metadata__";

const char *gm__safetensors_refuses(const gm__file_tensor *tensor) {
  if (!gm__safetensors_dtype(tensor->dtype)) return "has a type that safetensors does not know";
  if (!strcmp(tensor->name, write_metadata_key)) return "has a name that safetensors has for itself";
  return gm__utf8_is(tensor->name, strlen(tensor->name)) ? NULL : "has a name that is not UTF-8";
}

/* gm's reader takes no NUL in a string. */
static bool write_holds_text(const gm__json_text *text) {
  return !memchr(text->text, '\0', (size_t)text->length) && gm__utf8_is(text->text, text->length);
}

bool gm__safetensors_holds(const gm__file_value *value) {
  return !value->contents && write_holds_text(&value->key) && write_holds_text(&value->text);
}

int gm__safetensors_order(const void *a, const void *b) {
  const gm__file_tensor *left = a, *right = b;
  const uint64_t left_align = gm__safetensors_align(left->dtype), right_align = gm__safetensors_align(right->dtype);
  if (left_align != right_align) return left_align > right_align ? -1 : 1;
  if (left->number != right->number) return left->number < right->number ? -1 : 1;
  return strcmp(left->name, right->name);
}

GM_PRINTF(2, 3)
static void write_add(gm__header_text *text, const char *format, ...) {
  char piece[64];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(piece, sizeof piece, format, args);
  va_end(args);
  gm__header_add(text, piece, strlen(piece));
}

static void write_string(gm__header_text *text, const char *string, uint64_t bytes) {
  gm__header_add(text, "\"", 1);
  for (uint64_t i = 0; i < bytes; i++) {
    const unsigned char byte = (unsigned char)string[i];
    if (byte < 0x20) {
      write_add(text, "\\u%04x", (unsigned)byte);
    } else {
      if (byte == '"' || byte == '\\') gm__header_add(text, "\\", 1);
      gm__header_add(text, &string[i], 1);
    }
  }
  gm__header_add(text, "\"", 1);
}

static void write_values(gm__header_text *text, const gm__file_table *table) {
  if (!table->value_count) return;
  write_string(text, write_metadata_key, strlen(write_metadata_key));
  write_add(text, ":{");
  for (size_t i = 0; i < table->value_count; i++) {
    const gm__file_value *value = &table->values[i];
    if (i) gm__header_add(text, ",", 1);
    write_string(text, value->key.text, value->key.length);
    gm__header_add(text, ":", 1);
    write_string(text, value->text.text, value->text.length);
  }
  write_add(text, table->count ? "}," : "}");
}

static void write_tensor(gm__header_text *text, const gm__file_tensor *tensor, uint64_t begin) {
  write_string(text, tensor->name, strlen(tensor->name));
  write_add(text, ":{\"dtype\":\"%s\",\"shape\":[", gm__safetensors_dtype(tensor->dtype));
  for (uint32_t i = 0; i < tensor->rank; i++) write_add(text, "%s%" PRIu64, i ? "," : "", tensor->shape[i]);
  write_add(text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, begin + tensor->bytes);
}

/* The text that counts is at most the format's limit and a tensor more. */
static void write_header(gm__header_text *text, const gm__file_table *table) {
  uint64_t begin = 0;
  gm__header_number(text, 0, GM__SAFETENSORS_LENGTH_BYTES);
  gm__header_add(text, "{", 1);
  write_values(text, table);
  for (size_t i = 0; i < table->count && text->bytes <= GM__SAFETENSORS_HEADER_MAX; i++) {
    if (i) gm__header_add(text, ",", 1);
    write_tensor(text, &table->tensors[i], begin);
    begin += table->tensors[i].bytes;
  }
  gm__header_add(text, "}", 1);
  gm__header_fill(text, GM__FILE_ALIGN, ' ');
}

/* The header's length, in front of it, is known at its end. */
static void write_file(gm__header_text *text, const gm__file_table *table) {
  write_header(text, table);
  if (!text->at) return;
  gm__header_text length = {text->at, 0};
  gm__header_number(&length, text->bytes - GM__SAFETENSORS_LENGTH_BYTES, GM__SAFETENSORS_LENGTH_BYTES);
}

gm_status gm__safetensors_begin(const gm__file_table *table, char **out, uint64_t *out_bytes, gm_error *err) {
  return gm__header_make(table, GM__SAFETENSORS_LENGTH_BYTES + (uint64_t)GM__SAFETENSORS_HEADER_MAX, write_file, out,
                         out_bytes, err);
}
