/* A tracker knows who holds what: of a pool that was created with `track`, or of memory that gm did not allocate
 * (F26, F33, F74). Thread-safe. */
#ifndef GM_TRACKER_H
#define GM_TRACKER_H

#include "gm/context.h"

GM_BEGIN_DECLS

typedef struct gm_tracker gm_tracker;

typedef enum gm_location { GM_LOCATION_DEVICE = 0, GM_LOCATION_PINNED = 1, GM_LOCATION_HOST = 2 } gm_location;

typedef struct gm_track_entry {
  uint64_t id;      /* unique in the tracker, rising among the blocks of one thread, never 0 */
  uint64_t address; /* 0: none */
  uint64_t bytes;
  uint64_t elements; /* 0: not said */
  uint64_t born_ns;  /* gm's monotonic clock as of its last tick: up to 10 ms early, 4 ms on most systems */
  uint64_t mark;     /* number of gm_tracker_mark calls before it was born */
  uint64_t pool;     /* id of the pool, 0: none */
  uint64_t stream;   /* id of the stream, 0: none */
  uint32_t tag;
  gm_location location;
  uint64_t reserved[2]; /* 0 */
} gm_track_entry;

typedef struct gm_tag_total {
  uint32_t tag;
  uint64_t bytes, peak_bytes, count;
  uint64_t reserved[1]; /* 0 */
} gm_tag_total;

/* An empty tracker, for memory of any origin; a pool that tracks has its own (gm_pool_tracker). INVALID_ARGUMENT: an
 * argument is NULL; OUT_OF_HOST_MEMORY; FORKED. The caller destroys *out. */
GM_API gm_status gm_tracker_create(gm_context *ctx, gm_tracker **out, gm_error *err);
GM_API void gm_tracker_destroy(gm_tracker *tracker); /* entries that are left are forgotten. NULL is fine. */

/* Record one; `id`, `born_ns` and `mark` of the entry are set by the tracker, the id is returned. 0: no host memory,
 * or a total past 2^64, and nothing recorded. */
GM_API uint64_t gm_tracker_track(gm_tracker *tracker, const gm_track_entry *entry);

/* NOT_FOUND: never tracked, or untracked before. */
GM_API gm_status gm_tracker_untrack(gm_tracker *tracker, uint64_t id);

/* For a pool's tracker these calls never block allocating threads. The peak of a pool that several threads allocate
 * from is the sum of theirs, never less than it was; the same is true of a tag's. */
GM_API uint64_t gm_tracker_count(gm_tracker *tracker);
GM_API uint64_t gm_tracker_total_bytes(gm_tracker *tracker);
GM_API uint64_t gm_tracker_peak_bytes(gm_tracker *tracker);

/* A new epoch. Returns its number, from 1. */
GM_API uint64_t gm_tracker_mark(gm_tracker *tracker);

/* Entries at least `age_ns` old (as far as `born_ns` tells), oldest first, by id among those of one tick: writes at
 * most `capacity`, returns how many there are. */
GM_API size_t gm_tracker_find_old(gm_tracker *tracker, uint64_t age_ns, gm_track_entry *entries, size_t capacity);

/* Entries alive that were born before mark `mark` and after mark `since`: what a step left behind. */
GM_API size_t gm_tracker_find_between(gm_tracker *tracker, uint64_t since, uint64_t mark, gm_track_entry *entries,
                                      size_t capacity);

/* Totals by tag, largest first: writes at most `capacity`, returns how many there are. A tag for whose sum there is no
 * host memory is left out. */
GM_API size_t gm_tracker_by_tag(gm_tracker *tracker, gm_tag_total *totals, size_t capacity);

/* A text report of what is alive, by tag and oldest first; returns the length needed without the terminator. */
GM_API size_t gm_tracker_report(gm_tracker *tracker, char *text, size_t capacity);

GM_END_DECLS

#endif
