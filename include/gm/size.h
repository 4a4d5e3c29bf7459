/* Sizes in bytes: rounding, size classes, and the text that people read and write. Every function is pure and
 * thread-safe. */
#ifndef GM_SIZE_H
#define GM_SIZE_H

#include <stddef.h>
#include <stdint.h>

#include "gm/status.h"

GM_BEGIN_DECLS

/* Where 0 bytes in a struct of parameters means "by configuration", these two say the rest. */
#define GM_NO_LIMIT UINT64_MAX       /* no bound of this kind at all */
#define GM_NO_BYTES (UINT64_MAX - 1) /* exactly 0 bytes */

/* Returns the smallest power of two >= `bytes`. 0 stays 0. Above 2^63 there is no such power: the result is UINT64_MAX,
 * which every limit refuses. */
GM_API uint64_t gm_round_up_power_of_2(uint64_t bytes);

/* Returns the size class of `bytes`: the n of the smallest 2^n >= `bytes`. 0 and 1 have class 0; sizes above 2^63 have
 * class 64. */
GM_API uint32_t gm_size_class(uint64_t bytes);

/* Writes `bytes` as text in binary units: "512 B", "1.5 GiB", "8 GiB". The number is rounded to the nearest tenth, and
 * ".0" is left out. The locale has no influence. Returns the length without the end mark. At most capacity - 1
 * characters are written; with capacity 0 nothing is, and `buf` may be NULL. 16 bytes hold every answer. */
GM_API size_t gm_format_bytes(uint64_t bytes, char *buf, size_t capacity);

/* Reads a size from text: "4096", "4096B", "8G", "2.5G", "24GB", "24GiB". A unit is K, M, G or T in either case, and
 * means 2^10, 2^20, 2^30 or 2^40. A unit may end in B, i or iB; all units are binary.
 *
 * A fraction needs a unit, and is rounded down to whole bytes. Digits after the seventh of a fraction are ignored. The
 * text has no sign and no white space.
 *
 * INVALID_ARGUMENT: any other text, more than 2^64-1 bytes, or NULL. *out is then unchanged. */
GM_API gm_status gm_parse_bytes(const char *text, uint64_t *out);

GM_END_DECLS

#endif
