/* The literals of a frame of zstd, unpacked without zstd, and faster: one look into a table gives several of them. For
 * frames of one block that has Huffman literals and nothing else, such as `planes` makes. Pure and thread-safe. */
#ifndef GM_CORE_STAGING_LITERALS_H
#define GM_CORE_STAGING_LITERALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GM__LITERALS_BITS = 11 }; /* of the longest code, and of a look */

typedef struct gm__literals_code {
  unsigned char symbol, bits;
} gm__literals_code;

/* Tables of one thread, for any number of frames. */
typedef struct gm__literals {
  uint64_t looks[1 << GM__LITERALS_BITS]; /* bytes 0 to 5: symbols. From bit 55 on: their bits, from 61 on: how many */
  gm__literals_code codes[256];           /* of all symbols that have one, the shortest first */
  unsigned char weights[256], lengths[256];
  unsigned count; /* of codes */
} gm__literals;

/* Unpacks `bytes` bytes at `from`, which may be anything, into exactly `count` bytes at `to`. It writes nothing behind
 * them. False: the frame is of another kind, or damaged, and what is at `to` may be anything; zstd knows which. */
bool gm__literals_unpack(gm__literals *work, void *to, size_t count, const void *from, size_t bytes);

#endif
