#include "core/base/utf8.h"

uint32_t gm__utf8_length(const char *text, uint64_t left) {
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char lead = (unsigned char)text[0];
  uint32_t length = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 0;
  if (length <= 1) return length;
  if (left < length) return 0;
  uint32_t code = lead & (0x7fU >> length);
  for (uint32_t i = 1; i < length; i++) {
    unsigned char byte = (unsigned char)text[i];
    if ((byte & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte & 0x3f);
  }
  bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < smallest[length] || code > 0x10ffff || surrogate ? 0 : length;
}

bool gm__utf8_is(const char *text, uint64_t bytes) {
  for (uint64_t at = 0, length; at < bytes; at += length) {
    length = gm__utf8_length(text + at, bytes - at);
    if (!length) return false;
  }
  return true;
}
