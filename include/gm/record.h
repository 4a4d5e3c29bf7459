/* Recording writes a pool's allocations and frees as an allocation trace. gm_trace_open, `gmem replay` and
 * gm_pool_warm_up_from_trace read it. Recording may begin and end while other threads allocate. Every call is
 * thread-safe. */
#ifndef GM_RECORD_H
#define GM_RECORD_H

#include "gm/pool.h"
#include "gm/trace.h"

GM_BEGIN_DECLS

/* Begins a recording. Creates or truncates `path`; a name that ends in ".gz" makes a gzip file. Until
 * gm_pool_record_end, events go to an unnamed temporary file in the same directory, about 8 bytes each. Each thread
 * that allocates costs 64 KiB of host memory.
 *
 * The trace begins with the mark "start", an allocation for each live block, and the mark "recording". It has the
 * blocks of gm_alloc and of the calls above it, and managed memory. It leaves out memory that is not the pool's:
 * gm_block_wrap, gm_block_import, gm_pool_record_allocation.
 *
 * The call walks all blocks of the pool. It holds no lock that a request takes for more than a thousand of them, but
 * for those that are driver allocations of their own.
 *
 * After a failure the pool is not recorded. Errors: OUT_OF_HOST_MEMORY, FORKED. BUSY: the pool is being recorded
 * already, or profiled (gm/profile.h). IO, NOT_FOUND: gm cannot make one of the two files. NOT_SUPPORTED: the name ends
 * in ".gz", and this build has no zlib. INVALID_ARGUMENT: `path` is NULL or empty. */
GM_API gm_status gm_pool_record_begin(gm_pool *pool, const char *path, gm_error *err);

/* Writes a mark: the end of a step or phase. gm_tracker_mark of the pool's own tracker writes one by itself: "mark N".
 * `label` has 1 to 255 bytes of text; control characters become '?'. Errors: INVALID_ARGUMENT, FORKED. NOT_FOUND: the
 * pool is not being recorded. */
GM_API gm_status gm_pool_record_mark(gm_pool *pool, const char *label, gm_error *err);

/* Ends a recording and writes the trace. Events are in the order in which they happened, whatever thread they came
 * from. An event costs about a tenth of a microsecond, and several in a gzip file. Other threads go on meanwhile. Each
 * block that lived at once costs 16 bytes of host memory. `out` may be NULL.
 *
 * NOT_FOUND: the pool is not being recorded. IO (such as a full disk), OUT_OF_HOST_MEMORY: something failed since the
 * recording began, and the file is empty. INVALID_ARGUMENT: gm does not know struct_size, and the recording goes on.
 * FORKED. */
GM_API gm_status gm_pool_record_end(gm_pool *pool, gm_recording *out, gm_error *err);

GM_END_DECLS

#endif
