/* Inside of a pool, for its own files and the layers above. */
#ifndef GM_CORE_POOL_POOL_H
#define GM_CORE_POOL_POOL_H

#include "core/device/device.h"
#include "core/pool/bucket.h"
#include "core/pool/node.h"
#include "core/pool/order.h"
#include "core/pool/pointer.h"
#include "core/pool/segment.h"
#include "core/track/stats.h"
#include "gm/pool.h"
#include "gm/tracker.h"

struct gm_pool {
  gm__object head;
  gm_device *device;
  gm_pool *next, *prev; /* of all in the context: totals.c */
  uint64_t id;
  char name[48];
  gm_strategy strategy; /* never AUTO */
  bool checked;
  bool has_upstream;
  gm_upstream upstream;
  gm_tracker *tracker; /* NULL: nothing is tracked */

  _Atomic uint64_t max_bytes; /* cap on claimed bytes; UINT64_MAX: none */
  _Atomic uint64_t claimed;   /* reserved, or about to be: never above the cap that was in force when it grew */
  _Atomic uint64_t recorded;  /* of that: held beside the pool (gm_pool_record_allocation) */
  _Atomic uint32_t guests;    /* buffers and scopes that know the pool */
  _Atomic int pressure;       /* gm_pressure_level said last */
  gm__stats stats;

  gm__mutex lock; /* all below */
  gm__node_table nodes;
  gm__buckets buckets;   /* BUCKET */
  gm__segments segments; /* BEST_FIT */
  gm__pointers pointers;
  gm__order order;
  gm__stream_listener listener;
  uint64_t live;   /* blocks out */
  uint64_t pooled; /* bytes kept for reuse */
  gm_error last_failure;
};

/* GM_OK, INVALID_ARGUMENT for NULL, FORKED, filling `err`. */
gm_status gm__pool_check(const gm_pool *pool, const char *op, gm_error *err);
/* Not NULL and, in debug builds, not destroyed: what calls without a gm_error ask. */
static inline bool gm__pool_is(const gm_pool *pool) { return pool && gm__object_is(&pool->head, GM__KIND_POOL); }

static inline bool gm__pool_forked(const gm_pool *pool) { return gm__context_forked(pool->device->ctx); }

/* Take `bytes` out of what the cap allows, or refuse with OVER_LIMIT; never above it, whatever other threads do. */
gm_status gm__pool_claim(gm_pool *pool, uint64_t bytes, gm_error *err);
void gm__pool_unclaim(gm_pool *pool, uint64_t bytes);

/* gm's own bound on reserved bytes now: the cap, and what the device's figures allow. Reads the figures: not for the
 * hot path. UINT64_MAX: none. */
uint64_t gm__pool_limit(gm_pool *pool);

/* The live node that `block` names, or NULL. The pool's lock is held. */
gm__node *gm__pool_find(const gm_pool *pool, const gm_block *block);

/* gm_alloc for memory that is not the device's own (pinned host memory). EXHAUSTED where it has no such. */
gm_acquire gm__pool_alloc_beside(gm_pool *pool, const gm_request *request, gm_block *out);

/* Where the memory of a block is: on the device, or page-locked host memory beside it. */
gm_location gm__pool_location(const gm_pool *pool, const gm_memory *memory);

/* The entry of a live block in the pool's tracker; 0: none. */
uint64_t gm__pool_track_id(gm_pool *pool, const gm_block *block);

/* Into and out of the context's list of living pools. */
void gm__pool_enlist(gm_pool *pool);
void gm__pool_delist(gm_pool *pool);

void gm__pool_note_failure(gm_pool *pool, const gm_error *failure);

/* Pooled memory: put a node there, take it out, look whether streams are done with it (true: idle). The last two are
 * not for parts of segments. With the lock. */
void gm__pool_put(gm_pool *pool, gm__node *node);
void gm__pool_pull(gm_pool *pool, gm__node *node);
bool gm__pool_settle(gm_pool *pool, gm__node *node);

#endif
