/* Size classes 2^k * (1 + i / 2^bits), i < 2^bits: search bins and cache keys. Pure and thread-safe. Public rounding to
 * powers of two is in gm/size.h. `bits` is 0 (powers of two) to GM__SIZE_CLASS_BITS_MAX; below 2^bits every size is its
 * own class. */
#ifndef GM_CORE_ALGO_SIZE_CLASS_H
#define GM_CORE_ALGO_SIZE_CLASS_H

#include <stdint.h>

enum { GM__SIZE_CLASS_BITS_MAX = 5 };

/* Indices are below this: array length for one entry per class (at most 1921). */
uint32_t gm__size_class_count(uint32_t bits);

/* The largest class <= `bytes`: the bin of a free chunk of that size. */
uint32_t gm__size_class_floor(uint64_t bytes, uint32_t bits);

/* The smallest class >= `bytes`: from this bin on every free chunk is large enough. */
uint32_t gm__size_class_ceil(uint64_t bytes, uint32_t bits);

/* The size of a class, ascending with `index`; UINT64_MAX for the last one, which has no size of its own. */
uint64_t gm__size_class_bytes(uint32_t index, uint32_t bits);

#endif
