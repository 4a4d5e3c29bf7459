/* GGUF files for tests, made in memory piece by piece; data is patterned by place like that of safetensors_bytes.h.
 *
 *   gguf_bytes file;
 *   gguf_bytes_begin(&file, 3, 1, 1);                       // version, tensors, values
 *   gguf_bytes_text(&file, "general.architecture", "llama");
 *   gguf_bytes_tensor(&file, "a", 0, 0, 1, (uint64_t)4);    // name, type, offset, rank, dimensions innermost first
 *   gguf_bytes_data(&file, 32, 16, 0);                      // alignment, bytes, seed
 *   ... file.bytes, file.length ...
 *   gguf_bytes_free(&file); */
#ifndef GM_TESTS_SUPPORT_GGUF_BYTES_H
#define GM_TESTS_SUPPORT_GGUF_BYTES_H

#include <stdarg.h>

#include "support/safetensors_bytes.h"

enum {
  GGUF_U8,
  GGUF_I8,
  GGUF_U16,
  GGUF_I16,
  GGUF_U32,
  GGUF_I32,
  GGUF_F32,
  GGUF_BOOL,
  GGUF_STRING,
  GGUF_ARRAY,
  GGUF_U64,
  GGUF_I64,
  GGUF_F64
};

typedef struct gguf_bytes {
  unsigned char *bytes;
  uint64_t length, capacity;
  uint32_t version;
} gguf_bytes;

static inline void gguf_bytes_raw(gguf_bytes *file, const void *bytes, uint64_t length) {
  if (file->length + length > file->capacity) {
    file->capacity = 2 * (file->length + length);
    file->bytes = realloc(file->bytes, file->capacity);
    if (!file->bytes) abort();
  }
  if (length > 0) memcpy(file->bytes + file->length, bytes, length);
  file->length += length;
}

static inline void gguf_bytes_number(gguf_bytes *file, uint64_t value, int bytes) {
  unsigned char raw[8];
  for (int i = 0; i < 8; i++) raw[i] = (unsigned char)(value >> (8 * i));
  gguf_bytes_raw(file, raw, (uint64_t)bytes);
}

/* A count or length: 32 bits in version 1. */
static inline void gguf_bytes_size(gguf_bytes *file, uint64_t value) {
  gguf_bytes_number(file, value, file->version == 1 ? 4 : 8);
}

static inline void gguf_bytes_string(gguf_bytes *file, const char *text) {
  gguf_bytes_size(file, strlen(text));
  gguf_bytes_raw(file, text, strlen(text));
}

static inline void gguf_bytes_begin(gguf_bytes *file, uint32_t version, uint64_t tensors, uint64_t values) {
  *file = (gguf_bytes){.version = version};
  gguf_bytes_raw(file, "GGUF", 4);
  gguf_bytes_number(file, version, 4);
  gguf_bytes_size(file, tensors);
  gguf_bytes_size(file, values);
}

static inline void gguf_bytes_text(gguf_bytes *file, const char *key, const char *value) {
  gguf_bytes_string(file, key);
  gguf_bytes_number(file, GGUF_STRING, 4);
  gguf_bytes_string(file, value);
}

/* A number of `bytes` bytes. */
static inline void gguf_bytes_value(gguf_bytes *file, const char *key, uint32_t type, uint64_t value, int bytes) {
  gguf_bytes_string(file, key);
  gguf_bytes_number(file, type, 4);
  gguf_bytes_number(file, value, bytes);
}

static inline void gguf_bytes_u32(gguf_bytes *file, const char *key, uint64_t value) {
  gguf_bytes_value(file, key, GGUF_U32, value, 4);
}

/* The head of an array; its elements are the caller's. */
static inline void gguf_bytes_array(gguf_bytes *file, const char *key, uint32_t type, uint64_t count) {
  gguf_bytes_string(file, key);
  gguf_bytes_number(file, GGUF_ARRAY, 4);
  gguf_bytes_number(file, type, 4);
  gguf_bytes_size(file, count);
}

/* `rank` dimensions as uint64_t follow. */
static inline void gguf_bytes_tensor(gguf_bytes *file, const char *name, uint32_t type, uint64_t offset, uint32_t rank,
                                     ...) {
  va_list dims;
  gguf_bytes_string(file, name);
  gguf_bytes_number(file, rank, 4);
  va_start(dims, rank);
  for (uint32_t i = 0; i < rank; i++) gguf_bytes_size(file, va_arg(dims, uint64_t));
  va_end(dims);
  gguf_bytes_number(file, type, 4);
  gguf_bytes_number(file, offset, 8);
}

static inline void gguf_bytes_data(gguf_bytes *file, uint64_t alignment, uint64_t length, uint64_t seed) {
  while (file->length % alignment != 0) gguf_bytes_number(file, 0, 1);
  for (uint64_t i = 0; i < length; i++) gguf_bytes_number(file, safetensors_bytes_at(i, seed), 1);
}

static inline void gguf_bytes_free(gguf_bytes *file) {
  free(file->bytes);
  file->bytes = NULL;
}

#endif
