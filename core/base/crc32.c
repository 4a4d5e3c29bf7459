#include "core/base/crc32.h"

#include "core/base/zlib.h"

/* Four bits at a time: the remainders of 0 to 15 by the polynomial 0xedb88320. */
static uint32_t crc32_by_fours(uint32_t before, const void *bytes, size_t count) {
  static const uint32_t remainders[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                          0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                          0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  const unsigned char *at = bytes;
  uint32_t state = ~before;
  for (size_t i = 0; i < count; i++) {
    state ^= at[i];
    state = state >> 4 ^ remainders[state & 15];
    state = state >> 4 ^ remainders[state & 15];
  }
  return ~state;
}

uint32_t gm__crc32(uint32_t before, const void *bytes, size_t count) {
#ifdef GM_HAVE_ZLIB
  const gm__zlib *zlib = gm__zlib_open(NULL);
  if (zlib) return count ? (uint32_t)zlib->crc32(before, bytes, count) : before;
#endif
  return crc32_by_fours(before, bytes, count);
}
