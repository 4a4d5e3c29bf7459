/* A tracker knows who holds what: in a pool that was created with `track`, or of memory that gm did not allocate. Every
 * call is thread-safe. */
#ifndef GM_TRACKER_H
#define GM_TRACKER_H

#include "gm/context.h"
#include "gm/memory.h"

GM_BEGIN_DECLS

typedef struct gm_tracker gm_tracker;
struct gm_pool;

typedef struct gm_track_entry {
  uint64_t id;      /* unique in the tracker, rising among the blocks of one thread, never 0 */
  uint64_t address; /* 0: none */
  uint64_t bytes;
  uint64_t elements; /* 0: not stated */
  uint64_t born_ns;  /* gm's monotonic clock at its last tick: up to 10 ms early, 4 ms on most systems */
  uint64_t mark;     /* number of gm_tracker_mark calls before it was born */
  uint64_t pool;     /* id of the pool; 0: none */
  uint64_t stream;   /* id of the stream; 0: none */
  uint32_t tag;
  gm_location location;
  uint64_t reserved[2]; /* 0 */
} gm_track_entry;

typedef struct gm_tag_total {
  uint32_t tag;
  uint64_t bytes, peak_bytes, count;
  uint64_t reserved[1]; /* 0 */
} gm_tag_total;

/* Creates an empty tracker, for memory of any origin. A pool that tracks has its own (gm_pool_tracker). The caller
 * destroys *out. Errors: OUT_OF_HOST_MEMORY, FORKED. INVALID_ARGUMENT: an argument is NULL. */
GM_API gm_status gm_tracker_create(gm_context *ctx, gm_tracker **out, gm_error *err);
/* Destroys a tracker, and forgets the entries that are left. NULL is allowed. */
GM_API void gm_tracker_destroy(gm_tracker *tracker);

/* Records one entry, and returns its id. The tracker sets `id`, `born_ns` and `mark`. 0: nothing is recorded, because
 * there is no host memory, a total would exceed 2^64, or `reserved` is not 0. */
GM_API uint64_t gm_tracker_track(gm_tracker *tracker, const gm_track_entry *entry);

/* Removes an entry. NOT_FOUND: it was never tracked, or is removed already. */
GM_API gm_status gm_tracker_untrack(gm_tracker *tracker, uint64_t id);

/* Returns the number of entries. For a pool's tracker the call never blocks allocating threads. */
GM_API uint64_t gm_tracker_count(gm_tracker *tracker);
/* Returns the bytes of all entries. For a pool's tracker the call never blocks allocating threads. */
GM_API uint64_t gm_tracker_total_bytes(gm_tracker *tracker);
/* Returns the highest total so far. Where several threads allocate from a pool, it is the sum of their peaks, never
 * less than the true peak. So are the peaks of tags. For a pool's tracker the call never blocks allocating threads. */
GM_API uint64_t gm_tracker_peak_bytes(gm_tracker *tracker);

/* Begins a new epoch. Returns its number, from 1; 0 where `tracker` is NULL, and in a forked child. */
GM_API uint64_t gm_tracker_mark(gm_tracker *tracker);

/* The next two and gm_tracker_report look at all entries, and hold the tracker's lock. They hold no lock of a request
 * that an arena serves for more than a thousand blocks. A request for a driver allocation of its own waits for them.
 *
 * Finds entries that are at least `age_ns` old, as far as `born_ns` tells. The oldest come first; those of one tick are
 * ordered by id. Writes at most `capacity` entries, and returns how many there are. */
GM_API size_t gm_tracker_find_old(gm_tracker *tracker, uint64_t age_ns, gm_track_entry *entries, size_t capacity);

/* Finds live entries that were born before mark `mark` and after mark `since`: what a step left behind. Writes at most
 * `capacity` entries, and returns how many there are. */
GM_API size_t gm_tracker_find_between(gm_tracker *tracker, uint64_t since, uint64_t mark, gm_track_entry *entries,
                                      size_t capacity);

/* Writes totals by tag, the largest first. Writes at most `capacity` totals, and returns how many there are. A tag is
 * left out when its sum needs host memory that is missing. */
GM_API size_t gm_tracker_by_tag(gm_tracker *tracker, gm_tag_total *totals, size_t capacity);

/* Writes a text report of the live entries, by tag and oldest first. Returns the length needed, without the terminator.
 */
GM_API size_t gm_tracker_report(gm_tracker *tracker, char *text, size_t capacity);

/* Returns the tracker of a pool, which knows who holds what. NULL: the pool does not track. The tracker is borrowed
 * until the pool is destroyed, even where tracking ends before. */
GM_API gm_tracker *gm_pool_tracker(const struct gm_pool *pool);

/* Begins or ends tracking of a pool, while other threads may allocate. Blocks that are alive at the begin are entered
 * as born then, with no elements. Host memory that a buffer fell back to is not entered. At the end the tracker forgets
 * all blocks of the pool and their peaks; other entries stay.
 *
 * The call walks all blocks of the pool, and the begin makes a record of each, some 40 ns a block. It holds no lock
 * that a request takes for more than a thousand of them. After the end allocations cost no more than before the begin.
 * GM_OK: also where nothing changes. Errors: INVALID_ARGUMENT, FORKED. OUT_OF_HOST_MEMORY: the pool is not tracked. */
GM_API gm_status gm_pool_set_tracking(struct gm_pool *pool, bool on, gm_error *err);

GM_END_DECLS

#endif
