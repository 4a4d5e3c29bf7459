/* Strict reading of values that people write: configuration, environment, command lines. Thread-safe, independent of
 * the locale. A value is the whole string: no white space, no sign, nothing after it. `what` names the value in the
 * error
 * ("GM_CACHE_SIZE"). A failure is GM_ERR_INVALID_ARGUMENT with the reason, and leaves *out untouched. `text` NULL
 * counts as "". */
#ifndef GM_CORE_BASE_TEXT_H
#define GM_CORE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/status.h"

/* Read decimal digits, then at most one of K, M, G, T (2^10, 2^20, 2^30, 2^40), in either case. B, i or iB after it
 * changes nothing, nor does a B alone: 24G, 24GB and 24GiB are one size. Before K, M, G, T a fraction is allowed
 * ("2.5G"). It is rounded down to whole bytes, and digits after its seventh are dropped. Up to 2^64-1. */
gm_status gm__text_u64(const char *what, const char *text, uint64_t *out, gm_error *err);

/* Read decimal digits with at most one point and at least one digit ("0.8", ".5", "2"). No exponent, no inf, no nan.
 * Below 2^53. Digits after the point that a double cannot hold are dropped. */
gm_status gm__text_double(const char *what, const char *text, double *out, gm_error *err);

/* Read true, yes, on, 1 or false, no, off, 0, in either case. */
gm_status gm__text_bool(const char *what, const char *text, bool *out, gm_error *err);

/* Read values of gm__text_u64 with commas between them. "" is an empty list. It fails for a bad item, and for more than
 * `capacity` items. Then *count is untouched, and `out` holds the items before the failure. */
gm_status gm__text_u64_list(const char *what, const char *text, uint64_t *out, size_t capacity, size_t *count,
                            gm_error *err);

/* Are the texts equal but for the case of ASCII letters? */
bool gm__text_same(const char *a, const char *b);

#endif
