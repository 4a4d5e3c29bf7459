/* The counters behind gm_stats: one atomic for each field. Lock-free and thread-safe. */
#ifndef GM_CORE_TRACK_STATS_H
#define GM_CORE_TRACK_STATS_H

#include <stdatomic.h>

#include "gm/stats.h"

/* A snapshot computes pooled_bytes, local_cache_hits, allocs and active. The other fields are what their owners made
 * of them. */
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

/* Adds to a current figure and raises its peak. */
void gm__stats_grow(_Atomic uint64_t *current, _Atomic uint64_t *peak, uint64_t n);

/* Reads all fields, struct_size too, and adds `more` (NULL: nothing). Every relation of gm/stats.h is true, even while
 * other threads count. A field read between two steps of a call is bounded by its neighbour. */
void gm__stats_snapshot(gm__stats *stats, const gm_stats *more, gm_stats *out);

/* Like gm_stats_add, for two structs of gm's own. */
void gm__stats_add(gm_stats *stats, const gm_stats *other);

#endif
