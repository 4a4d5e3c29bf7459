/* Objects that end by themselves where their variable ends, on every path out of a block of C (GCC and Clang):
 *
 *   GM_AUTO(gm_buffer) *buffer = NULL;
 *   if (gm_buffer_create(pool, &params, &buffer, err)) return;   // nothing to release
 *   ...                                                          // released here, and at each return
 *
 * The variable must be initialised. Set it to NULL to keep the object. A buffer is released in host order, so work of
 * streams is done, or noted by gm_buffer_unlock. A scope releases in the order of the streams of its requests. In C++
 * use gm/gm.hpp.
 *
 * Nobody gets the status of such an end. A stream, pool, device or context that cannot end (BUSY) stays. The context's
 * log and its hook gm_context_params.left_open are told (gm_tell_left_open). */
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
static inline void gm_stream_auto_end(gm_stream **stream) {
  gm_error why = {.status = GM_OK};
  gm_context *ctx = gm_device_context(gm_stream_device(*stream));
  const gm_status status = gm_stream_close(*stream, &why);
  if (status) gm_tell_left_open(ctx, "gm_stream", status, &why);
}
static inline void gm_pool_auto_end(gm_pool **pool) {
  gm_error why = {.status = GM_OK};
  gm_context *ctx = gm_device_context(gm_pool_device(*pool));
  const gm_status status = gm_pool_destroy(*pool, &why);
  if (status) gm_tell_left_open(ctx, "gm_pool", status, &why);
}
static inline void gm_device_auto_end(gm_device **device) {
  gm_error why = {.status = GM_OK};
  gm_context *ctx = gm_device_context(*device);
  const gm_status status = gm_device_close(*device, &why);
  if (status) gm_tell_left_open(ctx, "gm_device", status, &why);
}
static inline void gm_context_auto_end(gm_context **ctx) {
  gm_error why = {.status = GM_OK};
  const gm_status status = gm_context_destroy(*ctx, &why);
  if (status) gm_tell_left_open(*ctx, "gm_context", status, &why);
}

#endif

#endif
