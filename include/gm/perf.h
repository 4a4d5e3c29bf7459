/* Performance scopes: what a pool, or all pools of a context, did between two moments.
 *
 * A scope counts the calls of all threads. It keeps nothing alive and frees nothing; gm/scope.h has scopes that own. Up
 * to GM_PERF_DEPTH_MOST scopes of a pool are open at once, and as many of a context. They may end in any order. While
 * none is open, nothing is counted for them. */
#ifndef GM_PERF_H
#define GM_PERF_H

#include "gm/pool.h"

GM_BEGIN_DECLS

enum { GM_PERF_DEPTH_MOST = 64, GM_PERF_NAME_SIZE = 64 };

/* The name of an open scope. gm_perf_end makes `number` 0. Never grows. */
typedef struct gm_perf_scope {
  uint64_t number; /* 0: it is not open */
  gm_pool *pool;   /* NULL: the scope is of a context */
  gm_context *ctx;
} gm_perf_scope;

/* The figures of a scope that has ended. Counts are those of gm/stats.h, of this time alone. */
typedef struct gm_perf_report {
  uint32_t struct_size;          /* set by the caller: sizeof(gm_perf_report) */
  uint32_t depth;                /* scopes that were open when this one began */
  uint64_t allocs;               /* blocks handed out */
  uint64_t frees;                /* blocks given back, also those from before the scope */
  int64_t held_bytes;            /* requested bytes that are out at the end, less those at the begin */
  uint64_t requested_bytes;      /* at the end, for this and the next two */
  uint64_t in_use_bytes;         /* rounding included */
  uint64_t reserved_bytes;       /* taken from the driver and not given back */
  uint64_t peak_requested_bytes; /* highest within the scope; of several threads or pools an upper bound */
  uint64_t peak_in_use_bytes;    /* likewise */
  uint64_t peak_reserved_bytes;  /* likewise; of one pool exact */
  double peak_unused;            /* 1 - peak_in_use_bytes / peak_reserved_bytes; 0 where nothing was reserved */
  uint64_t local_cache_hits;     /* of allocs: from quick lists of the request's own stream */
  uint64_t global_cache_hits;    /* of allocs: from memory kept for all */
  uint64_t misses;               /* of allocs: those that went to the driver */
  uint64_t failures;             /* requests that found no memory */
  uint64_t over_limit;           /* requests that a limit of gm refused */
  uint64_t waits;                /* allocations that came with, or inserted, a wait */
  uint64_t fallbacks;            /* buffers in other memory than preferred */
  uint64_t driver_allocs;        /* allocation calls to the driver, failed ones included */
  uint64_t driver_frees;         /* freeing calls to the driver */
  uint64_t driver_ns;            /* nanoseconds in both */
} gm_perf_report;

/* Begins a scope of a pool. `name` is copied; NULL: the scope has none. A named scope is a range of the calling thread
 * in the profiler that the key debug.ranges names. A recording of the pool gets the marks "begin NAME" and "end NAME".
 * The peaks of gm_pool_stats stay as they are. Thread-safe. Calls of other threads that run meanwhile may count on
 * either side.
 *
 * gm_perf_end ends the scope. Until then gm_pool_destroy answers BUSY. Errors: INVALID_ARGUMENT: a pointer is NULL, the
 * pool is destroyed, or the name is empty or has GM_PERF_NAME_SIZE bytes or more. OVER_LIMIT: GM_PERF_DEPTH_MOST scopes
 * of the pool are open. OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_perf_begin(gm_pool *pool, const char *name, gm_perf_scope *out, gm_error *err);

/* Begins a scope of all pools of a context, also those that are created or destroyed within it. Begin and end visit
 * each pool. A peak is at most the sum of the peaks that the pools had between two begins of such scopes. The profiler
 * is the one that debug.ranges named at the context's first scope. Until gm_perf_end the context answers BUSY to
 * gm_context_destroy. Otherwise as gm_perf_begin. */
GM_API gm_status gm_perf_begin_context(gm_context *ctx, const char *name, gm_perf_scope *out, gm_error *err);

/* Ends a scope, and writes what happened within it to `out`, which may be NULL. Any thread may end it, and other scopes
 * may still be open. A range of a profiler ends where the thread is the one that began it, and in the reverse order.
 * Errors: INVALID_ARGUMENT: the scope is not open, its pool is destroyed, or gm does not know out->struct_size.
 * FORKED: the child only forgets the scope. After another error nothing has changed. */
GM_API gm_status gm_perf_end(gm_perf_scope *scope, gm_perf_report *out, gm_error *err);

GM_END_DECLS

#endif
