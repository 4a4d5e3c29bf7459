/* Buffers: reference-counted, tagged memory that may live in a second place when the first has none.
 *
 * Each request states what may happen, and nothing happens silently. A buffer outside its preferred place says where it
 * is. gm counts it in the pool's statistics and logs it. Every call is thread-safe. Streams order the copies of a
 * buffer. */
#ifndef GM_BUFFER_H
#define GM_BUFFER_H

#include "gm/copy.h"

GM_BEGIN_DECLS

typedef struct gm_buffer gm_buffer;

typedef enum gm_fallback {
  GM_FALLBACK_CONFIG = 0, /* the key cpu_fallback: true means HOST, false REFUSE */
  GM_FALLBACK_REFUSE = 1, /* device memory or nothing */
  GM_FALLBACK_PINNED = 2, /* then host memory that the device can use */
  GM_FALLBACK_HOST = 3    /* then plain host memory: the host computes on it (gm_buffer_host), kernels cannot */
} gm_fallback;

typedef struct gm_buffer_params {
  uint32_t struct_size;
  gm_request request; /* bytes, tag, stream and so on; GM_INSERT_WAIT is implied. GM_RELOCATABLE and GM_EVICTABLE: gm
                         may move the buffer while nobody has locked it (gm/relocation.h); not with GM_MAPPED,
                         GM_ALLOW_SPANS or GM_SHAREABLE */
  gm_fallback fallback;
  uint64_t elements; /* for reports; 0: not stated */
} gm_buffer_params;

/* Creates a buffer with one reference. It lives where the request says or, if `fallback` allows it, in the next best
 * place. The caller releases *out. Errors: those that gm_explain gives for the request. */
GM_API gm_status gm_buffer_create(gm_pool *pool, const gm_buffer_params *params, gm_buffer **out, gm_error *err);

/* Adds one reference. NULL is allowed. */
GM_API void gm_buffer_retain(gm_buffer *buffer);
/* Releases one reference. NULL is allowed. The last release frees the memory in the order of `stream`, after a
 * move that another thread has begun. It is freed after work that gm_buffer_unlock noted, too.
 * Where gm has no host memory to note the stream, it waits for the stream's work. While the engine is capturing the
 * stream it cannot. The memory then stays alive in the pool, and gm logs it. */
GM_API void gm_buffer_release(gm_buffer *buffer, gm_stream *stream);

/* Returns the number of a buffer. A number is never used again in its context. */
GM_API uint64_t gm_buffer_id(const gm_buffer *buffer);
/* Returns the bytes that the caller asked for. */
GM_API uint64_t gm_buffer_bytes(const gm_buffer *buffer);
/* Returns where the buffer lives. */
GM_API gm_location gm_buffer_location(const gm_buffer *buffer);

/* Returns the block of a buffer on the device or in pinned memory. It is the buffer's until the buffer moves or is
 * released for the last time. The call waits while gm moves the buffer. NOT_SUPPORTED: the buffer lives in plain host
 * memory. INVALID_ARGUMENT: also for a buffer of GM_RELOCATABLE or GM_EVICTABLE that nobody has locked. */
GM_API gm_status gm_buffer_block(const gm_buffer *buffer, gm_block *out, gm_error *err);

/* Returns the native object of a buffer: a pointer, cl_mem or VkBuffer that begins with the buffer's first byte. It is
 * that of gm_block_object for the whole block. `out` is the API's struct with its head filled in. It is borrowed until
 * the buffer moves or is released for the last time. Errors: those of gm_buffer_block and gm_block_object. */
GM_API gm_status gm_buffer_object(const gm_buffer *buffer, gm_native_memory *out, gm_error *err);

/* Copies `bytes` from host memory `src` into the buffer at `offset`, wherever the buffer lives. The call waits until
 * the bytes have arrived. Errors: those of gm_block_write. */
GM_API gm_status gm_buffer_write(gm_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes, gm_stream *stream,
                                 gm_error *err);
/* Copies `bytes` from the buffer at `offset` into host memory `dst`, wherever the buffer lives. The call waits until
 * the bytes have arrived. Errors: those of gm_block_read. */
GM_API gm_status gm_buffer_read(gm_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes, gm_stream *stream,
                                gm_error *err);

/* Locks a buffer: it stays where it is until gm_buffer_unlock. Locks are counted, and several threads may have some.
 * *out is the buffer's block, valid until the unlock. `out` may be NULL. The call waits while gm moves the buffer. A
 * move may call a queue's lock hook, so do not call this while you hold the lock that the hook takes. NOT_SUPPORTED:
 * `out` is not NULL, and the buffer lives in plain host memory; it is not locked then. Lock it with NULL, and ask
 * gm_buffer_host. Thread-safe. */
GM_API gm_status gm_buffer_lock(gm_buffer *buffer, gm_block *out, gm_error *err);

/* Returns the host's address of the first byte of a buffer that the caller has locked. So code of the CPU computes on a
 * buffer that fell back. *out is valid until the last lock is taken off. It serves in plain and in pinned host memory,
 * and in device memory that the host can map. The call waits for the work that gm_buffer_unlock noted. No other work
 * may use the buffer meanwhile. A pointer that is kept after the unlock is of no use: gm may have moved the bytes. In
 * debug builds gm always moves those in plain host memory, and leaves the byte 0xDB in each old place.
 *
 * Errors: INVALID_ARGUMENT: also for a buffer that nobody has locked. NOT_SUPPORTED: the host cannot reach the memory
 * (gm_buffer_read and gm_buffer_write copy), or it lies in several pieces. BUSY: the buffer sleeps without its
 * contents. OUT_OF_HOST_MEMORY, FORKED, and those of gm_block_map. Thread-safe. */
GM_API gm_status gm_buffer_host(gm_buffer *buffer, void **out, gm_error *err);

/* Takes one lock off. Work that was submitted to `stream` before may still use the buffer. gm notes a point
 * there, and moves and frees the buffer only after it. NULL: the work is done, or there was none. The last unlock ends
 * the pointer of gm_buffer_host, and may wait for that. After a failure the lock is still there, and gm_buffer_host
 * must be asked again. Errors: INVALID_ARGUMENT: also for a buffer that is not locked. OUT_OF_HOST_MEMORY, FORKED, and
 * those of gm_stream_record. NOT_SUPPORTED: gm may not submit to the stream; unlock with NULL once its work is done.
 * Thread-safe. */
GM_API gm_status gm_buffer_unlock(gm_buffer *buffer, gm_stream *stream, gm_error *err);

/* Moves a buffer to `where`, with its contents. The handle stays; its block and its native object are others then. The
 * move comes after the work that gm_buffer_unlock noted, and after that of `stream`, and has ended on return. A thread
 * that reads, writes or locks the buffer meanwhile waits. The pool's `fallback_bytes` count a buffer that is not where
 * it was wanted. GM_OK: it is there now, or was already.
 *
 * After a failure the buffer is where it was. BUSY: somebody has locked it, or its block is mapped. NOT_SUPPORTED: the
 * device has no pinned memory for it. OUT_OF_HOST_MEMORY. Other errors are those that gm_explain gives, and those of
 * gm_block_copy. Thread-safe. */
GM_API gm_status gm_buffer_move(gm_buffer *buffer, gm_location where, gm_stream *stream, gm_error *err);

/* Moves a buffer that fell back into its preferred place, with its contents. GM_OK: it lives there now, or did already.
 * Other answers say why there is still no room, and are those of gm_buffer_move. */
GM_API gm_status gm_buffer_promote(gm_buffer *buffer, gm_stream *stream, gm_error *err);

GM_END_DECLS

#endif
