/* Inside of a pool, for its own files and the layers above. */
#ifndef GM_CORE_POOL_POOL_H
#define GM_CORE_POOL_POOL_H

#include "core/device/device.h"
#include "core/pool/bucket.h"
#include "core/pool/cache.h"
#include "core/pool/guard.h"
#include "core/pool/node.h"
#include "core/pool/order.h"
#include "core/pool/pages.h"
#include "core/pool/pointer.h"
#include "core/pool/segment.h"
#include "core/track/marks.h"
#include "core/track/recorder.h"
#include "core/track/stats.h"
#include "core/track/tracker.h"
#include "gm/pool.h"

enum {
  GM__POOL_ARENAS = 128,
  GM__POOL_THREAD_ARENAS = 112 /* of that: for threads; the rest for rare kinds of memory */
};

struct gm_pool {
  gm__object head;
  const _Atomic uint64_t *generation_at; /* holds `generation` until the process is another one */
  uint64_t generation;
  uint64_t fast_key; /* of the calling thread's arena: `serial`, or nobody's where the fast way does not do */
  _Atomic uint32_t quick_blocks; /* a lane keeps at most so many in its quick lists: of `cache` */
  gm_device *device;
  gm_pool *next, *prev; /* of all in the context: totals.c */
  uint32_t pins;        /* other pools that trim this one; inside the context's lock */
  uint64_t id;
  uint64_t serial; /* never used again in this process */
  char name[48];
  gm_strategy strategy; /* never AUTO */
  bool checked;
  bool has_upstream;
  gm_share_kind share; /* what its memory is made for */
  gm_upstream upstream;
  _Atomic(gm_tracker *) tracker; /* NULL: nothing has ever been tracked; else there until the pool ends */
  _Atomic uint32_t track_turns;  /* how often tracking began or ended: odd while it is on. With gate and lock */
  gm__track_source track_source; /* what the tracker asks */
  gm__recorder *recorder;        /* NULL: it is not recorded. With gate and lock */
  gm__mutex gate;                /* whoever changes what is watched, before all other locks */
  gm__guard *guard;              /* NULL: no debugging aids */
  const gm__marks *marks;        /* NULL: no profiler is told */
  /* NULL: no tag has ever had one. Changes once, with gate and lock. */
  _Atomic(struct gm__quotas *) quotas;

  _Atomic uint64_t max_bytes; /* cap on claimed bytes; UINT64_MAX: none */
  _Atomic uint64_t claimed;   /* reserved, or about to be: never above the cap that was in force when it grew */
  _Atomic uint64_t recorded;  /* of that: held beside the pool (gm_pool_record_allocation) */
  _Atomic uint32_t guests;    /* buffers and scopes that know the pool */
  _Atomic int pressure;       /* gm_pressure_level said last */
  gm__stats stats;
  gm__cache cache;

  gm__mutex lock; /* all below */
  gm__node_table nodes;
  gm__node_list marked; /* those out of the buckets that streams may use besides their owner's, by GM__BY_USE */
  gm__buckets buckets;  /* BUCKET */
  gm__pointers pointers;
  gm__map spanned;        /* blocks of several memories: node and check to the record */
  uint64_t spanned_turns; /* how many there have been */
  gm__order order;
  gm__stream_listener listener;
  uint64_t live; /* driver allocations that are out as blocks */
  gm_error last_failure;

  gm__segment_rules rules;   /* BEST_FIT */
  gm__pages pages;           /* the same, where the device maps memory in pieces */
  gm__memory_kind main_kind; /* what plain requests need */
  gm__arena *arenas[GM__POOL_ARENAS];
  _Atomic uint32_t arena_count; /* grows, under the lock */
};

/* GM_OK, INVALID_ARGUMENT for NULL, FORKED, filling `err`. */
gm_status gm__pool_check(const gm_pool *pool, const char *op, gm_error *err);
/* Not NULL and, in debug builds, not destroyed: what calls without a gm_error ask. */
static inline bool gm__pool_is(const gm_pool *pool) { return pool && gm__object_is(&pool->head, GM__KIND_POOL); }

static inline bool gm__pool_tracks(const gm_pool *pool) {
  return atomic_load_explicit(&pool->track_turns, memory_order_seq_cst) & 1;
}

/* Its owner has the block still: a guard may hold one back that was freed. With the lock. */
static inline bool gm__node_is_out(const gm__node *node) {
  return node->state == GM__NODE_LIVE && !(node->rare.guard && gm__guard_freed(node->rare.guard));
}

/* Where blocks that are driver allocations of their own are counted; NULL: nowhere (yet). With the lock. */
static inline struct gm__quotas *gm__pool_quotas(const gm_pool *pool) {
  return atomic_load_explicit(&pool->quotas, memory_order_relaxed);
}

static inline bool gm__pool_forked(const gm_pool *pool) { return gm__context_forked(pool->device->ctx); }

/* Take `bytes` out of what the cap allows, or refuse `op` with OVER_LIMIT; never above it, whatever other threads do.
 */
gm_status gm__pool_claim(gm_pool *pool, uint64_t bytes, const char *op, gm_error *err);
void gm__pool_unclaim(gm_pool *pool, uint64_t bytes);

/* gm's own bound on reserved bytes now: the cap, and what the device's figures allow. Reads the figures: not for the
 * hot path. UINT64_MAX: none. */
uint64_t gm__pool_limit(gm_pool *pool);

/* gm_free without a look at guards: of the block as the pool knows it. */
gm_status gm__pool_free(gm_pool *pool, const gm_block *block, gm_stream *stream);

/* Its owner loses the block, as the pool knows it, and nobody gets it. */
void gm__pool_quarantine(gm_pool *pool, const gm_block *block);

/* gm_alloc for memory that is not the device's own (pinned host memory). EXHAUSTED where it has no such. */
gm_acquire gm__pool_alloc_beside(gm_pool *pool, const gm_request *request, gm_block *out);

/* A block of memory that migrates, on a device that has such: counted and limited as all are, but never pooled, because
 * advice and place would stick to it; gm_free gives it back at once. */
gm_status gm__pool_alloc_managed(gm_pool *pool, const gm_request *request, gm_block *out, gm_error *err);

/* A block of memory that is there already: [offset, offset + bytes) of `memory`, which is marked as wrapped. `opened`:
 * what gm_free closes, NULL: nothing. On failure the memory stays the caller's. OVER_LIMIT, OUT_OF_HOST_MEMORY,
 * INVALID_ARGUMENT. */
gm_status gm__pool_adopt(gm_pool *pool, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                         struct gm__opened *opened, gm_block *out, gm_error *err);

/* Where the memory of a block is: on the device, or page-locked host memory beside it. */
gm_location gm__pool_location(const gm_pool *pool, const gm_memory *memory);

/* Why the pool refused, as a failure of `op`: its own report, or the answer where the report would find memory by now.
 */
gm_status gm__explain_refusal(gm_pool *pool, const gm_request *request, gm_acquire answer, const char *op,
                              gm_error *err);

/* Blocks that callers have, for who is about to end the pool: waits for the work of guarded ones that were freed (up to
 * a second each), which count until then. 0 in a forked child. */
uint64_t gm__pool_live(gm_pool *pool);

/* gm_pool_stats of a pool that is one. */
gm_stats gm__pool_stats(gm_pool *pool);

/* Into and out of the context's list of living pools. False: another pool that trims this one stays too long. */
void gm__pool_enlist(gm_pool *pool);
bool gm__pool_delist(gm_pool *pool);

void gm__pool_note_failure(gm_pool *pool, const gm_error *failure);

/* Bytes kept for reuse now. */
uint64_t gm__pool_pooled(gm_pool *pool);

/* A node becomes pooled, after work of the stream in that slot. With the lock. */
void gm__pool_free_node(gm_pool *pool, gm__node *node, int slot);

/* Pooled memory: take a node out, look whether streams are done with it (true: idle). With the lock. */
void gm__pool_pull(gm_pool *pool, gm__node *node);
bool gm__pool_settle(gm_pool *pool, gm__node *node);

/* The same for a ring, as far as its streams are known to be: each node costs this once, not at each look. Who is the
 * oldest then; NULL: all are idle. */
gm__node *gm__pool_settle_ring(gm_pool *pool, gm__node *oldest);

/* The node, which is not pooled, has a mark now that a stream which goes must find; or it is on its way back. With the
 * lock. */
void gm__pool_mark(gm_pool *pool, gm__node *node);
void gm__pool_unmark(gm_pool *pool, gm__node *node);

/* Prepare `listener`. */
void gm__pool_listen(gm_pool *pool);

/* The stream has done all its work, and goes. With the lock. */
void gm__pool_forget_stream(gm_pool *pool, const gm_stream *stream);

#endif
