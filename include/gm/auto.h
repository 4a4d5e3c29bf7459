/* Objects that end by themselves where their variable ends, on every path out of a block of C (GCC and Clang):
 *
 *   GM_AUTO(gm_buffer) *buffer = NULL;
 *   if (gm_buffer_create(pool, &params, &buffer, err)) return;   // nothing to release
 *   ...                                                          // released here, and at each return
 *
 * The variable must be initialised. Set it to NULL to keep the object. A buffer is released in host order, so work of
 * streams is done, or noted by gm_buffer_unlock. A scope releases in the order of the streams of its requests. A
 * failure to end (BUSY) is not told: end such objects yourself. In C++ use gm/gm.hpp. */
#ifndef GM_AUTO_H
#define GM_AUTO_H

#include "gm/buffer.h"
#include "gm/context.h"
#include "gm/device.h"
#include "gm/pool.h"
#include "gm/scope.h"
#include "gm/stream.h"

#if defined(__GNUC__) && !defined(__cplusplus)

/* For gm_buffer, gm_scope, gm_stream, gm_pool, gm_device and gm_context. */
#define GM_AUTO(type) __attribute__((cleanup(type##_auto_end))) type

static inline void gm_buffer_auto_end(gm_buffer **buffer) { gm_buffer_release(*buffer, NULL); }
static inline void gm_scope_auto_end(gm_scope **scope) { gm_scope_end(*scope, NULL); }
static inline void gm_stream_auto_end(gm_stream **stream) { gm_stream_close(*stream, NULL); }
static inline void gm_pool_auto_end(gm_pool **pool) { gm_pool_destroy(*pool, NULL); }
static inline void gm_device_auto_end(gm_device **device) { gm_device_close(*device, NULL); }
static inline void gm_context_auto_end(gm_context **ctx) { gm_context_destroy(*ctx, NULL); }

#endif

#endif
