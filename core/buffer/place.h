/* The places where a buffer's bytes can be: a block on the device or in pinned memory, or plain host memory. */
#ifndef GM_CORE_BUFFER_PLACE_H
#define GM_CORE_BUFFER_PLACE_H

#include "core/pool/pool.h"
#include "gm/buffer.h"

typedef struct gm__place {
  gm_location location;
  gm_block block;    /* on the device or in pinned memory */
  void *host;        /* plain host memory; NULL elsewhere, and where the contents were dropped */
  uint64_t track_id; /* of plain host memory, in the pool's tracker; 0: none */
} gm__place;

/* True when the answer is a block that needs no wait. */
static inline bool gm__place_served(gm_acquire answer) { return answer == GM_ACQUIRE_OK || answer == GM_ACQUIRE_FRESH; }

/* Memory for the buffer's bytes at `where`. Errors: those of gm_explain for the device, NOT_SUPPORTED where it has no
 * pinned memory, OUT_OF_HOST_MEMORY. */
gm_status gm__place_take(const gm_buffer *buffer, gm_location where, gm_stream *stream, const char *op, gm__place *out,
                         gm_error *err);

/* The bytes of host memory that a place there may take now, as far as that is known. */
uint64_t gm__place_host_bytes(const gm_context *ctx);

/* A place of a block that the pool has handed out for the buffer. */
void gm__place_of_block(const gm_buffer *buffer, const gm_block *block, gm__place *out);

/* In debug builds: gives bytes in plain host memory another address. A pointer that somebody kept points to freed
 * memory then. Where the host has no memory for it, nothing changes. */
void gm__place_scramble(const gm_buffer *buffer, gm__place *place);

/* Is that where the buffer was wanted? */
bool gm__place_is_wanted(const gm_buffer *buffer, const gm__place *place);

/* Copies all bytes of the buffer from where it is to `to`. They have arrived on return. */
gm_status gm__place_copy(gm_buffer *buffer, const gm__place *to, gm_stream *stream, const char *op, gm_error *err);

/* Gives the place back, in the order of `stream`. Errors: those of gm_free; the buffer is still there then. */
gm_status gm__place_leave(const gm_buffer *buffer, gm__place *place, gm_stream *stream);

/* Undoes gm__place_take, after a copy that failed or ended. */
void gm__place_undo(const gm_buffer *buffer, gm__place *place, gm_stream *stream);

#endif
