#include "core/track/stats.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "gm/memory_info.h"

/* Invariants: counters are relaxed atomics. Whoever does the deed writes them, and no counter guards anything. A
 * snapshot takes no lock, and reads them one by one. So it repairs what two moments made inconsistent. */

static void stats_raise(_Atomic uint64_t *peak, uint64_t now) {
  uint64_t highest = atomic_load_explicit(peak, memory_order_relaxed);
  while (now > highest) {
    if (atomic_compare_exchange_weak_explicit(peak, &highest, now, memory_order_relaxed, memory_order_relaxed)) return;
  }
}

void gm__stats_grow(_Atomic uint64_t *current, _Atomic uint64_t *peak, uint64_t n) {
  stats_raise(peak, atomic_fetch_add_explicit(current, n, memory_order_relaxed) + n);
}

/* A thread that raises the figure meanwhile may have seen the old peak. So the figure is read once more. */
uint64_t gm__stats_rearm(const _Atomic uint64_t *current, _Atomic uint64_t *peak, _Atomic uint64_t *before) {
  const uint64_t now = atomic_load_explicit(current, memory_order_relaxed);
  uint64_t was = atomic_load_explicit(peak, memory_order_relaxed);
  if (was <= now) return now;
  stats_raise(before, was);
  was = atomic_exchange_explicit(peak, now, memory_order_acq_rel);
  stats_raise(before, was);
  stats_raise(peak, atomic_load_explicit(current, memory_order_relaxed));
  return was;
}

static void stats_at_most(uint64_t *value, uint64_t bound) {
  if (*value > bound) *value = bound;
}

static void stats_at_least(uint64_t *value, uint64_t bound) {
  if (*value < bound) *value = bound;
}

void gm__stats_load(const gm__stats *stats, gm_stats *out) {
  out->struct_size = sizeof *out;
#define X(name, text) out->name = atomic_load_explicit(&stats->name, memory_order_relaxed);
  GM_STATS_FIELDS(X)
#undef X
}

void gm__stats_snapshot(gm__stats *stats, const gm_stats *more, gm_stats *out) {
  gm__stats_load(stats, out);
  out->peak_requested_bytes = gm__stats_peak(&stats->peak_requested_bytes, &stats->before_requested_bytes);
  out->peak_in_use_bytes = gm__stats_peak(&stats->peak_in_use_bytes, &stats->before_in_use_bytes);
  out->peak_reserved_bytes = gm__stats_peak(&stats->peak_reserved_bytes, &stats->before_reserved_bytes);
  if (more) gm__stats_add(out, more);
  stats_at_most(&out->in_use_bytes, out->reserved_bytes);
  stats_at_most(&out->requested_bytes, out->in_use_bytes);
  stats_at_most(&out->peak_in_use_bytes, out->peak_reserved_bytes); /* of several arenas: a sum of peaks */
  stats_at_most(&out->peak_requested_bytes, out->peak_in_use_bytes);
  stats_at_least(&out->peak_requested_bytes, out->requested_bytes);
  stats_at_least(&out->peak_in_use_bytes, out->in_use_bytes);
  stats_at_least(&out->peak_reserved_bytes, out->reserved_bytes);
  out->pooled_bytes = out->reserved_bytes - out->in_use_bytes;
  stats_at_most(&out->reclaimable_bytes, out->pooled_bytes);
  stats_at_most(&out->hole_bytes, out->pooled_bytes); /* of the last look: blocks may have taken them since */
  stats_at_most(&out->scattered_bytes, out->hole_bytes);
  stats_at_most(&out->largest_hole_bytes, out->hole_bytes);
  stats_at_most(&out->global_cache_hits, out->stream_hits + out->global_hits);
  out->local_cache_hits = out->stream_hits + out->global_hits - out->global_cache_hits;
  out->allocs = out->stream_hits + out->global_hits + out->misses;
  stats_at_most(&out->frees, out->allocs);
  out->active = out->allocs - out->frees;
}

/* The caller's statistics in gm's own size; all zero where there are none. */
static gm_stats stats_read(const gm_stats *theirs) {
  const gm_stats none = {.struct_size = sizeof none};
  gm_stats stats;
  return gm__sized_in(&stats, sizeof stats, theirs, "gm_stats", "stats", NULL) ? none : stats;
}

double gm_stats_hit_rate(const gm_stats *stats) {
  const gm_stats had = stats_read(stats);
  return had.allocs ? (double)(had.stream_hits + had.global_hits) / (double)had.allocs : 1.0;
}

double gm_stats_fragmentation(const gm_stats *stats) {
  const gm_stats had = stats_read(stats);
  if (stats && stats->struct_size <= offsetof(gm_stats, hole_bytes)) return -1; /* of a program from before holes */
  if (had.hole_bytes == GM_UNKNOWN_BYTES) return -1;
  return had.hole_bytes ? (double)had.scattered_bytes / (double)had.hole_bytes : 0.0;
}

static size_t stats_line(char *text, size_t capacity, size_t at, const char *name, uint64_t value) {
  size_t room = at < capacity ? capacity - at : 0;
  char *to = room ? text + at : NULL;
  const bool known = value != GM_UNKNOWN_BYTES;
  int length = known ? snprintf(to, room, "%s %" PRIu64 "\n", name, value) : snprintf(to, room, "%s unknown\n", name);
  return at + (size_t)length;
}

size_t gm_stats_format(const gm_stats *stats, char *text, size_t capacity) {
  if (!text) capacity = 0;
  if (capacity) text[0] = 0;
  if (!stats) return 0;
  const gm_stats had = stats_read(stats);
  size_t at = 0;
#define X(name, meaning) at = stats_line(text, capacity, at, #name, had.name);
  GM_STATS_FIELDS(X)
#undef X
  return at;
}

void gm__stats_add(gm_stats *stats, const gm_stats *other) {
  const uint64_t largest = gm__max(stats->largest_hole_bytes, other->largest_hole_bytes);
#define X(name, text) stats->name = stats->name > UINT64_MAX - other->name ? UINT64_MAX : stats->name + other->name;
  GM_STATS_FIELDS(X)
#undef X
  stats->largest_hole_bytes = largest;
}

void gm_stats_add(gm_stats *stats, const gm_stats *other) {
  gm_stats sum = stats_read(stats);
  const gm_stats more = stats_read(other);
  if (gm__sized_check(stats, sizeof *stats, "gm_stats_add", "stats", NULL)) return;
  gm__stats_add(&sum, &more);
  gm__sized_out(stats, &sum, sizeof sum);
}
