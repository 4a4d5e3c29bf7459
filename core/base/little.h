/* Unsigned numbers in bytes of a file or a message, the lowest byte first. */
#ifndef GM_CORE_BASE_LITTLE_H
#define GM_CORE_BASE_LITTLE_H

#include <stdint.h>

/* `bytes`: 8 or fewer. */
static inline void gm__le_put(void *at, uint64_t number, unsigned bytes) {
  unsigned char *to = at;
  for (unsigned i = 0; i < bytes; i++) to[i] = (unsigned char)(number >> 8 * i);
}

static inline uint64_t gm__le_get(const void *at, unsigned bytes) {
  const unsigned char *from = at;
  uint64_t number = 0;
  while (bytes-- > 0) number = number << 8 | from[bytes];
  return number;
}

#endif
