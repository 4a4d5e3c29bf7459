/* Recording: what a pool in use hands out and takes back, written as an allocation trace that gm_trace_open, `gmem
 * replay` and gm_pool_warm_up_from_trace read (F58). Thread-safe: begin and end while other threads allocate. */
#ifndef GM_RECORD_H
#define GM_RECORD_H

#include "gm/pool.h"
#include "gm/trace.h"

GM_BEGIN_DECLS

/* Begin. Creates or truncates `path`, packed as gzip when it ends with ".gz". Until gm_pool_record_end, events go to an
 * unnamed temporary file in the same directory, about 8 bytes each. Host memory: 64 KiB for each thread that allocates.
 * The trace begins with the mark "start", then an allocation for each block that is out already, then the mark
 * "recording". Recorded are blocks of gm_alloc and of what calls it, managed memory too; no memory that is not the
 * pool's (gm_block_wrap, gm_block_import, gm_pool_record_allocation). BUSY: it is being recorded already; IO,
 * NOT_FOUND: the file, or the one beside it, cannot be made; NOT_SUPPORTED:
 * ".gz" in a build without zlib; OUT_OF_HOST_MEMORY; INVALID_ARGUMENT: path NULL or empty; FORKED. After a failure the
 * pool is not recorded. */
GM_API gm_status gm_pool_record_begin(gm_pool *pool, const char *path, gm_error *err);

/* A mark: the end of a step or phase. gm_tracker_mark of the pool's own tracker leaves one by itself: "mark N".
 * `label`: 1 to 255 bytes of text; control characters become '?'. NOT_FOUND: the pool is not being recorded;
 * INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_pool_record_mark(gm_pool *pool, const char *label, gm_error *err);

/* End, and write the trace: events in the order in which they happened, whatever thread they came from. Takes about a
 * tenth of a microsecond for each event, several for a packed one, in which other threads go on, and 16 bytes of host
 * memory for each block that was out at once. `out` may be NULL. NOT_FOUND: the pool is not being recorded; what went
 * wrong since it began, or now: IO (a full disk), OUT_OF_HOST_MEMORY: the file is empty then; INVALID_ARGUMENT: a
 * struct_size that gm does not know, and the recording goes on; FORKED. */
GM_API gm_status gm_pool_record_end(gm_pool *pool, gm_recording *out, gm_error *err);

GM_END_DECLS

#endif
