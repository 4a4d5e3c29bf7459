/* Buffers: reference-counted, tagged memory that may live in a second place when the first has none (F26-F28).
 *
 * The policy is per request and never silent: a buffer that did not get what was preferred says where it is, is counted
 * in the pool's statistics and reported to the log. Thread-safe; copies of one buffer are ordered by their streams. */
#ifndef GM_BUFFER_H
#define GM_BUFFER_H

#include "gm/copy.h"
#include "gm/tracker.h"

GM_BEGIN_DECLS

typedef struct gm_buffer gm_buffer;

typedef enum gm_fallback {
  GM_FALLBACK_CONFIG = 0, /* cpu_fallback of the configuration: true HOST, false REFUSE */
  GM_FALLBACK_REFUSE = 1, /* device or nothing */
  GM_FALLBACK_PINNED = 2, /* then device-visible host memory */
  GM_FALLBACK_HOST = 3    /* then plain host memory: kernels cannot use it, copies can */
} gm_fallback;

typedef struct gm_buffer_params {
  uint32_t struct_size;
  gm_request request; /* bytes, tag, stream, ...; GM_INSERT_WAIT is implied */
  gm_fallback fallback;
  uint64_t elements; /* for reports; 0: not said */
} gm_buffer_params;

/* A buffer with one reference, where the request says or, if `fallback` allows it, in the next best place. The caller
 * releases *out. Errors: those of gm_explain for the request. */
GM_API gm_status gm_buffer_create(gm_pool *pool, const gm_buffer_params *params, gm_buffer **out, gm_error *err);

/* One reference more. NULL is harmless. */
GM_API void gm_buffer_retain(gm_buffer *buffer);
/* One reference less; NULL is harmless. The last one frees, in that stream's order. What gm_free refuses (BUSY: a
 * captured stream, and no host memory to note it) stays alive in the pool and is logged. */
GM_API void gm_buffer_release(gm_buffer *buffer, gm_stream *stream);

/* Its number, never reused in its context; its bytes as requested; where it lives. */
GM_API uint64_t gm_buffer_id(const gm_buffer *buffer);
GM_API uint64_t gm_buffer_bytes(const gm_buffer *buffer);
GM_API gm_location gm_buffer_location(const gm_buffer *buffer);

/* The block behind a buffer on the device or in pinned memory; NOT_SUPPORTED for plain host memory. */
GM_API gm_status gm_buffer_block(const gm_buffer *buffer, gm_block *out, gm_error *err);

/* Copy between host memory and the buffer at `offset`, wherever the buffer lives; as gm_block_write and gm_block_read
 * with `out` NULL, so the call waits. */
GM_API gm_status gm_buffer_write(gm_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes, gm_stream *stream,
                                 gm_error *err);
GM_API gm_status gm_buffer_read(gm_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes, gm_stream *stream,
                                gm_error *err);

/* Move a buffer that fell back to where it was wanted, contents kept; GM_OK when it is there already, else the reason
 * why there is still no room. No other thread may use the buffer meanwhile. */
GM_API gm_status gm_buffer_promote(gm_buffer *buffer, gm_stream *stream, gm_error *err);

/* Everything created in a scope is released when the scope ends (F27). A buffer retained elsewhere lives on. */
typedef struct gm_scope gm_scope;
/* Begin a scope; create a buffer that belongs to it, as gm_buffer_create. INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, FORKED,
 * and those of gm_buffer_create. gm_scope_end releases its buffers and frees the scope. */
GM_API gm_status gm_scope_create(gm_pool *pool, gm_scope **out, gm_error *err);
GM_API gm_status gm_scope_buffer(gm_scope *scope, const gm_buffer_params *params, gm_buffer **out, gm_error *err);
GM_API void gm_scope_end(gm_scope *scope, gm_stream *stream); /* NULL is fine */

GM_END_DECLS

#endif
