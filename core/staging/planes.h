/* The lossless codec: numbers of 16 bits in two planes, of which zstd packs one. Pure and thread-safe.
 *
 * A piece is a head and chunks of 256 KiB of plain bytes, the last one shorter. All numbers are little-endian.
 *
 *   head   0  8  "gmplanes"
 *          8  4  version, 1
 *         12  4  kind of checksum (core/base/checksum.h)
 *         16  8  plain bytes of all chunks
 *   chunk  0  4  bytes that follow its head
 *          4  4  0: they are the plain bytes. 1: the lower plane, then the upper plane, packed
 *          8  8  checksum of the two numbers above and of those bytes, with the chunk's place in the plain bytes as
 * seed
 *
 * Each number turns left by one bit, so that the sign is its lowest and the exponent of bf16 its upper byte. The upper
 * bytes are the upper plane, which zstd packs without a search for repetitions. A chunk that gains less than 3 % stays
 * as it is, one of an odd number of bytes, too. */
#ifndef GM_CORE_STAGING_PLANES_H
#define GM_CORE_STAGING_PLANES_H

#include <stdint.h>

#include "gm/status.h"

enum { GM__PLANES_CHUNK = 256 << 10 };

/* The hooks of a gm_codec. `user` is not used. */
uint64_t gm__planes_most(void *user, uint64_t bytes);
gm_status gm__planes_encode(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                            uint64_t *out_bytes, gm_error *err);
gm_status gm__planes_decode(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                            uint64_t *out_bytes, gm_error *err);

struct gm__planes_work;

/* A piece that is decoded from its begin to its end, in parts of any size. It takes host memory for two chunks at most.
 * One thread. All zero: none. */
typedef struct gm__planes_reader {
  struct gm__planes_work *work;
  const unsigned char *at;     /* of the next chunk */
  uint64_t left, place, total; /* encoded bytes from there on; plain bytes before it, and of all chunks */
  uint64_t kept, window_bytes; /* plain bytes at the window's end that are not read yet; those in the window */
  unsigned char *window;       /* NULL: no part ended within a chunk so far */
} gm__planes_reader;

/* Looks at the head of a piece, which stays where it is. `total` is how many plain bytes it has, at most `capacity`.
 * Errors: those of gm_codec_decode. */
gm_status gm__planes_read_begin(gm__planes_reader *reader, const void *from, uint64_t bytes, uint64_t capacity,
                                gm_error *err);
void gm__planes_read_end(gm__planes_reader *reader);

/* Decodes the next `bytes` bytes, of which there are so many. Errors: those of gm_codec_decode. Afterwards the reader
 * can only end. */
gm_status gm__planes_read(gm__planes_reader *reader, void *to, uint64_t bytes, gm_error *err);

/* A piece that is encoded in parts of any size, with as much memory. One thread. All zero: none. */
typedef struct gm__planes_writer {
  struct gm__planes_work *work;
  unsigned char *to;
  uint64_t capacity, put;      /* encoded bytes: the most, and those that are written */
  uint64_t place, total, held; /* plain bytes: of the chunks that are written, of all, and in the window */
  unsigned char *window;       /* NULL: no part ended within a chunk so far */
} gm__planes_writer;

/* A piece of `total` plain bytes goes to `to`. Errors: those of gm_codec_encode. */
gm_status gm__planes_write_begin(gm__planes_writer *writer, uint64_t total, void *to, uint64_t capacity, gm_error *err);
void gm__planes_write_end(gm__planes_writer *writer);

/* Encodes the next `bytes` plain bytes, of which there are so many. After all of them the piece has `put` bytes.
 * Errors: those of gm_codec_encode. Afterwards the writer can only end. */
gm_status gm__planes_write(gm__planes_writer *writer, const void *from, uint64_t bytes, gm_error *err);

#endif
