/* The arenas of a pool: one for each thread, and a few for rare kinds of memory. They live as long as the pool. */
#ifndef GM_CORE_ARENA_ARENA_SET_H
#define GM_CORE_ARENA_ARENA_SET_H

#include "core/arena/quick_bound.h"
#include "core/base/inner.h"
#include "core/provider/provider.h"
#include "core/track/observers.h"

enum {
  GM__ARENA_SET_ARENAS = 128,
  GM__ARENA_SET_THREAD_ARENAS = 112, /* so many of them for threads; the rest for rare kinds of memory */
  GM__ARENA_SHIFT = 24               /* where the number of the arena begins in gm_block.number */
};

#define GM__ARENA_BLOCK UINT32_C(0x80000000) /* a bit of gm_block.number: the block is a chunk of an arena */

typedef struct gm__arena gm__arena;

typedef struct gm__arena_set {
  gm__quick_bound quick; /* first, because each free reads it */
  void *owner;           /* the pool that the set is part of */
  uint64_t serial;       /* unique in this process */
  gm__provider *provider;
  gm__observers *observers;
  gm__memory_kind main_kind; /* the kind that serves plain requests */
  bool guarded;              /* a guard follows each block: nothing is handed out inside the arena's lock */
  bool whole; /* each driver allocation is one block, never cut. Quick lists take all sizes. The bytes of a block beyond
                 its request, from 4 GiB on, count as asked for */
  bool closed; /* no request and no free takes the fast path */
  gm__arena *table[GM__ARENA_SET_ARENAS];
  _Atomic uint32_t count; /* grows. REQUIRES: provider lock */
} gm__arena_set;

/* Prepares the set. The provider is ready. `kind` becomes gm__arena_set.main_kind, `owner` gm__arena_set.owner. */
void gm__arena_set_init(gm__arena_set *set, gm__provider *provider, gm__observers *observers,
                        const gm__memory_kind *kind, void *owner);

/* Ends all arenas, when the pool ends. */
void gm__arenas_clear(gm__arena_set *set, gm_close_mode mode);

/* The arena for requests of that kind by the calling thread: the thread's own, one taken over from an ended thread, or
 * a new one. NULL: gm__arena_missing says why. REQUIRES: no lock. */
gm__arena *gm__arena_of(gm__arena_set *set, const gm__memory_kind *kind);

/* The arena for a kind of memory that the threads' arenas do not have: of that kind, or of one that serves as well.
 * Threads share it. The first one is the home thread of its lock, and after its end the next one that asks. REQUIRES:
 * no lock. */
gm__arena *gm__arena_beside(gm__arena_set *set, const gm__memory_kind *kind);

/* Notes which arena serves the request, so that the thread's next one with its wishes takes the fast path. `want`: the
 * request as it was read; it was served. REQUIRES: no lock. */
void gm__arena_learn(gm__arena_set *set, const gm_request *request, const gm__want *want);

/* The reason why a request found no arena. */
gm_status gm__arena_missing(const gm__arena_set *set, gm_error *err);

/* The arena with that number; NULL: there is none. Numbers begin at 0. */
gm__arena *gm__arena_at(const gm__arena_set *set, uint32_t number);

/* Walks over all arenas, each inside its lock. It leaves the lock of `arena` (NULL: the walk begins), enters that of
 * the next arena and returns it. NULL: the walk is over, and no lock is held. */
GM__INNER gm__arena *gm__arena_next(const gm__arena_set *set, gm__arena *arena);

/* The arena that the block names; NULL: the block is no chunk. */
static inline gm__arena *gm__arena_of_block(const gm__arena_set *set, const gm_block *block) {
  return block->number & GM__ARENA_BLOCK ? gm__arena_at(set, (block->number & ~GM__ARENA_BLOCK) >> GM__ARENA_SHIFT)
                                         : NULL;
}

/* Adds what the pool's arenas count to `out`. Takes no lock. */
void gm__arenas_add(const gm__arena_set *set, gm_stats *out);

/* Bytes that the pool keeps for reuse now: reserved, and not out as a block. Takes no lock. */
uint64_t gm__arenas_pooled(const gm__arena_set *set);

#endif
