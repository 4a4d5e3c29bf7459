/* Sizes: rounding, classes, and how people write them. Pure and thread-safe. */
#ifndef GM_SIZE_H
#define GM_SIZE_H

#include <stddef.h>
#include <stdint.h>

#include "gm/status.h"

GM_BEGIN_DECLS

/* The smallest power of two >= `bytes`. 0 stays 0; above 2^63 there is none: UINT64_MAX, which no limit lets pass. */
GM_API uint64_t gm_round_up_power_of_2(uint64_t bytes);

/* The bucket of `bytes`: the n of the smallest 2^n >= `bytes`; 0 for 0 and 1, 64 above 2^63. */
GM_API uint32_t gm_size_class(uint64_t bytes);

/* "512 B", "1.5 GiB", "8 GiB": binary units, rounded to the nearest tenth, ".0" not written, the same in every locale.
 * Returns the length without the end mark; at most capacity - 1 characters of it are written (capacity 0: none, `buf`
 * may be NULL). 16 bytes hold every answer. */
GM_API size_t gm_format_bytes(uint64_t bytes, char *buf, size_t capacity);

/* "4096", "8G", "2.5G", "24GB", "24GiB": digits and at most one of K, M, G, T in either case (2^10, 2^20, 2^30, 2^40),
 * with B, i or iB behind it or not: all units are binary. "4096B" is 4096. A fraction needs one of K, M, G, T, and is
 * rounded down to whole bytes; digits after its seventh are dropped. No sign, no white space. GM_ERR_INVALID_ARGUMENT
 * for anything else, for more than 2^64-1 and for NULL; then *out is untouched. */
GM_API gm_status gm_parse_bytes(const char *text, uint64_t *out);

GM_END_DECLS

#endif
