/* A pool: a heap with a name, a guard, quotas, and blocks of several memories. Only this floor makes blocks. */
#ifndef GM_CORE_POOL_POOL_H
#define GM_CORE_POOL_POOL_H

#include "core/base/inner.h"
#include "core/guard/guard.h"
#include "core/heap/heap.h"
#include "gm/evictor.h"

/* The buffers of a pool, for the floor above that makes them (core/buffer/hold.c). */
typedef struct gm__pool_buffers {
  gm__mutex lock;   /* of all members here, and of what they say about buffers */
  gm__cond changed; /* a buffer was moved */
  struct gm_buffer *first;
  struct gm_buffer *layout;             /* the relocatable ones (core/buffer/layout.h) */
  struct gm__buffer_queues *queues;     /* those that may leave the device or come back; NULL: there never was one */
  void (*forget)(struct gm_pool *pool); /* gives back queues and driver objects; NULL: it had no buffer that needs it */
  bool compacting;                      /* one thread at a time */
  _Atomic bool compacts;                /* gm_context_poll compacts, within the next two */
  uint64_t compact_bytes, compact_ns;
  uint64_t compact_memory, compact_address; /* where the next compaction goes on: an allocation, and an address */
  _Atomic bool promotes;                    /* gm_context_poll promotes, as the next two say */
  uint64_t promote_bytes, promote_wait_ns;
  gm_evictor *rung; /* compaction before a refusal; NULL: the pool had no relocatable buffer yet */
} gm__pool_buffers;

/* The idle policy of a pool, for the floor above (core/buffer/idle.c). Under the gate. */
typedef struct gm__pool_idle {
  _Atomic bool on;
  int sleep; /* gm_idle_sleep */
  uint64_t trim_ns, sleep_ns;
  uint64_t uses, touch; /* what the last look found */
  uint64_t wakes;
  uint64_t trim_at, sleep_at; /* on gm's clock, if nobody uses the pool until then; UINT64_MAX: not */
} gm__pool_idle;

struct gm_pool {
  gm__object head;
  const _Atomic uint64_t *generation_at; /* holds `generation` until the process forks */
  uint64_t generation;
  uint64_t fast_key;    /* heap.arenas.serial: finds the calling thread's arena */
  gm_device *device;    /* NULL: the pool was ended by force */
  gm_pool *next, *prev; /* the context's list of pools: core/manage/stats.c */
  gm__heap heap;
  gm__guard *guard;              /* NULL: no debugging aids */
  gm__track_source track_source; /* what the tracker calls */
  gm__stream_listener listener;
  gm__mutex gate; /* locked before all others by a thread that changes the observers */
  gm__pool_buffers buffers;
  gm__pool_idle idle;
  _Atomic uint32_t guests; /* buffers, scopes, caches, reservations, watches */
  _Atomic int pressure;    /* what gm_pressure_level said last */
  _Atomic bool looked;     /* gm_pool_fragmentation has counted the holes that the statistics tell */
  gm__map spans;         /* under the provider lock: blocks of several memories, from number and check to the record */
  uint64_t spans_turns;  /* how many such blocks there have been */
  struct gm__perf *perf; /* under the provider lock: open performance scopes; NULL: it never had one */
  gm_context *ctx;       /* also after a forced end */
};

/* Counts a wake as a use of the pool. It waits for a sleep that the idle policy has begun. */
static inline void gm__pool_note_wake(gm_pool *pool) {
  if (!atomic_load(&pool->idle.on)) return;
  gm__mutex_lock(&pool->gate);
  pool->idle.wakes++;
  gm__mutex_unlock(&pool->gate);
}

/* The pool that the arenas belong to. */
static inline gm_pool *gm__pool_of(const gm__arena_set *arenas) { return arenas->owner; }

/* INVALID_ARGUMENT for NULL or a destroyed pool, FORKED, or GM_OK. Fills `err`. */
GM__INNER gm_status gm__pool_alive(const gm_pool *pool, const char *op, gm_error *err);

/* True for a pool that is not NULL and, in debug builds, not destroyed. The fast path asks this. A pool that was ended
 * by force has no arena there. */
static inline bool gm__pool_is(const gm_pool *pool) { return pool && gm__object_is(&pool->head, GM__KIND_POOL); }

/* Like gm__pool_is, and false in every build for a pool that was ended by force. Calls without a gm_error ask this. */
static inline bool gm__pool_lives(const gm_pool *pool) { return pool && pool->head.kind == (uint32_t)GM__KIND_POOL; }

/* `pool` may have been ended by force. */
static inline bool gm__pool_forked(const gm_pool *pool) { return gm__context_forked(pool->ctx); }

#endif
