#include "core/model/safetensors_write.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/model/json_scan.h"
#include "core/model/safetensors.h"

/* Invariant: a text is written twice by the same calls, first to count its bytes. */

typedef struct write_text {
  char *at; /* NULL: only count */
  uint64_t bytes;
} write_text;

const char *gm__safetensors_refuses(const char *name, gm_dtype dtype) {
  if (!gm__safetensors_dtype(dtype)) return "has a type that safetensors does not know";
  if (!strcmp(name, "__metadata__")) return "has a name that safetensors has for itself";
  return gm__utf8_is(name, strlen(name)) ? NULL : "has a name that is not UTF-8";
}

int gm__safetensors_order(const void *a, const void *b) {
  const gm__file_tensor *left = a, *right = b;
  const uint64_t left_align = gm__safetensors_align(left->dtype), right_align = gm__safetensors_align(right->dtype);
  if (left_align != right_align) return left_align > right_align ? -1 : 1;
  return strcmp(left->name, right->name);
}

static void write_byte(write_text *text, char byte) {
  if (text->at) text->at[text->bytes] = byte;
  text->bytes++;
}

GM_PRINTF(2, 3)
static void write_add(write_text *text, const char *format, ...) {
  char piece[64];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(piece, sizeof piece, format, args);
  va_end(args);
  for (const char *at = piece; *at; at++) write_byte(text, *at);
}

static void write_string(write_text *text, const char *string) {
  write_byte(text, '"');
  for (const char *at = string; *at; at++) {
    const unsigned char byte = (unsigned char)*at;
    if (byte < 0x20) {
      write_add(text, "\\u%04x", (unsigned)byte);
    } else {
      if (byte == '"' || byte == '\\') write_byte(text, '\\');
      write_byte(text, *at);
    }
  }
  write_byte(text, '"');
}

static void write_tensor(write_text *text, const gm__file_tensor *tensor, uint64_t begin) {
  write_string(text, tensor->name);
  write_add(text, ":{\"dtype\":\"%s\",\"shape\":[", gm__safetensors_dtype(tensor->dtype));
  for (uint32_t i = 0; i < tensor->rank; i++) write_add(text, "%s%" PRIu64, i ? "," : "", tensor->shape[i]);
  write_add(text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, begin + tensor->bytes);
}

/* The bytes of the text are at most GM__SAFETENSORS_HEADER_MAX and a tensor more. */
static void write_header(write_text *text, const gm__file_tensor *tensors, uint64_t count) {
  uint64_t begin = 0;
  write_byte(text, '{');
  for (uint64_t i = 0; i < count && text->bytes <= GM__SAFETENSORS_HEADER_MAX; i++) {
    if (i) write_byte(text, ',');
    write_tensor(text, &tensors[i], begin);
    begin += tensors[i].bytes;
  }
  write_byte(text, '}');
  while (text->bytes % 8) write_byte(text, ' ');
}

gm_status gm__safetensors_begin(const gm_services *services, const gm__file_tensor *tensors, uint64_t count, char **out,
                                uint64_t *out_bytes, gm_error *err) {
  static const char op[] = "gm_store_save";
  write_text text = {NULL, 0};
  write_header(&text, tensors, count);
  if (text.bytes > GM__SAFETENSORS_HEADER_MAX) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, op, "a safetensors header has at most %d bytes, this one has more",
                    (int)GM__SAFETENSORS_HEADER_MAX);
  }
  const uint64_t header = text.bytes;
  char *made = gm__alloc(services, (size_t)(GM__SAFETENSORS_LENGTH_BYTES + header));
  if (!made) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, op, "no host memory for a file's header");
  for (int i = 0; i < GM__SAFETENSORS_LENGTH_BYTES; i++) made[i] = (char)(unsigned char)(header >> 8 * i);
  text = (write_text){made + GM__SAFETENSORS_LENGTH_BYTES, 0};
  write_header(&text, tensors, count);
  *out = made;
  *out_bytes = GM__SAFETENSORS_LENGTH_BYTES + header;
  return GM_OK;
}
