/* Scopes: objects that end together, newest first, on every path.
 *
 * A scope owns what is made in it: buffers, blocks of several pools and devices, batches, and inner scopes. It owns
 * any other object by a function that releases it. gm_scope_end releases them all, also after one that refuses. GM_AUTO
 * (gm/auto.h) and gm::scope (gm/scope.hpp) end a scope where their variable ends.
 *
 * A block or buffer is released in the order of the stream that the end names, if that is a stream of its device.
 * Otherwise it goes in the order of its request's stream. Host order is for a request without one, or whose stream is
 * closed. Where gm has no host memory to note the stream, it waits for the stream's work.
 *
 * Every function is thread-safe. No other thread may be in a call on a scope that ends, alone or with its outer one. */
#ifndef GM_SCOPE_H
#define GM_SCOPE_H

#include "gm/batch.h"
#include "gm/buffer.h"

GM_BEGIN_DECLS

enum { GM_SCOPE_DEPTH_MOST = 32 }; /* scopes within each other */

typedef struct gm_scope gm_scope;

/* Releases an object that a scope owns. `stream` is what gm_scope_end or gm_scope_clear was given, and may be NULL. gm
 * holds no lock meanwhile, and the function may call gm, but must not throw. BUSY and OUT_OF_HOST_MEMORY: the object is
 * still there, and gm may ask again. After all other answers it counts as released. */
typedef gm_status (*gm_scope_release)(void *object, gm_stream *stream);

/* Begins a scope. gm_scope_end ends it, before its pool is destroyed. Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY,
 * FORKED. */
GM_API gm_status gm_scope_create(gm_pool *pool, gm_scope **out, gm_error *err);
/* Begins a scope within a scope, of its pool. It ends by gm_scope_end, or with the outer one. INVALID_ARGUMENT: also
 * for more than GM_SCOPE_DEPTH_MOST. Other errors are those of gm_scope_create. */
GM_API gm_status gm_scope_nest(gm_scope *outer, gm_scope **out, gm_error *err);

/* Creates a buffer, as gm_buffer_create does. The scope owns its first reference. A buffer that was retained elsewhere
 * lives on. Errors: OUT_OF_HOST_MEMORY, and those of gm_buffer_create. */
GM_API gm_status gm_scope_buffer(gm_scope *scope, const gm_buffer_params *params, gm_buffer **out, gm_error *err);
/* Allocates a block of `pool`, or of the scope's pool for NULL. GM_INSERT_WAIT is implied. The scope frees the block,
 * and nobody else does. INVALID_ARGUMENT: also for a pool of another context. Errors: OUT_OF_HOST_MEMORY, FORKED, and
 * those that gm_explain gives for the request. */
GM_API gm_status gm_scope_alloc(gm_scope *scope, gm_pool *pool, const gm_request *request, gm_block *out,
                                gm_error *err);
/* Allocates a batch of `pool`, or of the scope's pool for NULL, as gm_alloc_batch does. The scope frees its blocks.
 * INVALID_ARGUMENT: also for a pool of another context. Other errors are those of gm_alloc_batch. */
GM_API gm_status gm_scope_batch(gm_scope *scope, gm_pool *pool, const gm_batch_params *params, gm_part *out_parts,
                                size_t *out_failed, gm_error *err);
/* Has the scope own an object, which may be NULL, by the function that releases it. After a failure the object is still
 * the caller's. Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_scope_defer(gm_scope *scope, gm_scope_release release, void *object, gm_error *err);

/* Gives up all that a scope owns. The caller now frees each block, releases each buffer and object, and ends each inner
 * scope. INVALID_ARGUMENT. */
GM_API gm_status gm_scope_keep(gm_scope *scope, gm_error *err);

/* Releases all that a scope owns, newest first, and ends its inner scopes. The scope can be used as before. A refusal
 * stops nothing. An object that answered BUSY or OUT_OF_HOST_MEMORY still belongs to the scope, so the call can be
 * repeated. An inner scope with such an object stays, too. Returns the first failure. Errors: INVALID_ARGUMENT, those
 * of gm_free, and what the functions of gm_scope_defer answer. */
GM_API gm_status gm_scope_clear(gm_scope *scope, gm_stream *stream, gm_error *err);
/* Does as gm_scope_clear, and ends the scope and its inner scopes. An object that refuses stays where it is, and gm
 * logs it: a block stays in its pool. NULL is allowed. It works in a forked child. */
GM_API void gm_scope_end(gm_scope *scope, gm_stream *stream);

GM_END_DECLS

#endif
