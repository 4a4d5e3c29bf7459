#include "backends/shared/uuid.h"

#include <string.h>

/* FNV-1a with 64 bits. The two halves begin with different values. The hash includes the NUL of each text, so that
 * "ab", "c" and "a", "bc" differ. */
static uint64_t uuid_bytes(uint64_t hash, const void *data, size_t count) {
  const unsigned char *bytes = data;
  for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static uint64_t uuid_text(uint64_t hash, const char *text) { return uuid_bytes(hash, text, strlen(text) + 1); }

void gm__uuid_derive(const char *backend, const char *driver, const char *name, uint32_t ordinal, uint8_t out[16]) {
  const unsigned char number[4] = {(unsigned char)ordinal, (unsigned char)(ordinal >> 8),
                                   (unsigned char)(ordinal >> 16), (unsigned char)(ordinal >> 24)};
  for (unsigned half = 0; half < 2; half++) {
    uint64_t hash = uuid_bytes(UINT64_C(0xcbf29ce484222325), &(unsigned char){(unsigned char)half}, 1);
    hash = uuid_bytes(uuid_text(uuid_text(uuid_text(hash, backend), driver), name), number, sizeof number);
    for (unsigned i = 0; i < 8; i++) out[8 * half + i] = (uint8_t)(hash >> (56 - 8 * i));
  }
  out[6] = (uint8_t)((out[6] & 0x0f) | 0x80);
  out[8] = (uint8_t)((out[8] & 0x3f) | 0x80);
}

bool gm__uuid_is_zero(const void *bytes, size_t count) {
  const unsigned char *at = bytes;
  while (count && !at[count - 1]) count--;
  return count == 0;
}
