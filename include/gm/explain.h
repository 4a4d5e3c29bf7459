/* Why a pool refused a request, what was tried, and what would have helped. gm/pool.h includes this header. */
#ifndef GM_EXPLAIN_H
#define GM_EXPLAIN_H

#include <stdbool.h>

#include "gm/request.h"
#include "gm/status.h"

GM_BEGIN_DECLS

typedef struct gm_pool gm_pool; /* thread-safe; it borrows its device, and keeps it from closing */

/* Why the pool last refused a request. This list feeds the enum and the names. The numbers never change. New ones go
 * last.
 * - NONE: the pool has refused nothing.
 * - FRAGMENTATION: enough bytes are unused, but in pieces that are too small.
 * - POOL_CAP: the pool's cap. QUOTA: the quota of the request's tag.
 * - RESERVE: memory_fraction or min_free_bytes; the device itself has room.
 * - OTHER_PROCESS: the device is full, and the request would fit without what other processes hold.
 * - LAZY_COMMIT: the driver promised memory, and could not give it when GM_COMMIT asked for it.
 * - SINGLE_ALLOCATION: more than the driver gives in one allocation.
 * - PINNED_LIMIT: the driver gives no more page-locked memory. MEMLOCK: RLIMIT_MEMLOCK of the process is in the way.
 * - CGROUP: a limit of the process's memory group.
 * - HOST_OVERCOMMIT: the kernel promises no more memory (vm.overcommit_memory 2, or RLIMIT_AS or RLIMIT_DATA of the
 *   process). MAPPINGS: the process has all mappings that it may have (vm.max_map_count).
 * - LEAK_BY_TAG: one tag left bytes behind in each of the last four epochs (gm_tracker_mark), and without all that it
 *   left behind the request would fit. `change_tag` is the tag. Only a pool that tracks can tell.
 * - DEVICE_LOST: the device is lost.
 * - DEVICE_FULL: the device is full, by no other of these causes.
 * - TOO_LARGE: more than the device has in all.
 * - DEADLINE: the deadline of the request passed. `waited_for` says what it waited for.
 * - CAPTURE: the request's stream is being captured.
 * - POOLED_ONLY: the pool keeps no memory that serves, and GM_POOLED_ONLY allows no other.
 * - HOST_MEMORY: gm had no host memory for its own records.
 * - DRIVER: another failure of the driver (`last_failure`).
 * - PROMISED: reservations (gm/reserve.h) hold what the request lacks. The text names the process that holds most.
 * - ASLEEP: the pool sleeps as a whole (gm_pool_sleep_whole).
 * - UNSETTLED: freed memory would serve, but work of `change_stream` may still use it. gm can ask that stream nothing:
 * it is a queue without `may_submit`, or a thread's own stream.
 * - BUSY_STREAMS: freed memory would serve once streams have done their work, or it does by now. `change_stream` is one
 *   of these streams; 0: that is over. */
#define GM_REFUSAL_CAUSE_MAP(X)                         \
  X(GM_CAUSE_NONE, 0, "none")                           \
  X(GM_CAUSE_FRAGMENTATION, 1, "fragmentation")         \
  X(GM_CAUSE_POOL_CAP, 2, "pool_cap")                   \
  X(GM_CAUSE_QUOTA, 3, "quota")                         \
  X(GM_CAUSE_RESERVE, 4, "reserve")                     \
  X(GM_CAUSE_OTHER_PROCESS, 5, "other_process")         \
  X(GM_CAUSE_LAZY_COMMIT, 6, "lazy_commit")             \
  X(GM_CAUSE_SINGLE_ALLOCATION, 7, "single_allocation") \
  X(GM_CAUSE_PINNED_LIMIT, 8, "pinned_limit")           \
  X(GM_CAUSE_MEMLOCK, 9, "memlock")                     \
  X(GM_CAUSE_CGROUP, 10, "cgroup")                      \
  X(GM_CAUSE_HOST_OVERCOMMIT, 11, "host_overcommit")    \
  X(GM_CAUSE_LEAK_BY_TAG, 12, "leak_by_tag")            \
  X(GM_CAUSE_DEVICE_LOST, 13, "device_lost")            \
  X(GM_CAUSE_DEVICE_FULL, 14, "device_full")            \
  X(GM_CAUSE_TOO_LARGE, 15, "too_large")                \
  X(GM_CAUSE_DEADLINE, 16, "deadline")                  \
  X(GM_CAUSE_CAPTURE, 17, "capture")                    \
  X(GM_CAUSE_POOLED_ONLY, 18, "pooled_only")            \
  X(GM_CAUSE_HOST_MEMORY, 19, "host_memory")            \
  X(GM_CAUSE_DRIVER, 20, "driver")                      \
  X(GM_CAUSE_PROMISED, 21, "promised")                  \
  X(GM_CAUSE_ASLEEP, 22, "asleep")                      \
  X(GM_CAUSE_UNSETTLED, 23, "unsettled")                \
  X(GM_CAUSE_BUSY_STREAMS, 24, "busy_streams")          \
  X(GM_CAUSE_MAPPINGS, 25, "mappings")

typedef enum gm_refusal_cause {
#define X(name, value, text) name = value,
  GM_REFUSAL_CAUSE_MAP(X)
#undef X
} gm_refusal_cause;

/* The smallest change that gm knows with which the request would have succeeded, and `change_bytes`. gm finds it by a
 * dry run of the request. Where `change_at_least` is true, the change may not be enough: make it, ask again, and read
 * the next one. This list feeds the enum and the names. The numbers never change. New ones go last.
 * - NONE: nothing was refused, or gm knows of none.
 * - FREE: free so many bytes, of `change_tag` where the cause names a tag, page-locked ones for PINNED_LIMIT. Blocks
 *   that lie beside each other help most.
 * - RAISE_CAP: raise the pool's cap by so many bytes. RAISE_QUOTA: the tag's quota.
 * - LOWER_RESERVE: let memory_fraction or min_free_bytes leave so many bytes more.
 * - FREE_ELSEWHERE: other processes give so many bytes back.
 * - SPLIT: ask in pieces of so many bytes, the last one of the rest. GM_ALLOW_SPANS does so for large requests.
 * - RAISE_MEMLOCK: raise RLIMIT_MEMLOCK by so many bytes. RAISE_CGROUP: the limit of the memory group.
 * - RAISE_COMMIT: let the kernel promise so many bytes more (vm.overcommit_ratio, RLIMIT_AS, RLIMIT_DATA).
 * - RAISE_MAPPINGS: let the process have so many mappings more, at least (vm.max_map_count).
 * - ASK_LESS: ask for so many bytes less. REOPEN: close the device and open it again.
 * - AFTER_CAPTURE: ask after the capture, or have memory in the pool before. ALLOW_FRESH: ask without GM_POOLED_ONLY.
 * - CANCEL: cancel reservations of so many bytes, or commit one to the pool.
 * - WAKE: call gm_pool_wake before.
 * - SETTLE: say gm_stream_passed for `change_stream` when its work is done.
 * - WAIT: ask with a deadline (gm_request.deadline_ns) that is longer than the streams' work, or ask again. */
#define GM_CHANGE_MAP(X)                           \
  X(GM_CHANGE_NONE, 0, "none")                     \
  X(GM_CHANGE_FREE, 1, "free")                     \
  X(GM_CHANGE_RAISE_CAP, 2, "raise_cap")           \
  X(GM_CHANGE_RAISE_QUOTA, 3, "raise_quota")       \
  X(GM_CHANGE_LOWER_RESERVE, 4, "lower_reserve")   \
  X(GM_CHANGE_FREE_ELSEWHERE, 5, "free_elsewhere") \
  X(GM_CHANGE_SPLIT, 6, "split")                   \
  X(GM_CHANGE_RAISE_MEMLOCK, 7, "raise_memlock")   \
  X(GM_CHANGE_RAISE_CGROUP, 8, "raise_cgroup")     \
  X(GM_CHANGE_RAISE_COMMIT, 9, "raise_commit")     \
  X(GM_CHANGE_ASK_LESS, 10, "ask_less")            \
  X(GM_CHANGE_REOPEN, 11, "reopen")                \
  X(GM_CHANGE_AFTER_CAPTURE, 12, "after_capture")  \
  X(GM_CHANGE_ALLOW_FRESH, 13, "allow_fresh")      \
  X(GM_CHANGE_CANCEL, 14, "cancel")                \
  X(GM_CHANGE_WAKE, 15, "wake")                    \
  X(GM_CHANGE_SETTLE, 16, "settle")                \
  X(GM_CHANGE_WAIT, 17, "wait")                    \
  X(GM_CHANGE_RAISE_MAPPINGS, 18, "raise_mappings")

typedef enum gm_change {
#define X(name, value, text) name = value,
  GM_CHANGE_MAP(X)
#undef X
} gm_change;

/* The ways that gm tries for a request that no pooled memory of its thread serves, in this order. This list feeds the
 * enum and the names. The numbers never change. New ones go last.
 * - MOVE: idle memory of other threads of the pool. DRIVER: new memory. BUSY: memory that another stream still uses.
 * - TRIM: the pool gives idle memory back, and asks the driver again. POOLS: so do the device's other pools.
 * - EVICTORS: evictors (gm/evictor.h) free memory, and all of this is tried once more.
 * - SPANS: several memories (GM_ALLOW_SPANS). WAIT: the request waits (gm_request.deadline_ns). */
#define GM_RUNG_MAP(X)               \
  X(GM_RUNG_MOVE, 0, "move")         \
  X(GM_RUNG_DRIVER, 1, "driver")     \
  X(GM_RUNG_BUSY, 2, "busy")         \
  X(GM_RUNG_TRIM, 3, "trim")         \
  X(GM_RUNG_POOLS, 4, "pools")       \
  X(GM_RUNG_EVICTORS, 5, "evictors") \
  X(GM_RUNG_SPANS, 6, "spans")       \
  X(GM_RUNG_WAIT, 7, "wait")

typedef enum gm_rung {
#define X(name, value, text) name = value,
  GM_RUNG_MAP(X)
#undef X
} gm_rung;

/* Return the word of a cause, a change or a rung, such as "pool_cap". Another number gives "?". The string is static
 * and never NULL. Thread-safe. */
GM_API const char *gm_refusal_cause_name(gm_refusal_cause cause);
GM_API const char *gm_change_name(gm_change change);
GM_API const char *gm_rung_name(gm_rung rung);

/* The figures of one rung. Never grows. */
typedef struct gm_rung_work {
  uint64_t count; /* how often it was tried; 0: not at all */
  uint64_t bytes; /* bytes that it gave back: TRIM, POOLS; EVICTORS: by their own word. 0 for others */
  uint64_t ns;    /* how long it took */
} gm_rung_work;

/* The figures of the blocks of one tag. Never grows. */
typedef struct gm_explained_tag {
  uint32_t tag;
  uint32_t reserved; /* 0 */
  uint64_t bytes, count;
} gm_explained_tag;

enum { GM_EXPLAINED_RUNGS = 16, GM_EXPLAINED_TAGS = 8, GM_EXPLAINED_NAME = 256 };

/* The state of a pool and its device now, and the reason of the pool's last refusal. The caller owns the report. */
typedef struct gm_explanation {
  uint32_t struct_size;
  gm_status status;       /* why gm_alloc answers INVALID to the request: INVALID_ARGUMENT, NOT_SUPPORTED; or OK */
  uint64_t asked_bytes;   /* bytes that the request asks for */
  uint64_t rounded_bytes; /* bytes that the pool would take; 0: `status` is not OK */
  uint64_t largest_pooled_bytes; /* largest free block of the pool */
  uint64_t pooled_bytes;
  uint64_t in_use_bytes;
  uint64_t limit_bytes;       /* gm's own bound on reserved bytes */
  uint64_t device_free_bytes; /* GM_UNKNOWN_BYTES if unknown */
  uint64_t used_by_others_bytes;
  uint64_t max_alloc_bytes;    /* the driver's bound on one allocation; 0: no known bound */
  uint64_t last_failure_bytes; /* bytes that the refused request asked for */
  gm_error last_failure;       /* why the pool refused it, with the figures of that moment and what would have helped.
                                  It tells, too, why gm_free refused an imported block. GM_OK: the pool has refused nothing */
  char text[512];              /* the whole report in a few sentences */
  gm_refusal_cause cause;      /* of the last refusal */
  gm_refusal_cause waited_for; /* DEADLINE: the cause of the last try; NONE: others were before it all the time */
  gm_change change;            /* the smallest known one with which it would have succeeded */
  uint32_t change_tag;         /* RAISE_QUOTA and LEAK_BY_TAG: the tag */
  uint64_t change_bytes;       /* 0 where the change has no number */
  uint64_t device_total_bytes; /* what the device has in all; GM_UNKNOWN_BYTES if unknown */
  uint64_t waited_ns;          /* how long the request waited for memory */
  double fragmentation;        /* as gm_pool_fragmentation tells it, from 0 to below 1 */
  bool ever_fits;              /* the device, empty and without gm's limits, could serve the refused request */
  uint32_t tag_count;          /* entries of `tags`; 0: the pool does not track */
  gm_explained_tag tags[GM_EXPLAINED_TAGS];   /* the tags that hold most, largest first */
  gm_rung_work rungs[GM_EXPLAINED_RUNGS];     /* by gm_rung: what was tried for the refused request */
  gm_rung_work all_rungs[GM_EXPLAINED_RUNGS]; /* by gm_rung: of all requests of the pool so far, refused or served */
  bool change_at_least;                       /* the change is a lower bound: it may not be enough */
  char bound[GM_EXPLAINED_NAME]; /* the name of what is in the way, cut if longer. CGROUP: the group, such as
                                    "cgroup2:/box". Limits of the process: "RLIMIT_DATA". Otherwise "" */
  uint64_t change_stream;        /* SETTLE, WAIT: id of the stream (gm_stream_id); 0: none is named */
} gm_explanation;

/* Tells whether a request is valid, what the pool and its device have now, and why the pool last refused a valid
 * request. Call it right after gm_alloc refused, because it finds the cause with the figures of now. It promises
 * nothing about the next call of gm_alloc. It allocates nothing but the tracker's sums by tag, and follows no stream.
 *
 * A refusal of a request with GM_POOLED_ONLY is told where `request` has that flag too, or where there is no other one.
 *
 * The call walks all blocks and free pieces of the pool, some 25 ns each. It holds no lock that a request takes for
 * more than a thousand of them. Other threads may use the pool in between, and then its figures are of several moments.
 *
 * GM_OK: `out` is filled, also where the request is not valid. INVALID_ARGUMENT: `pool` or `out` is NULL, or gm does
 * not know a struct_size. FORKED. */
GM_API gm_status gm_explain(gm_pool *pool, const gm_request *request, gm_explanation *out, gm_error *err);

GM_END_DECLS

#endif
