/* A request, read and checked. Pure but for the pool's fixed properties. */
#ifndef GM_CORE_POOL_REQUEST_H
#define GM_CORE_POOL_REQUEST_H

#include "core/pool/node.h"

typedef struct gm__want {
  uint64_t bytes;   /* asked for */
  uint64_t exact;   /* the same in whole units of the device's alignment, or of the pool's */
  uint64_t rounded; /* what the pool would take */
  gm_stream *stream;
  uint32_t align, flags, usage, tag, size_class;
  gm_must_be must_be;
  bool insert;        /* waits go into the stream */
  bool beside_device; /* only memory that is not the device's own */
  bool managed;       /* only memory that migrates; never pooled */
  bool claimed;       /* of the quota of its tag, before it is handed out (quota.h) */
} gm__want;

/* INVALID_ARGUMENT or NOT_SUPPORTED (what a later version has; what this device cannot do, or the engine forbids),
 * naming the member. gm_alloc and gm_explain both judge a request here, so that neither knows more than the other. */
gm_status gm__want_read(const gm_pool *pool, const gm_request *request, gm__want *out, gm_error *err);

/* True when the memory of `node` can serve it, order aside. */
bool gm__want_fits(const gm_pool *pool, const gm__want *want, const gm__node *node);

#endif
