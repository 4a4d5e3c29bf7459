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
  _Atomic uint64_t before_requested_bytes, before_in_use_bytes, before_reserved_bytes; /* of gm__stats_rearm */
} gm__stats;

static inline void gm__stats_count(_Atomic uint64_t *counter, uint64_t n) {
  atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline void gm__stats_uncount(_Atomic uint64_t *counter, uint64_t n) {
  atomic_fetch_sub_explicit(counter, n, memory_order_relaxed);
}

/* Adds to a current figure and raises its peak. */
void gm__stats_grow(_Atomic uint64_t *current, _Atomic uint64_t *peak, uint64_t n);

/* Begins a peak anew at the current figure, and returns what it was. `before` keeps the highest that it ever was, so
 * the peak of all times is the higher of both: gm__stats_peak. One thread at a time. */
uint64_t gm__stats_rearm(const _Atomic uint64_t *current, _Atomic uint64_t *peak, _Atomic uint64_t *before);

static inline uint64_t gm__stats_peak(const _Atomic uint64_t *peak, const _Atomic uint64_t *before) {
  const uint64_t now =
      atomic_load_explicit(peak, memory_order_acquire); /* first: a peak goes to `before` before it falls */
  const uint64_t highest = atomic_load_explicit(before, memory_order_relaxed);
  return now > highest ? now : highest;
}

/* Reads all fields as they were counted, struct_size too. */
void gm__stats_load(const gm__stats *stats, gm_stats *out);

/* Reads all fields, struct_size too, and adds `more` (NULL: nothing). Every relation of gm/stats.h is true, even while
 * other threads count. A field read between two steps of a call is bounded by its neighbour. */
void gm__stats_snapshot(gm__stats *stats, const gm_stats *more, gm_stats *out);

/* Like gm_stats_add, for two structs of gm's own. */
void gm__stats_add(gm_stats *stats, const gm_stats *other);

#endif
