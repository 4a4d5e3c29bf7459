/* Statistics. One list makes the struct, the JSON, the command line and the documentation.
 *
 * Counts and current bytes are exact when no call is running, and bounded in between. Reading and writing take no lock.
 * Tests hold these relations:
 * - requested <= in_use <= reserved, and x <= peak_x for each of them;
 * - reserved == in_use + pooled;
 * - peak_requested <= peak_in_use <= peak_reserved;
 * - allocs == stream_hits + global_hits + misses;
 * - active == allocs - frees;
 * - local_cache_hits + global_cache_hits == stream_hits + global_hits;
 * - scattered_bytes <= hole_bytes <= pooled_bytes, and largest_hole_bytes <= hole_bytes, where they are
 *   known (gm_stats_fragmentation). */
#ifndef GM_STATS_H
#define GM_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "gm/export.h"

GM_BEGIN_DECLS

#define GM_STATS_FIELDS(X)                                                                             \
  X(requested_bytes, "bytes that callers asked for and hold")                                          \
  X(in_use_bytes, "bytes handed out, rounding included")                                               \
  X(reserved_bytes, "bytes taken from the backend and not given back")                                 \
  X(pooled_bytes, "bytes kept for reuse: reserved_bytes - in_use_bytes")                               \
  X(reclaimable_bytes, "pooled bytes that no stream is known to use: a trim gives them back")          \
  X(peak_requested_bytes, "highest requested_bytes; of several threads an upper bound")                \
  X(peak_in_use_bytes, "highest in_use_bytes; of several threads an upper bound")                      \
  X(peak_reserved_bytes, "highest reserved_bytes")                                                     \
  X(allocs, "successful allocations")                                                                  \
  X(frees, "blocks given back")                                                                        \
  X(active, "blocks handed out now")                                                                   \
  X(stream_hits, "allocations served by memory last freed on the same stream")                         \
  X(global_hits, "allocations served by memory last freed on another stream, or by the host")          \
  X(misses, "allocations that went to the backend")                                                    \
  X(local_cache_hits, "hits in the quick lists of the request's own stream: blocks of that very size") \
  X(global_cache_hits, "hits in memory kept for all: free chunks, idle blocks, other streams' blocks") \
  X(failures, "allocations that found no memory")                                                      \
  X(over_limit, "allocations refused by a limit of gm")                                                \
  X(waits, "allocations that came with, or inserted, a wait")                                          \
  X(fallbacks, "buffers in other memory than the caller preferred")                                    \
  X(fallback_bytes, "bytes of the live buffers among them")                                            \
  X(peer_copies, "copies to blocks of this pool from other devices")                                   \
  X(peer_staged_copies, "peer copies that went through host memory")                                   \
  X(peer_staged_bytes, "bytes of the staged peer copies")                                              \
  X(driver_allocs, "allocation calls to the backend, failed ones included")                            \
  X(driver_frees, "freeing calls to the backend")                                                      \
  X(driver_ns, "nanoseconds spent in driver_allocs and driver_frees")                                  \
  X(aged_bytes, "bytes given back because nobody had used them for cache.max_age")                     \
  X(evictions, "calls of evictors that freed something")                                               \
  X(evicted_bytes, "bytes that evictors freed, by their own word")                                     \
  X(hole_bytes, "free bytes beside blocks, which no trim gives back (gm/fragmentation.h)")             \
  X(scattered_bytes, "hole_bytes without the largest hole of each thread and kind of memory")          \
  X(largest_hole_bytes, "bytes of the largest hole; a sum of pools has the largest of them")

typedef struct gm_stats {
  uint32_t struct_size;
#define X(name, text) uint64_t name;
  GM_STATS_FIELDS(X)
#undef X
} gm_stats;

/* For the four calls below the caller sets struct_size of each gm_stats. One without it counts as all zero. The calls
 * are thread-safe. */

/* Returns the share of allocations that the pool served from memory it kept: (stream_hits + global_hits) / allocs. It
 * is 1.0 when there was no allocation. */
GM_API double gm_stats_hit_rate(const gm_stats *stats);

/* Returns how much of the free memory beside blocks lies outside of the largest piece: scattered_bytes / hole_bytes.
 * For a pool that one thread uses it is 1 - largest / all, the usual measure of external fragmentation. It is 0 when
 * there are no holes. Idle memory, which a trim gives back, is no fragmentation. -1: nobody knows.
 *
 * The figures are those of the last gm_pool_fragmentation of the pool. Before the first one the three fields are
 * GM_UNKNOWN_BYTES. */
GM_API double gm_stats_fragmentation(const gm_stats *stats);

/* Writes the statistics into `text` as lines of the form "name value". The text is terminated, and cut to `capacity`.
 * Returns the length needed, without the terminator. */
GM_API size_t gm_stats_format(const gm_stats *stats, char *text, size_t capacity);

/* Adds every field of `other`, but takes the higher largest_hole_bytes. Peaks in such a sum over pools are an upper
 * bound. */
GM_API void gm_stats_add(gm_stats *stats, const gm_stats *other);

GM_END_DECLS

#endif
