/* Statistics: one list makes the struct, JSON, command line and documentation (F34).
 *
 * Counts and current bytes are exact when no call is running and bounded in between; reading and writing take no lock.
 * Relations, tested:  requested <= in_use <= reserved;  x <= peak_x;  reserved == in_use + pooled;
 * peak_requested <= peak_in_use <= peak_reserved;  allocs == stream_hits + global_hits + misses;
 * active == allocs - frees;  local_cache_hits + global_cache_hits == stream_hits + global_hits. */
#ifndef GM_STATS_H
#define GM_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "gm/export.h"

GM_BEGIN_DECLS

#define GM_STATS_FIELDS(X)                                                                     \
  X(requested_bytes, "bytes callers asked for and hold")                                       \
  X(in_use_bytes, "bytes handed out, rounding included")                                       \
  X(reserved_bytes, "bytes taken from the backend and not given back")                         \
  X(pooled_bytes, "bytes kept for reuse: reserved_bytes - in_use_bytes")                       \
  X(reclaimable_bytes, "pooled bytes that no stream is known to use: a trim gives them back")  \
  X(peak_requested_bytes, "highest requested_bytes; of several threads an upper bound")        \
  X(peak_in_use_bytes, "highest in_use_bytes; of several threads an upper bound")              \
  X(peak_reserved_bytes, "highest reserved_bytes")                                             \
  X(allocs, "successful allocations")                                                          \
  X(frees, "blocks given back")                                                                \
  X(active, "blocks handed out now")                                                           \
  X(stream_hits, "allocations served by memory last freed on the same stream")                 \
  X(global_hits, "allocations served by memory last freed on another stream, or by the host")  \
  X(misses, "allocations that went to the backend")                                            \
  X(local_cache_hits, "hits in what the request's own stream keeps: blocks of that very size") \
  X(global_cache_hits, "hits in what is kept for all: holes, idle or other streams' blocks")   \
  X(failures, "allocations that found no memory")                                              \
  X(over_limit, "allocations refused by a limit of gm")                                        \
  X(waits, "allocations that came with, or inserted, a wait")                                  \
  X(fallbacks, "buffers served by other memory than was preferred")                            \
  X(fallback_bytes, "bytes of those that are alive")                                           \
  X(peer_copies, "copies to blocks of this pool from other devices")                           \
  X(peer_staged_copies, "of those, copies that went through host memory")                      \
  X(peer_staged_bytes, "bytes of those")                                                       \
  X(driver_allocs, "allocation calls to the backend, failed ones included")                    \
  X(driver_frees, "freeing calls to the backend")                                              \
  X(driver_ns, "nanoseconds spent in those calls")                                             \
  X(cache_grows, "times the caches were widened, because the pressure was low")                \
  X(cache_shrinks, "times they were narrowed, because it was high")                            \
  X(aged_bytes, "bytes given back because nobody had used them for cache.max_age")

typedef struct gm_stats {
  uint32_t struct_size;
#define X(name, text) uint64_t name;
  GM_STATS_FIELDS(X)
#undef X
} gm_stats;

/* What these four calls are given has its struct_size set by who made it; without one it counts as all zero. */

/* (stream_hits + global_hits) / allocs; 1.0 when there was no allocation. */
GM_API double gm_stats_hit_rate(const gm_stats *stats);

/* 1 - in_use / reserved: the share of what is reserved that nobody uses; 0 when nothing is reserved. */
GM_API double gm_stats_fragmentation(const gm_stats *stats);

/* The statistics as lines "name value\n" into `text` (terminated, cut to capacity). Returns the length needed without
 * the terminator. */
GM_API size_t gm_stats_format(const gm_stats *stats, char *text, size_t capacity);

/* Add every field of `other` (a sum over pools: its peaks are an upper bound). */
GM_API void gm_stats_add(gm_stats *stats, const gm_stats *other);

GM_END_DECLS

#endif
