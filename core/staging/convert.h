/* Floats of 32 bits as floats of 16 bits, and back, in host memory. All ways give the same bits: to the nearest, ties
 * to even, too large becomes infinity. A NaN keeps its sign and the upper bits of its payload. It becomes quiet, but
 * for the way from bf16, which changes no bit. They do not depend on the thread's rounding mode, trap nothing, and
 * leave its flags as they were. Pure and thread-safe. */
#ifndef GM_CORE_STAGING_CONVERT_H
#define GM_CORE_STAGING_CONVERT_H

#include <stddef.h>
#include <stdint.h>

/* `count` elements from `from` to `to`, which may lie at any address, and do not overlap. Both may be NULL for 0. */
typedef void (*gm__convert_run)(void *to, const void *from, size_t count);

/* `count` numbers of 16 bits, each turned left by one bit, as their lower and their upper bytes; and the way back. The
 * three ends may lie at any address, and do not overlap. */
typedef void (*gm__convert_split)(void *lower, void *upper, const void *from, size_t count);
typedef void (*gm__convert_join)(void *to, const void *lower, const void *upper, size_t count);

/* The conversions of one kind of processor. */
typedef struct gm__convert_way {
  const char *name; /* "scalar", "vector", "avx2", "avx512" */
  gm__convert_run bf16_from_fp32, fp32_from_bf16, fp16_from_fp32, fp32_from_fp16;
  gm__convert_split split;
  gm__convert_join join;
} gm__convert_way;

/* One element at a time, as other ways take the end of an array; and the vectors that every such processor has. */
extern const gm__convert_way gm__convert_scalar, gm__convert_vector;

/* The ways that this processor has, the fastest first; NULL after the last one. "scalar" is always there. */
const gm__convert_way *gm__convert_way_at(size_t index);

/* The one that gm takes: GM_CONVERT names it where the processor has it, else it is the fastest. Once it was asked for
 * it stays for the life of the process. */
const gm__convert_way *gm__convert_way_here(void);

/* These are in builds for x86-64. NULL where the processor lacks something. Other builds answer NULL. */
const gm__convert_way *gm__convert_avx2(void);
const gm__convert_way *gm__convert_avx512(void);

#endif
