/* A codec changes bytes on their way: plain bytes become an encoded piece, and that becomes plain bytes again, all in
 * host memory. gm has three, and a program can bring its own. gm never takes one by itself.
 *
 * - "bf16" and "fp16": floats of 32 bits in half of the bytes. They lose precision. Each number becomes the nearest one
 *   of 16 bits, in a tie the even one. For y, which comes back for x:
 *
 *       bf16: |y - x| <= max(2^-8 |x|, 2^-134) where |x| < (2 - 2^-8) 2^127; else y is infinite
 *       fp16: |y - x| <= max(2^-11 |x|, 2^-25) where |x| < 65520; else y is infinite
 *
 *   Zeros and infinities come back as they were, with their sign. A NaN stays a NaN, with its sign and the upper bits
 * of its payload, and becomes quiet. Every kind of processor gives the same bits, whatever the rounding mode of the
 *   thread. A number that 16 bits can hold comes back as it was.
 * - "planes": lossless, for numbers of 16 bits such as weights in bf16. Their exponents lie together and are packed by
 *   zstd's Huffman code; their fractions are stored. Gaussian weights in bf16 take two thirds. gm opens libzstd when it
 *   is first needed: to encode, and to decode what is not Huffman code alone. Without it such calls are
 *   NOT_SUPPORTED.
 *
 * Numbers of the plain side have the byte order of the processor, and may lie at any address. Each call is
 * thread-safe. */
#ifndef GM_CODEC_H
#define GM_CODEC_H

#include <stdint.h>

#include "gm/status.h"

GM_BEGIN_DECLS

/* Changes `bytes` bytes at `from` into at most `capacity` bytes at `to`, and writes their number to *out_bytes. It
 * writes nothing behind them. A failure fills `err`, which is not NULL. It runs in the thread whose call needs it,
 * possibly in several at once, and must not throw. */
typedef gm_status (*gm_codec_run)(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                                  uint64_t *out_bytes, gm_error *err);

/* The two directions of a codec. */
typedef enum gm_codec_way { GM_CODEC_ENCODE = 0, GM_CODEC_DECODE = 1 } gm_codec_way;

/* A codec. A program fills one for its own. gm borrows it, with all that it points to, for each call that gets it. */
typedef struct gm_codec {
  uint32_t struct_size;
  uint32_t unit;                                /* plain bytes come in whole multiples of it; 0 counts as 1 */
  const char *name;                             /* for messages; must not be NULL */
  void *user;                                   /* handed to the hooks */
  uint64_t (*most)(void *user, uint64_t bytes); /* the most bytes that `bytes` plain bytes take encoded; UINT64_MAX:
                                                   it cannot encode so many */
  gm_codec_run encode;
  gm_codec_run decode; /* of what `encode` made; the input may be anything */
  uint64_t chunk;      /* plain bytes, a multiple of `unit`. Each so many take exactly most(chunk) bytes, and pieces one
                          behind the other are the piece of all. gm may cut there. 0: a piece is whole */
} gm_codec;

/* Finds a codec of gm: "bf16", "fp16", "planes". Returns NULL where there is none of that name, or `name` is NULL. It
 * is static. */
GM_API const gm_codec *gm_codec_find(const char *name);

/* Writes to *out how much room an encoded piece of `bytes` plain bytes can take. INVALID_ARGUMENT: an argument is NULL,
 * the codec lacks a name or a hook, or `bytes` is no multiple of its unit. NOT_SUPPORTED: the codec has a member that
 * this gm does not know. OVER_LIMIT: it cannot encode so many bytes. After a failure *out is unchanged. */
GM_API gm_status gm_codec_most(const gm_codec *codec, uint64_t bytes, uint64_t *out, gm_error *err);

/* Encodes `bytes` plain bytes at `from` into `to`, and writes to *out_bytes how many the piece has. The two ranges do
 * not overlap. Errors: those of gm_codec_most, INVALID_ARGUMENT also for ranges that overlap. OVER_LIMIT: the piece
 * does not fit in `capacity`. A room of gm_codec_most always does. NOT_SUPPORTED: the codec's library is missing; the
 * message says why. OUT_OF_HOST_MEMORY. Errors of the program's own hook. After a failure the bytes at `to` may be
 * anything, and *out_bytes is unchanged. */
GM_API gm_status gm_codec_encode(const gm_codec *codec, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                                 uint64_t *out_bytes, gm_error *err);

/* Decodes a piece of `bytes` bytes at `from`, which may be anything, into `to`. FORMAT: it is no piece of this codec,
 * it is cut, or its checksum differs. OVER_LIMIT: it has more plain bytes than `capacity`. Other errors are those of
 * gm_codec_encode. After a failure the bytes at `to` may be anything, and *out_bytes is unchanged. */
GM_API gm_status gm_codec_decode(const gm_codec *codec, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                                 uint64_t *out_bytes, gm_error *err);

GM_END_DECLS

#endif
