#include "core/tier/remote/remote_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void gm__remote_key_make(gm__remote_key *out, const char *prefix, const void *key, size_t key_bytes) {
  const size_t begin = strlen(prefix);
  memcpy(out->text, prefix, begin);
  memcpy(out->text + begin, ":v:", 3);
  if (key_bytes) memcpy(out->text + begin + 3, key, key_bytes);
  out->bytes = begin + 3 + key_bytes;
}

void gm__remote_chunk_key_make(gm__remote_chunk_key *out, const char *prefix, const unsigned char *version,
                               uint32_t index) {
  static const char digits[] = "0123456789abcdef";
  char hex[2 * GM__MANIFEST_VERSION + 1] = "";
  for (size_t i = 0; i < GM__MANIFEST_VERSION; i++) {
    hex[2 * i] = digits[version[i] >> 4];
    hex[2 * i + 1] = digits[version[i] & 15];
  }
  const int length = snprintf(out->text, sizeof out->text, "%s:c:%s:%" PRIu32, prefix, hex, index);
  out->bytes = (size_t)length;
}
