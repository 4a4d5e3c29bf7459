/* Invariants: at <= loaded <= header_bytes <= file_bytes. The header's memory grows at most to twice what was asked for
 * of a file that really has it. A string is moved one byte towards its length, whose highest byte nobody needs again.
 * That makes room for the NUL without a copy. */
#include "core/model/gguf_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/little.h"
#include "core/base/saturate.h"
#include "core/base/utf8.h"
#include "core/model/gguf.h"

enum { GGUF_FIRST_READ = 64 << 10 };

bool gm__gguf_fail(gm__gguf_reader *reader, gm_status status, uint64_t at, const char *format, ...) {
  if (reader->status != GM_OK) return false;
  char reason[400];
  va_list args;
  va_start(args, format);
  vsnprintf(reason, sizeof reason, format, args);
  va_end(args);
  reader->status = gm__model_fail(reader->err, status, reader->path, at, "%s", reason);
  return false;
}

bool gm__gguf_keep(gm__gguf_reader *reader, gm_status status) {
  if (reader->status == GM_OK) reader->status = status;
  return reader->status == GM_OK;
}

/* ---- bytes ---- */

static bool gguf_make_room(gm__gguf_reader *reader, uint64_t end) {
  gm__contents *contents = reader->contents;
  if (end <= contents->header_bytes) return true;
  uint64_t wanted = gm__max(gm__max(2 * contents->header_bytes, GGUF_FIRST_READ), end);
  wanted = gm__min(wanted, reader->file_bytes);
  if (!gm__grow(reader->services, &contents->header, contents->header_bytes, wanted)) {
    return gm__gguf_keep(reader, gm__fail(reader->err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_model_open",
                                          "no host memory for a header of %llu bytes", (unsigned long long)wanted));
  }
  contents->header_bytes = wanted;
  return true;
}

static bool gguf_load(gm__gguf_reader *reader, uint64_t end) {
  if (end <= reader->loaded) return true;
  if (!gguf_make_room(reader, end)) return false;
  char *to = reader->contents->header + reader->loaded;
  uint64_t bytes = reader->contents->header_bytes - reader->loaded;
  if (reader->memory) {
    memcpy(to, reader->memory + reader->loaded, bytes);
  } else if (!gm__gguf_keep(
                 reader, gm__input_file_read_at(reader->file, reader->path, reader->loaded, to, bytes, reader->err))) {
    return false;
  }
  reader->loaded += bytes;
  return true;
}

bool gm__gguf_take(gm__gguf_reader *reader, uint64_t bytes, const char *what, uint64_t *out_at) {
  if (reader->status != GM_OK) return false;
  if (bytes > reader->file_bytes - reader->at) {
    return gm__gguf_fail(reader, GM_ERR_FORMAT, reader->at, "the file ends inside %s", what);
  }
  if (bytes > GM__GGUF_HEADER_MAX - reader->at) {
    return gm__gguf_fail(reader, GM_ERR_NOT_SUPPORTED, reader->at, "a header of more than %d bytes (at %s)",
                         (int)GM__GGUF_HEADER_MAX, what);
  }
  if (!gguf_load(reader, reader->at + bytes)) return false;
  *out_at = reader->at;
  reader->at += bytes;
  return true;
}

/* ---- numbers ---- */

uint64_t gm__gguf_number(const gm__contents *contents, uint64_t at, uint32_t bytes) {
  return gm__le_get(contents->header + at, bytes);
}

static bool gguf_take_number(gm__gguf_reader *reader, uint32_t bytes, const char *what, uint64_t *out) {
  uint64_t at = 0;
  if (!gm__gguf_take(reader, bytes, what, &at)) return false;
  *out = gm__gguf_number(reader->contents, at, bytes);
  return true;
}

bool gm__gguf_u32(gm__gguf_reader *reader, const char *what, uint32_t *out) {
  uint64_t value = 0;
  if (!gguf_take_number(reader, 4, what, &value)) return false;
  *out = (uint32_t)value;
  return true;
}

bool gm__gguf_u64(gm__gguf_reader *reader, const char *what, uint64_t *out) {
  return gguf_take_number(reader, 8, what, out);
}

bool gm__gguf_size(gm__gguf_reader *reader, const char *what, uint64_t *out) {
  return gguf_take_number(reader, reader->version == 1 ? 4 : 8, what, out);
}

bool gm__gguf_room(gm__gguf_reader *reader, uint64_t count, uint64_t item_bytes, const char *what) {
  if (reader->status != GM_OK) return false;
  uint64_t left = reader->file_bytes - reader->at;
  if (count <= left / item_bytes) return true;
  return gm__gguf_fail(reader, GM_ERR_FORMAT, reader->at, "%llu %s cannot fit the %llu bytes that follow",
                       (unsigned long long)count, what, (unsigned long long)left);
}

/* ---- strings ---- */

bool gm__gguf_string(gm__gguf_reader *reader, const char *what, gm__header_string *out) {
  uint64_t length = 0, at = 0;
  if (!gm__gguf_size(reader, what, &length) || !gm__gguf_take(reader, length, what, &at)) return false;
  char *text = reader->contents->header + at;
  memmove(text - 1, text, length);
  (text - 1)[length] = '\0'; /* of an empty string the last byte of its length */
  *out = (gm__header_string){(uint32_t)at - 1, (uint32_t)length};
  return true;
}

static bool gguf_is_name(const char *text, uint64_t length) {
  for (uint64_t i = 0; i < length;) {
    uint32_t bytes = gm__utf8_length(text + i, length - i);
    if (bytes == 0 || (unsigned char)text[i] < 0x20 || text[i] == 0x7f) return false;
    i += bytes;
  }
  return length > 0;
}

bool gm__gguf_name(gm__gguf_reader *reader, const char *what, uint64_t limit, gm__json_text *out) {
  gm__header_string string = {0};
  uint64_t start = reader->at;
  if (!gm__gguf_string(reader, what, &string)) return false;
  const char *text = reader->contents->header + string.at;
  if (string.length > limit || !gguf_is_name(text, string.length)) {
    return gm__gguf_fail(reader, GM_ERR_FORMAT, start, "%s is not 1 to %llu bytes of UTF-8 without control characters",
                         what, (unsigned long long)limit);
  }
  *out = (gm__json_text){text, string.length, string.at};
  return true;
}
