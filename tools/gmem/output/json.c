#include "tools/gmem/output/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gm/memory_info.h"

/* How many bytes of well-formed UTF-8 stand at `text`; 0: none (RFC 3629: no overlong form, no surrogate). */
static size_t writer_utf8(const unsigned char *text) {
  static const struct {
    unsigned char first_low, first_high, second_low, second_high;
    size_t bytes;
  } forms[] = {{0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
               {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
               {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (text[0] < forms[i].first_low || text[0] > forms[i].first_high) continue;
    if (forms[i].bytes > 1 && (text[1] < forms[i].second_low || text[1] > forms[i].second_high)) return 0;
    for (size_t k = 2; k < forms[i].bytes; k++) {
      if ((text[k] & 0xc0) != 0x80) return 0;
    }
    return forms[i].bytes;
  }
  return 0;
}

/* Names come from drivers: json-c writes bytes as they are, so what is no UTF-8 is replaced first. NULL, which JSON has
 * as null: no memory. */
static json_object *writer_string(const char *text) {
  static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
  char *clean = malloc(3 * strlen(text) + 1);
  size_t used = 0;
  for (const unsigned char *at = (const unsigned char *)text; clean && *at;) {
    size_t bytes = writer_utf8(at);
    memcpy(clean + used, bytes ? (const char *)at : replacement, bytes ? bytes : 3);
    used += bytes ? bytes : 3;
    at += bytes ? bytes : 1;
  }
  json_object *out = clean ? json_object_new_string_len(clean, (int)used) : NULL;
  free(clean);
  return out;
}

/* Into the innermost object or array. */
static void writer_put(json_writer *out, const char *key, json_object *value) {
  if (key) {
    json_object_object_add(out->stack[out->depth - 1], key, value);
  } else {
    json_object_array_add(out->stack[out->depth - 1], value);
  }
}

void writer_open(json_writer *out, const char *key, char bracket) {
  json_object *inner = bracket == '{' ? json_object_new_object() : json_object_new_array();
  if (out->depth > 0) writer_put(out, key, inner);
  out->stack[out->depth++] = inner;
}

void writer_close(json_writer *out) {
  if (--out->depth > 0) return;
  const int lines = out->one_line ? JSON_C_TO_STRING_SPACED : JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED;
  const int form = lines | JSON_C_TO_STRING_NOSLASHESCAPE;
  fputs(json_object_to_json_string_ext(out->stack[0], form), out->file);
  fputc('\n', out->file);
  json_object_put(out->stack[0]);
}

void writer_text(json_writer *out, const char *key, const char *text) { writer_put(out, key, writer_string(text)); }

void writer_text_or_null(json_writer *out, const char *key, const char *text) {
  writer_put(out, key, text && text[0] ? writer_string(text) : NULL);
}

void writer_u64(json_writer *out, const char *key, uint64_t value) {
  writer_put(out, key, json_object_new_uint64(value));
}

void writer_bytes(json_writer *out, const char *key, uint64_t bytes) {
  writer_put(out, key, bytes == GM_UNKNOWN_BYTES ? NULL : json_object_new_uint64(bytes));
}

void writer_double(json_writer *out, const char *key, double value) {
  char text[32];
  snprintf(text, sizeof text, "%.9g", value);
  writer_put(out, key, isfinite(value) ? json_object_new_double_s(value, text) : NULL);
}

void writer_bool(json_writer *out, const char *key, bool value) {
  writer_put(out, key, json_object_new_boolean(value));
}

void writer_null(json_writer *out, const char *key) { writer_put(out, key, NULL); }
