/* Counters behind gm_stats: one atomic for each field. Lock-free; every function is thread-safe. */
#ifndef GM_CORE_TRACK_STATS_H
#define GM_CORE_TRACK_STATS_H

#include <stdatomic.h>

#include "gm/stats.h"

/* pooled_bytes, local_cache_hits, allocs and active are not kept but computed in a snapshot; the others are what their
 * owner made of them. */
typedef struct gm__stats {
#define X(name, text) _Atomic uint64_t name;
  GM_STATS_FIELDS(X)
#undef X
} gm__stats;

static inline void gm__stats_count(_Atomic uint64_t *counter, uint64_t n) {
  atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline void gm__stats_uncount(_Atomic uint64_t *counter, uint64_t n) {
  atomic_fetch_sub_explicit(counter, n, memory_order_relaxed);
}

/* Add to a current figure and raise its peak. */
void gm__stats_grow(_Atomic uint64_t *current, _Atomic uint64_t *peak, uint64_t n);

/* All fields, struct_size too, with `more` (NULL: nothing) added, with every relation of gm/stats.h true even while
 * others count: what was read between two steps of a call is bounded by its neighbour. */
void gm__stats_snapshot(gm__stats *stats, const gm_stats *more, gm_stats *out);

/* gm_stats_add of two that are gm's own. */
void gm__stats_add(gm_stats *stats, const gm_stats *other);

#endif
