/* The way of bytes through slots of a device's ring, from a device or the host to a device or the host. A piece is read
 * into a slot, and meanwhile the one before it is written. So the two ends work at a time. Thread-safe, but for the
 * bytes. */
#ifndef GM_CORE_STAGING_CARRY_H
#define GM_CORE_STAGING_CARRY_H

#include "core/staging/range.h"

typedef struct gm__carry_end {
  const gm__access *range; /* NULL: the bytes at `host` */
  unsigned char *host;
  gm_stream *stream; /* of the range's device; NULL: its calls wait */
} gm__carry_end;

typedef struct gm__carry {
  gm__carry_end to, from;
  uint64_t bytes;
  gm_device *lender; /* of the ring */
  bool patient;      /* waits for slots; else what has no page-locked one at once is left to the caller */
  const char *op;
  uint64_t done;         /* set by the call: bytes that arrived */
  uint64_t staged_bytes; /* so: host memory that it used at a time */
  bool pinned;           /* so: of which some is page-locked */
} gm__carry;

/* Returns when nothing is under way. Errors: those of the copies and, if `patient`, of the ring. */
gm_status gm__carry_run(gm__carry *carry, gm_error *err);

#endif
