/* A copy between two devices through host memory of gm's own. */
#ifndef GM_CORE_TRANSFER_STAGING_H
#define GM_CORE_TRANSFER_STAGING_H

#include "core/pool/access.h"

typedef struct gm__staged {
  uint64_t staging_bytes;
  bool pinned;
} gm__staged;

/* Returns when the bytes have arrived. Written in the order of `stream`, which is the receiving device's (NULL: gm's
 * own), after its earlier work, for which it waits. `dst` and `src` have the same number of bytes. */
gm_status gm__staging_copy(const gm__access *dst, const gm__access *src, gm_stream *stream, gm__staged *out,
                           const char *op, gm_error *err);

#endif
