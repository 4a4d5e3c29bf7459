/* After a load: what was predicted for a place, beside what the load took there. Figures come as plain data, so any
 * loader will do. Every function is pure and thread-safe. */
#ifndef GM_FIT_CHECK_H
#define GM_FIT_CHECK_H

#include <stdbool.h>

#include "gm/fit.h"

GM_BEGIN_DECLS

/* The bytes that a load took on one device, or on the host. GM_UNKNOWN_BYTES: it was not measured. */
typedef struct gm_fit_taken {
  uint32_t struct_size; /* set by the caller: sizeof(gm_fit_taken) */
  uint64_t weight_bytes;
  uint64_t kv_bytes;
  uint64_t compute_bytes;
  uint64_t total_bytes; /* by which the free bytes fell, or which the driver handed out; all parts are in it */
} gm_fit_taken;

/* A measurement beside its prediction. */
typedef enum gm_fit_outcome {
  GM_FIT_OUTCOME_UNKNOWN = 0, /* not measured */
  GM_FIT_OUTCOME_EQUAL = 1,
  GM_FIT_OUTCOME_LESS = 2, /* less was taken than predicted */
  GM_FIT_OUTCOME_MORE = 3
} gm_fit_outcome;

/* One part. Never grows. */
typedef struct gm_fit_check_row {
  const char *name; /* "weights", "cache", "compute", "overhead", "total"; static */
  uint64_t predicted_bytes;
  uint64_t actual_bytes; /* GM_UNKNOWN_BYTES */
  gm_fit_outcome outcome;
} gm_fit_check_row;

enum { GM_FIT_CHECK_ROWS = 5 };

typedef struct gm_fit_check_result {
  uint32_t struct_size;                     /* set by the caller: sizeof(gm_fit_check_result) */
  bool within;                              /* the total is known, and is at most the prediction and the margin */
  gm_fit_check_row rows[GM_FIT_CHECK_ROWS]; /* in the order of the names above; the total is the last */
  uint64_t unaccounted_bytes;               /* bytes of the total that are in no part: the driver's context, rounding,
                                               other programs. GM_UNKNOWN_BYTES: a part or the total is unknown */
  uint64_t over_bytes;           /* bytes that the total is above prediction and margin; 0 where it is unknown */
  char text[GM_FIT_REASON_SIZE]; /* one sentence for people */
} gm_fit_check_result;

/* Compares what was predicted for a place with what a load took there. `predicted` is a part of a placement
 * (gm_place_layers), and `margin_bytes` what was to stay free beside it. The row "overhead" has what is in no part: its
 * prediction is the rest of predicted->bytes, and its measurement is unaccounted_bytes. A total below the sum of the
 * measured parts means that something else was given back meanwhile: nothing is unaccounted then.
 *
 * Errors: INVALID_ARGUMENT: a pointer is NULL, gm does not know a struct_size, or predicted->bytes is below the sum of
 * its parts. */
GM_API gm_status gm_fit_check(const gm_fit_part *predicted, uint64_t margin_bytes, const gm_fit_taken *taken,
                              gm_fit_check_result *out, gm_error *err);

GM_END_DECLS

#endif
