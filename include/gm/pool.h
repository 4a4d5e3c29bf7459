/* Pools give out memory of a device and keep freed memory for reuse. The hot path carries no gm_error, logs nothing,
 * and allocates nothing after warm-up. gm_explain says afterwards why a request failed. */
#ifndef GM_POOL_H
#define GM_POOL_H

#include "gm/explain.h"
#include "gm/request.h"
#include "gm/share_kind.h"
#include "gm/size.h"
#include "gm/stats.h"
#include "gm/stream.h"

GM_BEGIN_DECLS

typedef enum gm_strategy {
  GM_STRATEGY_AUTO = 0,     /* the key allocation_strategy, whose own "auto" means best_fit */
  GM_STRATEGY_BUCKET = 1,   /* power-of-two buckets; each block is a driver allocation of its own */
  GM_STRATEGY_BEST_FIT = 2, /* parts of segments, near-best fit: fewer driver calls, tighter packing */
  GM_STRATEGY_FIXED = 3     /* blocks of a few sizes, taken when the pool is made (gm/warm_up.h) */
} gm_strategy;

/* An engine's own allocator, from which a pool takes memory instead of from the backend. gm holds no lock when it
 * calls, and calls from the thread that allocates, frees or trims.
 *
 * `allocate` gets `out`, the native struct of the device's API (gm_opencl_memory, gm_vulkan_memory, gm_cpu_memory and
 * so on) with its head filled in. It fills in the rest, to name at least `bytes` at a multiple of `align`. It sets
 * *out_token, which `release` will get. It answers GM_OK or GM_ERR_OUT_OF_DEVICE_MEMORY. gm wraps the native memory, so
 * copies, mappings and native objects of its blocks work as everywhere. Both must not throw. */
typedef struct gm_upstream {
  gm_status (*allocate)(void *user, uint64_t bytes, uint32_t align, gm_native_memory *out, void **out_token);
  void (*release)(void *user, void *token);
  void *user;
  void (*reserved[2])(void); /* NULL */
} gm_upstream;

typedef enum gm_debug_flags {
  GM_DEBUG_POISON = 1,     /* fill new blocks with one pattern, and freed blocks with another */
  GM_DEBUG_CHECK_FREED = 2 /* as GM_DEBUG_POISON; the last freed blocks are also held back, and checked before their
                              reuse */
} gm_debug_flags;

typedef enum gm_pool_flags {
  /* gm gives none of the pool's memory back by itself, nor for other pools. It goes back in gm_pool_trim, the other
   * calls of gm/cleanup.h and gm_pool_destroy. So commands that were recorded and not submitted may still name freed
   * blocks. Such a pool maps no pages. INVALID_ARGUMENT together with a bound in keep_bytes. */
  GM_POOL_NO_TRIM = 1,
  /* A private pool for recordings that run often (docs/pools.md). It takes new memory also for a captured stream. All
   * memory stays until gm_pool_destroy: no trim gives any back. In all else it is as GM_POOL_NO_TRIM. */
  GM_POOL_CAPTURES = 2,
  GM_POOL_TAKE_LARGER = 4, /* FIXED: where no block of its size is left, a request gets one of the next larger size */
  GM_POOL_PASS_LARGER = 8  /* FIXED: a request beyond all sizes gets a driver allocation of its own */
} gm_pool_flags;

/* How a pool is made. Zero-initialised with struct_size set, it is by configuration. Members that count bytes also take
 * GM_NO_LIMIT and GM_NO_BYTES (gm/size.h).
 *
 * On an adopted device the defaults of memory_fraction and min_free_bytes do not hold, because the engine has planned
 * its memory. They hold there when somebody has set the key (a preset, a file, code or the environment), or when they
 * are set here. Neither holds for a pool with an upstream.
 *
 * The members from must_be on say which memory the pool has: what all its requests ask for, beside what each asks
 * itself (gm/request.h). A request for bytes alone then gets such memory, also from gm_malloc, by the fast path. */
typedef struct gm_pool_params {
  uint32_t struct_size;
  gm_strategy strategy;
  const char *name;            /* for reports; copied; NULL: "pool" */
  uint64_t max_bytes;          /* cap on reserved bytes; 0: the key max_pool_bytes. GM_NO_LIMIT: none. memory_fraction
                                  and min_free_bytes hold too */
  const gm_upstream *upstream; /* NULL: the device's backend; copied */
  bool checked;                /* find every wrong free (see gm_free); debug builds always do */
  bool track;                  /* keep a record of each block (gm/tracker.h); the key track_allocations and
                                  gm_pool_set_tracking do too */
  uint32_t debug;              /* gm_debug_flags; the keys debug.poison and debug.check_freed count too */
  uint64_t red_zone_bytes;     /* guarded bytes before and behind each block (gm/debug.h); 0: the key
                                  debug.red_zone_bytes. GM_NO_BYTES: none */
  bool no_vmm;                 /* use driver allocations only, even where the device maps pages */
  gm_share_kind share;         /* how other processes can open its blocks (gm/share.h) */
  double memory_fraction;      /* share of the device's total that gm may take for this pool; above 0, at most 1, and
                                  1 is no bound. 0: the key memory_fraction */
  uint64_t min_free_bytes;     /* bytes that the pool leaves free on the device. 0: the key min_free_bytes. GM_NO_LIMIT:
                                  gm does not look at what is free */
  uint64_t keep_bytes;         /* idle bytes that the pool keeps for reuse. gm looks at each free and each request, and
                                  gives back what is more and whose work is known to be done. GM_NO_BYTES: all of it.
                                  Such a pool maps no pages, and none of its calls take the fast path. 0: the key
                                  cache.max_bytes, at which gm looks only when the pool has grown. GM_NO_LIMIT: no
                                  bound */
  uint64_t flags;              /* gm_pool_flags */
  gm_must_be must_be;          /* a request may have memory that this allows, or that its own `must_be` allows */
  uint32_t usage;              /* gm_usage, added to that of each request */
  uint32_t memory_types;       /* the types that may serve (gm_request.memory_types). 0: all */
  uint32_t require;            /* gm_memory_flags, added to those of each request */
  uint32_t prefer;             /* gm_memory_flags, added to those of each request */
  float priority;              /* above 0, at most 1: memory of a higher one stays on a full device longer. It holds on
                                  Vulkan (VK_EXT_memory_priority), and has no effect elsewhere. 0: the driver's
                                  default, which is 0.5. Such a pool maps no pages */
  const struct gm_warm_up *sizes; /* FIXED: sizes in ascending order with their counts; copied; NULL: the default */
  uint64_t size_count;            /* entries of `sizes`, at most GM_FIXED_SIZES_MOST; 0 where it is NULL */
} gm_pool_params;

/* The answers of gm_alloc. This list feeds the enum and the names. The numbers never change. New ones go last.
 * - OK: the block is usable at once on the request's stream; in host order, by the host and on any stream.
 * - FRESH: as OK, and the memory was never used before.
 * - NEEDS_WAIT: the block is usable after its point (gm_block_point) has passed on the request's stream. On an ordered
 *   stream this comes only where there was no other memory.
 * - NEEDS_BARRIER: the block is usable after a barrier in the request's stream.
 * - EXHAUSTED: there is no memory now.
 * - OVER_LIMIT: a limit of gm refused.
 * - INVALID: the request is wrong, or the version, the device or the engine does not allow it. No memory would help.
 * - FAILED: the process forked, the device is lost, or the driver failed. */
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

/* Returns the name of an answer, such as "GM_ACQUIRE_NEEDS_WAIT". Another number gives "GM_ACQUIRE_?". The string is
 * static and never NULL. Thread-safe. */
GM_API const char *gm_acquire_name(gm_acquire acquire);

/* Tells whether the caller now has a block, which it must free: OK, FRESH, NEEDS_WAIT, NEEDS_BARRIER. Thread-safe. */
GM_API bool gm_acquired(gm_acquire acquire);

/* A piece of memory, by value. Never grows. */
typedef struct gm_block {
  uint64_t address; /* device address, unique among live blocks of a device; synthetic where the API has none; 0: the
                       block has several memories (gm/spans.h) */
  uint64_t bytes;   /* usable bytes, at least those asked for */
  uint64_t memory;  /* internal: the driver allocation, which may hold other blocks, too */
  uint32_t number;  /* internal */
  uint32_t check;   /* internal */
} gm_block;

/* Creates a pool. `params` may be NULL. The caller destroys *out. Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, FORKED;
 * for FIXED also what gm_pool_warm_up says, and nothing is left over. NOT_SUPPORTED: the device's memory cannot be
 * shared as `share` says, or none is as `memory_types`, `require` and `must_be` say. A pool with red zones or patterns
 * needs memory that gm can read, and a stream of gm's own. NOT_SUPPORTED also where these are missing. */
GM_API gm_status gm_pool_create(gm_device *device, const gm_pool_params *params, gm_pool **out, gm_error *err);

/* Destroys a pool. It waits for the work of the streams that blocks were freed on. NULL is GM_OK. BUSY, and the pool
 * stays as it is:
 * - callers still hold blocks, or a request waits for the pool's memory;
 * - the engine is capturing one of those streams;
 * - work of such a stream may still run, and gm can neither record a point nor wait there. The engine gave no leave to
 *   submit, or the stream belongs to another thread. `err` names the stream;
 * - another pool of the device has been asking this one for memory for more than a second. */
GM_API gm_status gm_pool_destroy(gm_pool *pool, gm_error *err);

/* Destroys a pool whose blocks callers still hold, for a destructor that cannot act on BUSY. It frees every block, and
 * gives back wrapped and imported memory as gm_free does. Before that it waits for all streams of the device that it
 * can ask, and ends mappings and the recording. It cannot ask three kinds: streams without leave to submit, streams in
 * a capture, and queues that it does not know. The engine has waited for those. NULL is GM_OK.
 *
 * The name `pool` stays known until the context is destroyed, and costs a few kilobytes until then. Calls on it, also
 * gm_free of its blocks, answer INVALID_ARGUMENT, gm_alloc INVALID. Buffers, scopes, managed memory, loaded models,
 * watches, caches and stores of the pool are still to be ended, caches and stores before the device. The caller
 * destroys its views before. No other thread may be in a call on the pool, or close a stream of its device.
 *
 * It visits each block once, some nanoseconds each beside what the driver takes, and holds no lock that other pools
 * take. After GM_OK `err` has the status GM_OK. Its message says how many blocks and bytes were still out, and how many
 * streams gm could not ask. gm logs it where blocks were out. BUSY: another pool has been asking this one for memory
 * for ten seconds, and nothing has changed. INVALID_ARGUMENT: the pool is destroyed. In a forked child it is
 * gm_pool_destroy. */
GM_API gm_status gm_pool_destroy_force(gm_pool *pool, gm_error *err);

/* Allocates a block. An answer for which gm_acquired is true fills *out, and the caller frees the block. While the
 * engine is capturing the request's stream, gm serves only memory that it already holds and that needs no wait.
 * Otherwise it answers EXHAUSTED. A pool of BEST_FIT also answers EXHAUSTED when the calling thread has 2^24 blocks
 * with free chunks between them.
 *
 * With `deadline_ns` the call waits for memory. Requests that wait are served in the order in which they came, of all
 * pools of the device. One that waits for its own pool, at the cap or a quota, lets requests of other pools pass. A
 * request without a deadline does not join them, and may take memory before them. If the time is up, the answer is
 * EXHAUSTED, and gm_explain tells the cause DEADLINE. A request that no free could serve is refused at once, and so is
 * one of a captured stream. Hold no lock that the thread takes which frees. */
GM_API gm_acquire gm_alloc(gm_pool *pool, const gm_request *request, gm_block *out);

/* Frees a block in the order of `stream`: work already submitted there may still use it. NULL means host order: nothing
 * uses the block any more. gm_free waits for no stream, except for those of an imported block, and in a pool with red
 * zones or patterns.
 *
 * After these answers nothing has changed:
 * - INVALID_ARGUMENT: the stream is another device's, or the block is no live block of this pool.
 * - BUSY: the block is mapped. For an imported block also: the stream is being captured, or gm can neither record a
 *   point nor wait there (gm_explain has the reason).
 * - OUT_OF_HOST_MEMORY: gm cannot note the stream.
 *
 * DAMAGED: the block is freed, and gm found it damaged (gm/debug.h). FORKED.
 *
 * gm compares all five members of a block that is part of a segment (best_fit). It does so for every block of a checked
 * pool, and of a pool with red zones or patterns. In an unchecked pool a block that is a whole driver allocation is
 * identified by its two internal numbers only. Such are all blocks of a bucket pool, and the wrapped, imported and
 * managed blocks of any pool. Passing one of those with other members changed, or one that you made up, is undefined
 * behaviour. */
GM_API gm_status gm_free(gm_pool *pool, const gm_block *block, gm_stream *stream);

/* Frees a block at a point. gm may reuse the block when the point has passed and work that gm_use_on named is done. A
 * point that has passed, a zero point and a point of a closed stream free at once, as gm_free with NULL.
 *
 * At any other point gm frees the block in the order of its stream, which may reuse it itself, as after gm_free. The
 * block may come back later than its point where other memory or gm_use_on needs that stream, too. gm waits for an
 * imported block. The point stays the caller's and may be released at once. The native object behind an imported point
 * must live until the point has passed.
 *
 * INVALID_ARGUMENT: the point is another device's. Other errors are those of gm_free, and `err` has the reason.
 * Thread-safe. */
GM_API gm_status gm_free_at(gm_pool *pool, const gm_block *block, const gm_point *point, gm_error *err);

/* Notes that `stream` also uses the block, by work submitted before this call or before gm_free. Its reuse waits for
 * that work. Errors: OUT_OF_HOST_MEMORY, FORKED, and INVALID_ARGUMENT as for gm_free. */
GM_API gm_status gm_use_on(gm_pool *pool, const gm_block *block, gm_stream *stream);

/* Does as gm_use_on, for the live block that contains an address. `pool` NULL: a block of any pool of the stream's
 * device. INVALID_ARGUMENT: also where no live block contains the address. OUT_OF_HOST_MEMORY, FORKED. Thread-safe. */
GM_API gm_status gm_use_on_ptr(gm_pool *pool, const void *pointer, gm_stream *stream);

/* Does as gm_use_on, for all streams that are open on the pool's device now. The block's reuse waits for what was
 * submitted to any of them. It costs a step for each stream. OUT_OF_HOST_MEMORY: repeat the call, because only some
 * streams are noted. INVALID_ARGUMENT, FORKED. Thread-safe. */
GM_API gm_status gm_use_on_all(gm_pool *pool, const gm_block *block);

/* Returns the point to wait for after GM_ACQUIRE_NEEDS_WAIT. It is borrowed until the block is freed, and zero when
 * there is none. */
GM_API gm_point gm_block_point(gm_pool *pool, const gm_block *block);

/* Allocates a block and returns its address. gm inserts waits. NULL: the request failed. */
GM_API void *gm_malloc(gm_pool *pool, uint64_t bytes, gm_stream *stream);
/* Does as gm_malloc, for a request with an alignment, a tag or wishes for memory. It has GM_INSERT_WAIT, and no
 * GM_ALLOW_SPANS. NULL: the request failed, or is NULL. */
GM_API void *gm_malloc_request(gm_pool *pool, const gm_request *request);
/* Frees the block at an address that gm_malloc or gm_malloc_request returned, in the order of `stream`. A NULL pointer
 * is GM_OK. INVALID_ARGUMENT: no live block of at least `bytes_or_0` bytes begins at the pointer. */
GM_API gm_status gm_free_ptr(gm_pool *pool, void *pointer, uint64_t bytes_or_0, gm_stream *stream);

/* Finds the live block that contains an address. NOT_FOUND: no block of this pool does. A block of several memories
 * (gm/spans.h) is returned as a whole. Constant time: at most 64 table look-ups.
 *
 * The first look-up inside an arena enters all its blocks into a table. From then on each block costs 16 to 32 bytes of
 * host memory. Without that memory gm walks the arena's blocks instead. */
GM_API gm_status gm_block_of(gm_pool *pool, const void *pointer, gm_block *out);

/* The facts that gm knows about the live block that contains an address. */
typedef struct gm_pointer_info {
  uint32_t struct_size; /* set by the caller: sizeof(gm_pointer_info) */
  uint32_t tag;
  gm_pool *pool;            /* borrowed */
  gm_block block;           /* its `address` is where the block begins */
  uint64_t offset;          /* bytes from the block's begin to the address, across all memories of the block */
  uint64_t requested_bytes; /* bytes that the caller asked for */
  uint64_t stream;          /* gm_stream_id of the request's stream; 0: none, or it is closed */
} gm_pointer_info;

/* Finds the live block that contains an address, in all pools of a device. Another thread may free the block meanwhile.
 * It looks into one pool after the other, so its time grows with their number (gm_block_of knows the pool).
 * Errors: INVALID_ARGUMENT, FORKED. NOT_FOUND: no live block contains the address. */
GM_API gm_status gm_pointer_find(gm_device *device, const void *pointer, gm_pointer_info *out);

/* Makes a block of the engine's own memory. `native` is the struct of the device's API. The block is usable in every
 * call that takes a block. gm_free releases it at once, whatever the stream, and destroys nothing of the engine's. It
 * counts as requested, in use and reserved, and against the pool's cap.
 *
 * INVALID_ARGUMENT: also where the memory overlaps memory of the pool, as far as addresses show that. An OpenCL or
 * Vulkan object without an address can be wrapped twice, and counts twice. NOT_SUPPORTED: the backend cannot wrap
 * memory. OVER_LIMIT, OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_block_wrap(gm_pool *pool, const gm_native_memory *native, gm_block *out, gm_error *err);

/* Returns the native objects of a block. `out` is the API's struct with its head filled in. The objects are borrowed
 * until the block is freed. Errors: FORKED. INVALID_ARGUMENT: also for the struct of another API. NOT_SUPPORTED: the
 * API has no such object. */
GM_API gm_status gm_block_native(gm_pool *pool, const gm_block *block, gm_native_memory *out, gm_error *err);

/* Returns the native object of exactly the bytes [offset, offset + bytes) of a block. `out` is the API's struct with
 * its head filled in. It is a pointer where the API has addresses. In OpenCL it is `view`, in Vulkan `buffer` with a
 * buffer_offset of 0.
 *
 * Where the block is not all of a native object, gm makes one at the first call for a range. Later calls for the range
 * return it again, and so do calls for a later block at the same place. It is borrowed until the block is freed, and
 * may be used by work that the free still allows. gm destroys it with the memory, or when no work may use it any more
 * and the pool keeps more than 512. Then 256 stay that no block uses, first those that were asked for again. If the
 * block is wrapped or imported, gm destroys it in gm_free. The call may record points.
 *
 * INVALID_ARGUMENT: also for an `offset` that is no multiple of gm_device_info.alignment. NOT_SUPPORTED: the range is
 * a part of a GM_DEDICATED block, or of a Vulkan pool with sparse buffers (gm_pool_params.no_vmm), or the block has
 * several memories. OUT_OF_HOST_MEMORY, FORKED, and what the driver said. Thread-safe. */
GM_API gm_status gm_block_object(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes,
                                 gm_native_memory *out, gm_error *err);

/* Creates a native object for a range of a block: a sub-buffer (OpenCL) or a VkBuffer at an offset. The caller destroys
 * it before the block is freed. Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, FORKED, and what the driver said.
 * NOT_SUPPORTED: the API has no such object, or the block is in dedicated memory. */
GM_API gm_status gm_block_view_create(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes,
                                      uint64_t *out_view, gm_error *err);
/* Destroys a view. Errors: INVALID_ARGUMENT, FORKED, and what the driver said. */
GM_API gm_status gm_block_view_destroy(gm_pool *pool, uint64_t view, gm_error *err);

/* Returns the driver allocation behind a block, and the block's offset in it. It is for layers above gm and for a
 * backend's own calls. Errors: INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_block_memory(gm_pool *pool, const gm_block *block, gm_memory *out_memory, uint64_t *out_offset);

/* Gives pooled memory back to the backend until at most `keep_bytes` are pooled. Returns the bytes given back. Blocks
 * whose work is not known to be done stay. gm learns late of a wait by the engine's own means, such as clFinish. For a
 * sure answer call gm_stream_sync or gm_stream_passed before. */
GM_API uint64_t gm_pool_trim(gm_pool *pool, uint64_t keep_bytes);

/* Changes the cap on reserved bytes. 0 means: by configuration; of a FIXED pool: what its sizes take. GM_NO_LIMIT: no
 * cap. Blocks that callers hold stay. Where neither memory_fraction nor min_free_bytes is set, 70 % of the device's
 * memory is a good cap. It leaves about 30 % to the driver, the display and other processes. */
GM_API gm_status gm_pool_set_max_bytes(gm_pool *pool, uint64_t bytes, gm_error *err);

/* Counts memory that the caller holds beside the pool in its statistics and limits. `bytes` is positive for memory
 * taken, negative for memory given back. OVER_LIMIT: the cap has no room, and nothing is recorded. INVALID_ARGUMENT:
 * more was given back than recorded. */
GM_API gm_status gm_pool_record_allocation(gm_pool *pool, int64_t bytes, gm_error *err);

/* Returns the statistics of a pool. The caller sets out->struct_size. INVALID_ARGUMENT. */
GM_API gm_status gm_pool_stats(gm_pool *pool, gm_stats *out);

/* Returns the sum of the statistics of a device's live pools. Peaks are an upper bound. It looks at each pool, 256 of
 * them inside the context's lock. Beside other threads the figures are of several moments. Errors: INVALID_ARGUMENT,
 * FORKED. */
GM_API gm_status gm_device_stats(gm_device *device, gm_stats *out, gm_error *err);
/* Returns the sum of the statistics of a context's live pools. Peaks are an upper bound. Errors: INVALID_ARGUMENT,
 * FORKED. */
GM_API gm_status gm_context_stats(gm_context *ctx, gm_stats *out, gm_error *err);

/* Returns the device of a pool. Borrowed. */
GM_API gm_device *gm_pool_device(const gm_pool *pool);
/* Returns the name of a pool. Borrowed until the pool is destroyed. */
GM_API const char *gm_pool_name(const gm_pool *pool);
/* Returns the strategy of a pool, which AUTO has become. NULL gives AUTO. */
GM_API gm_strategy gm_pool_strategy(const gm_pool *pool);

GM_END_DECLS

#endif
