/* A request as a pool serves it: read, checked, and in whole units. */
#ifndef GM_CORE_PROVIDER_REQUEST_H
#define GM_CORE_PROVIDER_REQUEST_H

#include "core/device/type_wish.h"
#include "core/order/order.h"
#include "core/provider/allocation.h"
#include "core/provider/ladder.h"

typedef struct gm__provider gm__provider;

/* A chosen place in pooled memory: only compaction asks for one. */
typedef struct gm__target {
  uint64_t memory;  /* gm_block.memory; 0: any place will do */
  uint64_t address; /* aligned as the request asks */
  uint32_t left;    /* the number of the chunk that the hole follows */
} gm__target;

typedef struct gm__want {
  uint64_t bytes;   /* asked for */
  uint64_t exact;   /* `bytes` in whole units of the device's alignment, or of the pool's granule */
  uint64_t rounded; /* the bytes that the pool would like to take */
  gm_stream *stream;
  uint32_t align, flags, usage, tag, size_class;
  gm_must_be must_be;
  uint64_t deadline_ns; /* how long to wait for memory, from the call on */
  gm__type_wish wish;
  gm__target target;
  bool insert;        /* gm may put waits into the stream */
  bool beside_device; /* only memory that is not the device's own */
  bool managed;       /* only memory that migrates; never pooled */
  bool patient;       /* it waits, and has asked the evictors */
  bool counted;       /* the quota book has counted it for its tag already */
  gm__ladder *ladder; /* what was tried for it; NULL: nobody asks */
} gm__want;

/* The last request that a pool refused. */
typedef struct gm__refused {
  gm_error failure; /* GM_OK: none */
  gm__want want;    /* without its stream and its ladder; `exact` 0: it was a free */
  uint64_t stream;  /* id of the request's stream; 0: the host's order */
  gm__ladder ladder;
} gm__refused;

/* A block that is a driver allocation of exactly its bytes. */
static inline bool gm__want_is_dedicated(const gm__want *want) { return (want->flags & GM_DEDICATED) != 0; }

/* True when the allocation can serve the request, whatever streams use it. */
bool gm__want_fits(const gm__provider *provider, const gm__want *want, const gm__allocation *allocation);

/* Brings memory that is AWAY into the request's order, after a verdict other than READY. It puts a wait into the
 * stream, or *answer says what the caller has to do. False: that is not possible. Steps out of the order's lock. */
bool gm__want_order(gm__provider *provider, const gm__want *want, gm__order *order, gm__last_use *use, int slot,
                    gm__order_verdict verdict, gm_acquire *answer);

#endif
