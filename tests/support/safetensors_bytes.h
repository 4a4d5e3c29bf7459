/* Safetensors files for tests, made in memory: a header as text, and data whose bytes tell their place. */
#ifndef GM_TESTS_SUPPORT_SAFETENSORS_BYTES_H
#define GM_TESTS_SUPPORT_SAFETENSORS_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct safetensors_bytes {
  unsigned char *bytes; /* free with safetensors_bytes_free */
  uint64_t length;
} safetensors_bytes;

/* The byte at `place` of the data of a file made with `seed`. */
static inline unsigned char safetensors_bytes_at(uint64_t place, uint64_t seed) {
  uint64_t mixed = (place + seed * 1000003U + 1) * 0x9e3779b97f4a7c15U;
  return (unsigned char)(mixed >> 56);
}

/* `header_length`: what the file states, often strlen(header). */
static inline safetensors_bytes safetensors_bytes_make(const char *header, uint64_t header_length, uint64_t data_length,
                                                       uint64_t seed) {
  uint64_t text = strlen(header);
  safetensors_bytes file = {.length = 8 + text + data_length};
  file.bytes = malloc(file.length);
  if (!file.bytes) abort();
  for (int i = 0; i < 8; i++) file.bytes[i] = (unsigned char)(header_length >> (8 * i));
  memcpy(file.bytes + 8, header, text);
  for (uint64_t i = 0; i < data_length; i++) file.bytes[8 + text + i] = safetensors_bytes_at(i, seed);
  return file;
}

static inline void safetensors_bytes_free(safetensors_bytes *file) {
  free(file->bytes);
  file->bytes = NULL;
}

#endif
