/* Pools: memory now. The hot path carries no gm_error, takes no allocation of its own after warm-up, and logs nothing;
 * gm_explain says afterwards why a request failed (F11, F22, F24, F65, F66, F72, F73). */
#ifndef GM_POOL_H
#define GM_POOL_H

#include "gm/request.h"
#include "gm/share_kind.h"
#include "gm/stats.h"
#include "gm/stream.h"
#include "gm/tracker.h"

GM_BEGIN_DECLS

typedef struct gm_pool gm_pool; /* Thread-safe. Borrows its device, which it keeps from closing. */

typedef enum gm_strategy {
  GM_STRATEGY_AUTO = 0,    /* by configuration; its auto is best_fit */
  GM_STRATEGY_BUCKET = 1,  /* power-of-two buckets, each block an allocation of its own */
  GM_STRATEGY_BEST_FIT = 2 /* parts of segments, near-best fit: fewer driver calls, tighter packing */
} gm_strategy;

/* Where a pool takes its memory from instead of the backend (F73): an engine's own allocator. Called with no gm lock
 * held, from the thread that allocates, frees or trims.
 * allocate: `out` points to the native struct of the device's API (gm_opencl_memory, gm_vulkan_memory, gm_cpu_memory,
 * ...) with its head filled; fill in the rest to name at least `bytes` at a multiple of `align`, set *out_token to what
 * release is to get, and answer GM_OK; or GM_ERR_OUT_OF_DEVICE_MEMORY. gm wraps the native memory, so that copies,
 * mappings and native objects of its blocks work as everywhere. */
typedef struct gm_upstream {
  gm_status (*allocate)(void *user, uint64_t bytes, uint32_t align, gm_native_memory *out, void **out_token);
  void (*release)(void *user, void *token);
  void *user;
  void (*reserved[2])(void); /* NULL */
} gm_upstream;

typedef enum gm_debug_flags {
  GM_DEBUG_POISON = 1,     /* memory is filled with one pattern when it is handed out, with another when it is freed */
  GM_DEBUG_CHECK_FREED = 2 /* the same, and the last freed blocks are held back and checked before their reuse */
} gm_debug_flags;

/* Zero-initialised with struct_size set, it means: by configuration. */
typedef struct gm_pool_params {
  uint32_t struct_size;
  gm_strategy strategy;
  const char *name;            /* for reports; copied; NULL: "pool" */
  uint64_t max_bytes;          /* cap on reserved bytes; 0: max_pool_bytes. memory_fraction, min_free_bytes hold too */
  const gm_upstream *upstream; /* NULL: the device's backend; copied */
  bool checked;                /* every wrong free is found (see gm_free); always so in debug builds */
  bool track;                  /* keep a record of each block (gm/tracker.h); or track_allocations; or later */
  uint32_t debug;              /* gm_debug_flags; or debug.poison, debug.check_freed */
  uint64_t red_zone_bytes;     /* guarded before and behind each block (gm/debug.h); 0: debug.red_zone_bytes */
  bool no_vmm;                 /* driver allocations only, also where the device maps pages */
  gm_share_kind share;         /* its memory is made so that blocks can be exported in this way (gm/share.h) */
} gm_pool_params;

/* What gm_alloc answers. One list feeds the enum and the names. Numbers are pinned for ever; new ones go last.
 *   OK             usable at once on the request's stream (host order: by the host and any stream)
 *   FRESH          the same, and never used before
 *   NEEDS_WAIT     after the block's point (gm_block_point) on the request's stream: on an unordered stream, and on any
 *                  other only where there was no other memory
 *   NEEDS_BARRIER  after a barrier in the request's stream
 *   EXHAUSTED      no memory now
 *   OVER_LIMIT     a limit of gm refused
 *   INVALID        the request is wrong, or asks for what this version or this device does not have, or what the
 *                  engine forbids there: no memory would help
 *   FAILED         forked, device lost, driver failure */
#define GM_ACQUIRE_MAP(X)        \
  X(GM_ACQUIRE_OK, 0)            \
  X(GM_ACQUIRE_FRESH, 1)         \
  X(GM_ACQUIRE_NEEDS_WAIT, 2)    \
  X(GM_ACQUIRE_NEEDS_BARRIER, 3) \
  X(GM_ACQUIRE_EXHAUSTED, 4)     \
  X(GM_ACQUIRE_OVER_LIMIT, 5)    \
  X(GM_ACQUIRE_INVALID, 6)       \
  X(GM_ACQUIRE_FAILED, 7)

typedef enum gm_acquire {
#define X(name, value) name = value,
  GM_ACQUIRE_MAP(X)
#undef X
} gm_acquire;

/* "GM_ACQUIRE_NEEDS_WAIT"; "GM_ACQUIRE_?" for a number that is none. Static storage, never NULL; thread-safe. */
GM_API const char *gm_acquire_name(gm_acquire acquire);

/* Has the caller a block? True for OK, FRESH, NEEDS_WAIT and NEEDS_BARRIER: it is the caller's to free, also where the
 * wait is still to come. False for all others, numbers that are none included. Thread-safe. */
GM_API bool gm_acquired(gm_acquire acquire);

/* A piece of memory, by value. Never grows. */
typedef struct gm_block {
  uint64_t address; /* device address, or a synthetic one where the API has none; unique among live blocks of a device;
                       0: of several memories (gm/spans.h) */
  uint64_t bytes;   /* usable; at least what was asked */
  uint64_t memory;  /* internal: the driver allocation; other blocks may be in it, too */
  uint32_t node;    /* internal */
  uint32_t check;   /* internal */
} gm_block;

/* INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, FORKED; NOT_SUPPORTED: the device's memory cannot be made for `share`, or with
 * red zones or patterns it has no contents that gm can read, or no stream of gm's own to write them on (an adopted one
 * without leave for that). `params` may be NULL. The caller destroys *out. */
GM_API gm_status gm_pool_create(gm_device *device, const gm_pool_params *params, gm_pool **out, gm_error *err);

/* Waits for the work of the streams that blocks were freed on. NULL is GM_OK. BUSY, and the pool stays as it is: blocks
 * are out; the engine captures one of those streams; or gm can neither record a point nor wait on one of them (the
 * engine lent it without leave to submit, or it is another thread's own), and its work may still run. `err` names the
 * stream. BUSY, too, while another pool of the device asks this one for memory for more than a second. */
GM_API gm_status gm_pool_destroy(gm_pool *pool, gm_error *err);

/* Get a block. *out is filled by every answer that gives one, the NEEDS_* ones included, and the caller frees it. While
 * the request's stream is being captured, gm serves only memory that it already holds and that needs no wait; otherwise
 * it answers EXHAUSTED. EXHAUSTED, too, when the calling thread has 2^24 blocks, and holes
 * between them, in a pool of BEST_FIT. */
GM_API gm_acquire gm_alloc(gm_pool *pool, const gm_request *request, gm_block *out);

/* Give back in that stream's order: work already submitted there may still use the block. NULL: host order, nothing
 * uses it any more. INVALID_ARGUMENT, and nothing changes: the stream is another device's; `node` and `check` name no
 * live block (freed before, of another pool, made up); or `address`, `bytes` or `memory` are not as they were handed
 * out. All five are compared for blocks that are part of a segment (best_fit), and for every block of a checked pool or
 * a pool with guards. An unchecked pool knows blocks that are whole driver allocations (all blocks of a bucket pool;
 * wrapped, imported and managed ones of any pool) by `node` and `check` alone: passing one of those with other members
 * changed, or one that you made up, is undefined behaviour. BUSY, and nothing changes: the block is mapped; or it is
 * imported, and the stream is being captured, or gm can neither record a point nor wait there (gm_explain has the
 * reason). OUT_OF_HOST_MEMORY, and nothing changes: the stream cannot be noted. DAMAGED: it is freed, and was found
 * damaged (gm/debug.h). FORKED. gm_free waits for no stream, except for those of an imported block, and in a pool with
 * red zones or patterns. */
GM_API gm_status gm_free(gm_pool *pool, const gm_block *block, gm_stream *stream);

/* Give back at a point: the block may be used again once it has passed, and work of gm_use_on is done. A point that has
 * passed, the zero point and a point of a closed stream: at once, as gm_free with NULL. Else the block is freed in the
 * order of the point's stream, which may use it again itself, as with gm_free; where other memory or gm_use_on needs
 * that stream, too, the block may come back later than its point. An imported block is waited for. The point stays the
 * caller's and may be released at once; what lies behind an imported one lives until it has passed. INVALID_ARGUMENT:
 * the point is another device's; the rest is as for gm_free, and `err` says why. Thread-safe. */
GM_API gm_status gm_free_at(gm_pool *pool, const gm_block *block, const gm_point *point, gm_error *err);

/* The block is also used on `stream` by work submitted before this call or before gm_free: its reuse waits for that.
 * INVALID_ARGUMENT as for gm_free; OUT_OF_HOST_MEMORY; FORKED. */
GM_API gm_status gm_use_on(gm_pool *pool, const gm_block *block, gm_stream *stream);

/* After GM_ACQUIRE_NEEDS_WAIT: the point to wait for. Borrowed until the block is freed; zero when there is none. */
GM_API gm_point gm_block_point(gm_pool *pool, const gm_block *block);

/* The same by pointer (address): NULL when there is none. Waits are inserted. gm_free_ptr: INVALID_ARGUMENT when the
 * pointer is not the address of a live block of at least `bytes_or_0`; a NULL pointer is GM_OK. */
GM_API void *gm_malloc(gm_pool *pool, uint64_t bytes, gm_stream *stream);
GM_API gm_status gm_free_ptr(gm_pool *pool, void *pointer, uint64_t bytes_or_0, gm_stream *stream);

/* The live block that contains the address: NOT_FOUND if none of this pool does. One of several memories (gm/spans.h)
 * is told as a whole. Constant time: at most 64 table look-ups. The first
 * look-up of an address inside a block takes the time to enter all blocks of that arena, and each block 16 to 32 bytes
 * of host memory from then on; without host memory for that the blocks of the arena are walked. */
GM_API gm_status gm_block_of(gm_pool *pool, const void *pointer, gm_block *out);

/* What is known of the live block that contains an address. */
typedef struct gm_pointer_info {
  uint32_t struct_size; /* set by the caller: sizeof(gm_pointer_info) */
  uint32_t tag;
  gm_pool *pool;            /* borrowed */
  gm_block block;           /* its `address` is the base */
  uint64_t offset;          /* bytes from there to the address; of several memories: in all of them */
  uint64_t requested_bytes; /* what was asked for */
  uint64_t stream;          /* gm_stream_id of the request's stream; 0: none, or it is closed */
} gm_pointer_info;

/* The same in all pools of the device, one after the other. INVALID_ARGUMENT; NOT_FOUND: no live block contains the
 * address; FORKED. The answer is of the moment: another thread may free the block. */
GM_API gm_status gm_pointer_find(gm_device *device, const void *pointer, gm_pointer_info *out);

/* A block of the engine's own memory, `native` of the device's API: usable in every call that takes a block, until
 * gm_free lets go of it (at once, whatever the stream; nothing is destroyed). Counts as requested, in use and reserved,
 * and against the pool's cap. INVALID_ARGUMENT, also where it overlaps memory that the pool has, as far as addresses
 * tell: an OpenCL or Vulkan object without one can be wrapped twice, and counts twice; NOT_SUPPORTED (the backend
 * cannot), OVER_LIMIT, OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_block_wrap(gm_pool *pool, const gm_native_memory *native, gm_block *out, gm_error *err);

/* Native objects of a block: `out` is the API's struct with its head filled. Borrowed until the block is freed.
 * INVALID_ARGUMENT, also for the struct of another API; NOT_SUPPORTED: the API has no such object; FORKED. */
GM_API gm_status gm_block_native(gm_pool *pool, const gm_block *block, gm_native_memory *out, gm_error *err);

/* A native object of its own for a range of a block (cl sub-buffer, VkBuffer at an offset). The caller destroys it
 * before the block is freed. INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, FORKED, and what the driver said; NOT_SUPPORTED: the
 * API has none, or the block is of dedicated memory. */
GM_API gm_status gm_block_view_create(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes,
                                      uint64_t *out_view, gm_error *err);
GM_API gm_status gm_block_view_destroy(gm_pool *pool, uint64_t view, gm_error *err);

/* The driver allocation behind a block and where in it the block lies. For layers above and for backends' own calls.
 * INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_block_memory(gm_pool *pool, const gm_block *block, gm_memory *out_memory, uint64_t *out_offset);

/* Give pooled memory back to the backend until at most `keep_bytes` are pooled. The answer is the bytes given back.
 * Blocks whose work is not known to be done stay. gm learns late of a wait by the engine's own means (clFinish): for a
 * sure answer call gm_stream_sync, or gm_stream_passed, before. */
GM_API uint64_t gm_pool_trim(gm_pool *pool, uint64_t keep_bytes);

/* Change the cap (0: by configuration); what is already out stays. Where neither memory_fraction nor min_free_bytes is
 * set, 70 % of the device's memory is a good cap: it leaves about 30 % to the driver, the display and other
 * processes. */
GM_API gm_status gm_pool_set_max_bytes(gm_pool *pool, uint64_t bytes, gm_error *err);

/* Foreign memory held beside the pool counts in its statistics and limits: `bytes` taken (positive) or given back.
 * OVER_LIMIT: the cap has no room for it, nothing is recorded. INVALID_ARGUMENT: more given back than recorded. */
GM_API gm_status gm_pool_record_allocation(gm_pool *pool, int64_t bytes, gm_error *err);

/* What the pool has and did; `out` has its struct_size set. INVALID_ARGUMENT. */
GM_API gm_status gm_pool_stats(gm_pool *pool, gm_stats *out);

/* The sum over the pools that are alive, of a device or of all of a context: peaks are an upper bound.
 * INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_device_stats(gm_device *device, gm_stats *out, gm_error *err);
GM_API gm_status gm_context_stats(gm_context *ctx, gm_stats *out, gm_error *err);

GM_API gm_device *gm_pool_device(const gm_pool *pool);    /* borrowed */
GM_API const char *gm_pool_name(const gm_pool *pool);     /* borrowed until destroyed */
GM_API gm_strategy gm_pool_strategy(const gm_pool *pool); /* what AUTO came to, too; AUTO for NULL */

/* Who holds what: NULL when the pool does not track. Borrowed until the pool is destroyed, also where tracking ends
 * before. */
GM_API gm_tracker *gm_pool_tracker(const gm_pool *pool);

/* Begin or end tracking of a pool in use, while other threads allocate. Blocks that are alive when it begins are
 * entered as born then, with no elements; host memory that a buffer fell back to is not. When it ends the tracker
 * forgets all blocks of the pool and their peaks, and other entries stay. Takes each arena's lock in turn; allocations
 * cost no more afterwards than before. As it is already: GM_OK. OUT_OF_HOST_MEMORY: the pool is not tracked;
 * INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_pool_set_tracking(gm_pool *pool, bool on, gm_error *err);

/* Why a request would fail now, or did: caller-owned report. */
typedef struct gm_explanation {
  uint32_t struct_size;
  gm_acquire acquire; /* what gm_alloc answers to this request now, judged without allocating */
  gm_status status;   /* the same as a status */
  uint64_t asked_bytes;
  uint64_t rounded_bytes;        /* what the pool would take */
  uint64_t largest_pooled_bytes; /* largest block that could be reused */
  uint64_t pooled_bytes;
  uint64_t in_use_bytes;
  uint64_t limit_bytes;       /* gm's own bound on reserved bytes */
  uint64_t device_free_bytes; /* GM_UNKNOWN_BYTES if not known */
  uint64_t used_by_others_bytes;
  uint64_t max_alloc_bytes; /* the driver's bound on one allocation; 0: none known */
  gm_error last_failure;    /* of the backend, in this pool */
  char text[512];           /* all of it in a few sentences, with the smallest change that would help */
} gm_explanation;

/* Say what gm_alloc would answer to this request now, and why; nothing is allocated. A request that would fail gives
 * streams up to a millisecond to say that they are done, as gm_alloc does. GM_OK: `out` is filled, also where the
 * request would fail. INVALID_ARGUMENT: `pool` or `out` is NULL, or a struct_size that gm does not know; FORKED. */
GM_API gm_status gm_explain(gm_pool *pool, const gm_request *request, gm_explanation *out, gm_error *err);

GM_END_DECLS

#endif
