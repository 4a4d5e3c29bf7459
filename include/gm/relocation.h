/* Moving buffers of a whole pool: compaction, promotion, sleep and wake. gm moves a buffer by its handle: the contents
 * stay, the block is another one afterwards. gm_pool_sleep_whole alone moves nothing. Every function is thread-safe,
 * and waits until its copies have ended.
 *
 * A buffer of GM_EVICTABLE may leave the device when a request would be refused for want of memory. gm moves it off,
 * after a compaction and before it asks the program's evictors. The buffers used least lately go first. One whose
 * fallback allows pinned memory goes there, if the device is what is short and the system and the pool's cap have room.
 * All others go to host memory. */
#ifndef GM_RELOCATION_H
#define GM_RELOCATION_H

#include "gm/buffer.h"

GM_BEGIN_DECLS

/* How far a compaction may go. Zero-initialised with struct_size set, it has no bound. */
typedef struct gm_compact_params {
  uint32_t struct_size;
  uint64_t max_bytes; /* no move begins that would make it more bytes; 0: no bound */
  uint64_t max_ns;    /* no move begins after so many nanoseconds; 0: no bound */
  gm_stream *stream;  /* the copies' stream; NULL: as for gm_buffer_write */
} gm_compact_params;

/* The result of a compaction. */
typedef struct gm_compact_report {
  uint32_t struct_size;
  uint64_t moves;       /* buffers moved */
  uint64_t moved_bytes; /* their bytes */
  uint64_t freed_bytes; /* bytes that went back to the driver, idle memory from before included */
  uint64_t stayed;      /* how often a buffer stayed because it was locked or a stream may still use it */
} gm_compact_report;

/* Moves relocatable buffers (GM_RELOCATABLE) within a pool by copies on the device, so that its holes join. Segments
 * that become empty, and pages, go back to the driver, as all idle memory of the pool does. gm takes no new memory for
 * it. It makes a plan first, in which each buffer moves at most once. Where nobody else uses the pool, a second run at
 * once frees and moves nothing, and `scattered_bytes` of gm_pool_fragmentation is not more than before.
 *
 * A run with a bound of `params` plans for 768 buffers and holes at a time. The emptiest segment is among them, if it
 * has no more. The run ends when such a part has no moves, and the next run goes on behind it. gm moves no buffer that
 * is locked, nor one that a stream of gm_buffer_unlock may still use. A buffer is out of reach while it moves; threads
 * that use it meanwhile wait.
 *
 * gm also does this by itself before it refuses a request for want of memory, once the pool has had a relocatable
 * buffer. It then gives back only as much as the request lacks, and nothing of a pool with GM_POOL_NO_TRIM. Statistics
 * count that as an eviction. A pool with red zones or patterns, of buckets, or of GM_POOL_CAPTURES has nothing to move.
 *
 * `params` and `out` may be NULL; the caller sets out->struct_size. `out` is filled in also after a failure of a copy.
 * Errors: INVALID_ARGUMENT, FORKED, OUT_OF_HOST_MEMORY, and those of gm_block_copy. BUSY: another thread compacts this
 * pool. */
GM_API gm_status gm_pool_compact(gm_pool *pool, const gm_compact_params *params, gm_compact_report *out, gm_error *err);

/* Has gm_context_poll, and so the monitor's thread, compact the pool from now on, within the bounds of `params` each
 * time. NULL: no longer. A poll passes over a pool whose holes between live blocks are less than the key
 * coalescing_threshold of its reserved bytes. A failure of a copy ends that run, and moves nothing. The copies use gm's
 * own stream, or the device's default one. `params->stream` must be NULL. Errors: INVALID_ARGUMENT, FORKED.
 * NOT_SUPPORTED: the pool has an upstream, or gives no memory to others. */
GM_API gm_status gm_pool_compact_on_poll(gm_pool *pool, const gm_compact_params *params, gm_error *err);

/* Says whether a buffer of GM_EVICTABLE is persistent: it leaves the device after all others of its pool. Use it for
 * state that a chain of operations needs again. Errors: INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_buffer_set_persistent(gm_buffer *buffer, bool persistent, gm_error *err);

/* How gm_pool_promote chooses. Zero-initialised with struct_size set, it has its defaults. */
typedef struct gm_promote_params {
  uint32_t struct_size;
  uint64_t max_bytes; /* no move begins that would make it more bytes; 0: no bound */
  uint64_t wait_ns;   /* so long a buffer stays off the device after gm put it off; 0: a second. The time doubles with
                         each   further time, up to 32 times */
  gm_stream *stream;  /* the copies' stream; NULL: as for gm_buffer_write */
} gm_promote_params;

/* The result of gm_pool_promote. */
typedef struct gm_promote_report {
  uint32_t struct_size;
  uint64_t moves;       /* buffers that came back */
  uint64_t moved_bytes; /* their bytes */
} gm_promote_report;

/* Brings buffers back to the device that fell back when they were made, or that gm put off it (GM_EVICTABLE). Those
 * used most lately come first: each lock, read and write is a use, and counts half after a second. A buffer comes only
 * while the pool's pressure stays below the threshold `medium` with it, and gm asks no evictor. Locked buffers, those
 * that streams may still use, and those that gm_buffer_move or gm_pool_sleep put off the device stay where they are.
 * So do those whose block gm_buffer_block gave while nobody had locked them, until gm_buffer_move. A call ends after
 * 1024 buffers that must stay.
 *
 * `params` and `out` may be NULL; the caller sets out->struct_size. Errors: INVALID_ARGUMENT, FORKED, and those of
 * gm_buffer_move; what moved before is in `out`. */
GM_API gm_status gm_pool_promote(gm_pool *pool, const gm_promote_params *params, gm_promote_report *out, gm_error *err);

/* Has gm_context_poll, and so the monitor's thread, promote the buffers of the pool from now on, as `params` say each
 * time. NULL: no longer. A poll compacts a pool that also asked for that first. A buffer that a poll cannot bring back
 * stays for the next one. The copies use gm's own stream, or the device's default one. `params->stream` must be NULL.
 * Errors: INVALID_ARGUMENT, FORKED. NOT_SUPPORTED: the pool has an upstream, or gives no memory to others. */
GM_API gm_status gm_pool_promote_on_poll(gm_pool *pool, const gm_promote_params *params, gm_error *err);

/* Puts a pool to sleep: all its buffers leave the device, and all idle memory goes back to the driver. With
 * `keep_contents` the buffers go to host memory, and can be read and written there. Without, their contents are
 * dropped; only gm_pool_wake and gm_buffer_move make them usable again. The moves come after the work that
 * gm_buffer_unlock noted, and after that of `stream`, which may be NULL. Blocks of gm_alloc stay where they are, and so
 * do buffers in pinned memory. *out_bytes, which may be NULL, is how much went back to the driver.
 *
 * The pool can be used as before; new buffers are awake. GM_OK also for a pool that sleeps. Errors: FORKED,
 * INVALID_ARGUMENT, and those of gm_buffer_move. BUSY: somebody has locked a buffer; nothing sleeps then, and nothing
 * is lost. After another failure gm has woken the buffers again as far as it could; call gm_pool_wake. Without
 * `keep_contents` a buffer that slept until then has lost its contents: its bytes are as after gm_pool_wake. */
GM_API gm_status gm_pool_sleep(gm_pool *pool, bool keep_contents, gm_stream *stream, uint64_t *out_bytes,
                               gm_error *err);

/* Puts a whole pool to sleep in its place. The blocks of gm_alloc and the buffers that lie in mapped pages give their
 * physical memory back. They keep their addresses. A pool maps pages on a device with GM_CAP_VMM, unless it has
 * buckets, an upstream, a priority, `share`, `no_vmm`, GM_POOL_NO_TRIM or GM_POOL_CAPTURES. With `keep_contents` gm
 * copies the pages that blocks lie in to host memory; without, their contents are dropped. Blocks and buffers elsewhere
 * stay as they are: GM_DEDICATED, host memory, other memory types. *out_bytes, which may be NULL, is how much went back
 * to the driver, idle memory included.
 *
 * gm waits first for `stream`, which may be NULL, and for all streams that requests and frees of the pool have named.
 * It also waits for the work that gm_buffer_unlock noted. The program must give no stream work on the pool's memory
 * afterwards, and must not touch it. Until gm_pool_wake:
 * - requests to the pool are refused (GM_ACQUIRE_EXHAUSTED; gm_explain: GM_CAUSE_ASLEEP);
 * - copies, fills and mappings of blocks and buffers in its pages answer BUSY;
 * - blocks and buffers can be freed, and the pool can be destroyed.
 *
 * GM_OK also for a pool that sleeps so. Errors: FORKED, INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, those of a copy.
 * NOT_SUPPORTED: the pool maps no pages, has red zones or patterns, or the device cannot read its memory back. BUSY: a
 * buffer is locked, a block is mapped, or another thread is in a call for memory of the pool. Or gm cannot wait for a
 * stream. After all of these nothing has changed. DRIVER: the device does not unmap; gm has woken the pool again.
 * Where it could not, requests answer that the pool sleeps, and gm_pool_wake can be repeated. Contents that were to be
 * kept are not lost; those that were to be dropped may be. */
GM_API gm_status gm_pool_sleep_whole(gm_pool *pool, bool keep_contents, gm_stream *stream, uint64_t *out_bytes,
                                     gm_error *err);

/* Wakes a pool. After gm_pool_sleep its sleeping buffers come back to the device, with their contents if these were
 * kept. Otherwise the bytes are undefined, or zero for GM_ZERO. After gm_pool_sleep_whole there is memory again at all
 * its addresses, with what was kept, or with undefined bytes. Where memory is short, this pool and the device's other
 * pools give their idle memory back first. No evictor is asked: gm_device_cleanup does that.
 *
 * After a failure some buffers sleep on; a whole pool sleeps on as a whole, and holds no more memory than before. The
 * call can be repeated. GM_OK also for a pool that does not sleep. Errors: those of gm_buffer_move. */
GM_API gm_status gm_pool_wake(gm_pool *pool, gm_stream *stream, gm_error *err);

GM_END_DECLS

#endif
