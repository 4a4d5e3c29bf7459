/* Transfers of a range of a block, in one memory or in several: what the public copies and buffers are made of. */
#ifndef GM_CORE_POOL_STRETCH_H
#define GM_CORE_POOL_STRETCH_H

#include "core/pool/access.h"

/* What is left of a range of a live block, memory by memory. */
typedef struct gm__stretch {
  gm_pool *pool;
  const gm_block *block;
  const char *op;
  gm__access here; /* in the memory that comes next */
  uint64_t next;   /* where the rest begins in the block */
  uint64_t left;   /* bytes of the rest */
} gm__stretch;

/* Errors: those of gm__access_open. `block` is borrowed. */
gm_status gm__stretch_open(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, const char *op,
                           gm__stretch *out, gm_error *err);

/* So many bytes of `here` are done; where that is all of it the next memory comes, if there is one. */
gm_status gm__stretch_pass(gm__stretch *stretch, uint64_t bytes, gm_error *err);

/* As gm__access_write and so on, of all that is left; `pattern_bytes` is 1 to 16. After a failure no part that was
 * begun is under way, but in a capture. */
gm_status gm__stretch_write(gm__stretch *stretch, const void *src, gm_stream *stream, gm_point *out, gm_error *err);
gm_status gm__stretch_read(gm__stretch *stretch, void *dst, gm_stream *stream, gm_point *out, gm_error *err);
gm_status gm__stretch_fill(gm__stretch *stretch, const void *pattern, uint32_t pattern_bytes, gm_stream *stream,
                           gm_point *out, gm_error *err);
gm_status gm__stretch_copy(gm__stretch *dst, gm__stretch *src, gm_stream *stream, gm_point *out, gm_error *err);

#endif
