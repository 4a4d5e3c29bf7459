#include "tools/gmem/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gm/memory_info.h"

/* ---- strings ---- */

/* How many bytes of well-formed UTF-8 stand at `text`; 0: none (RFC 3629: no overlong form, no surrogate). */
static size_t json_utf8(const unsigned char *text) {
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

static void json_string(json *out, const char *text) {
  fputc('"', out->file);
  for (const unsigned char *at = (const unsigned char *)text; *at;) {
    size_t bytes = json_utf8(at);
    if (bytes == 0) {
      fputs("\\ufffd", out->file);
    } else if (*at == '"' || *at == '\\') {
      fprintf(out->file, "\\%c", *at);
    } else if (*at < ' ' || *at == 0x7f) {
      fprintf(out->file, "\\u%04x", *at);
    } else {
      fwrite(at, 1, bytes, out->file);
    }
    at += bytes ? bytes : 1;
  }
  fputc('"', out->file);
}

/* ---- structure ---- */

static void json_line(const json *out) {
  fputc('\n', out->file);
  for (int i = 0; i < out->depth; i++) fputs("  ", out->file);
}

static void json_item(json *out, const char *key) {
  if (out->filled) fputc(',', out->file);
  if (out->depth) json_line(out);
  out->filled = true;
  if (!key) return;
  json_string(out, key);
  fputs(": ", out->file);
}

void json_open(json *out, const char *key, char bracket) {
  json_item(out, key);
  fputc(bracket, out->file);
  out->depth++;
  out->filled = false;
}

void json_close(json *out, char bracket) {
  out->depth--;
  if (out->filled) json_line(out);
  fputc(bracket, out->file);
  out->filled = true;
  if (out->depth == 0) fputc('\n', out->file);
}

/* ---- values ---- */

void json_text(json *out, const char *key, const char *text) {
  json_item(out, key);
  json_string(out, text);
}

void json_text_or_null(json *out, const char *key, const char *text) {
  if (text && text[0]) {
    json_text(out, key, text);
  } else {
    json_null(out, key);
  }
}

void json_u64(json *out, const char *key, uint64_t value) {
  json_item(out, key);
  fprintf(out->file, "%" PRIu64, value);
}

void json_bytes(json *out, const char *key, uint64_t bytes) {
  if (bytes == GM_UNKNOWN_BYTES) {
    json_null(out, key);
  } else {
    json_u64(out, key, bytes);
  }
}

void json_double(json *out, const char *key, double value) {
  if (!isfinite(value)) {
    json_null(out, key);
    return;
  }
  json_item(out, key);
  fprintf(out->file, "%.9g", value);
}

void json_bool(json *out, const char *key, bool value) {
  json_item(out, key);
  fputs(value ? "true" : "false", out->file);
}

void json_null(json *out, const char *key) {
  json_item(out, key);
  fputs("null", out->file);
}
