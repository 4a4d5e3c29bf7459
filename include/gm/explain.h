/* Why a pool refused a request, and what it has. gm/pool.h includes this header. */
#ifndef GM_EXPLAIN_H
#define GM_EXPLAIN_H

#include "gm/request.h"
#include "gm/status.h"

GM_BEGIN_DECLS

typedef struct gm_pool gm_pool; /* thread-safe; it borrows its device, and keeps it from closing */

/* What a pool and its device have now, and why the pool last refused a request. The caller owns the report. */
typedef struct gm_explanation {
  uint32_t struct_size;
  gm_status status;       /* why gm_alloc answers INVALID to the request: INVALID_ARGUMENT, NOT_SUPPORTED; or OK */
  uint64_t asked_bytes;   /* bytes that the request asks for */
  uint64_t rounded_bytes; /* bytes that the pool would take; 0: `status` is not OK */
  uint64_t largest_pooled_bytes; /* largest free block of the pool */
  uint64_t pooled_bytes;
  uint64_t in_use_bytes;
  uint64_t limit_bytes;       /* gm's own bound on reserved bytes */
  uint64_t device_free_bytes; /* GM_UNKNOWN_BYTES if unknown */
  uint64_t used_by_others_bytes;
  uint64_t max_alloc_bytes;    /* the driver's bound on one allocation; 0: no known bound */
  uint64_t last_failure_bytes; /* bytes that the refused request asked for */
  gm_error last_failure;       /* why the pool refused it, with the figures of that moment and what would have helped.
                                  Also why gm_free refused an imported block. GM_OK: the pool has refused nothing */
  char text[512];              /* the whole report in a few sentences */
} gm_explanation;

/* Tells whether a request is valid, what the pool and its device have now, and why the pool last refused a valid
 * request. Call it after gm_alloc refused. It promises nothing about the next call of gm_alloc. It allocates nothing
 * and follows no stream.
 *
 * GM_OK: `out` is filled, also where the request is not valid. INVALID_ARGUMENT: `pool` or `out` is NULL, or gm does
 * not know a struct_size. FORKED. */
GM_API gm_status gm_explain(gm_pool *pool, const gm_request *request, gm_explanation *out, gm_error *err);

GM_END_DECLS

#endif
