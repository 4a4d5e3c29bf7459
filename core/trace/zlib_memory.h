/* Gives zlib memory of gm's services, which `user` is. Those services want the size at a release, and zlib does not
 * tell it. So it stands in front of the memory. */
#ifndef GM_CORE_TRACE_ZLIB_MEMORY_H
#define GM_CORE_TRACE_ZLIB_MEMORY_H

#include <stdint.h>

#include "core/base/alloc.h"
#include "core/base/zlib.h"

enum { GM__ZLIB_HEAD_BYTES = 16 };

static inline void *gm__zlib_alloc(void *user, uInt count, uInt size) {
  size_t bytes = (size_t)count * size; /* two 32-bit numbers */
  if (bytes > SIZE_MAX - GM__ZLIB_HEAD_BYTES) return NULL;
  unsigned char *memory = gm__alloc(user, bytes + GM__ZLIB_HEAD_BYTES);
  if (!memory) return NULL;
  *(size_t *)(void *)memory = bytes + GM__ZLIB_HEAD_BYTES;
  return memory + GM__ZLIB_HEAD_BYTES;
}

static inline void gm__zlib_release(void *user, void *address) {
  if (!address) return;
  unsigned char *memory = (unsigned char *)address - GM__ZLIB_HEAD_BYTES;
  gm__release(user, memory, *(size_t *)(void *)memory);
}

#endif
