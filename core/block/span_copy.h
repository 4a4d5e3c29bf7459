/* Transfers of a range of a block, in one memory or in several. The public copies and buffers use them. */
#ifndef GM_CORE_BLOCK_SPAN_COPY_H
#define GM_CORE_BLOCK_SPAN_COPY_H

#include "core/block/access.h"

/* The rest of a range of a live block, memory by memory. */
typedef struct gm__span_copy {
  gm_pool *pool;
  const gm_block *block;
  const char *op;
  gm__access here; /* the part in the memory that comes next */
  uint64_t next;   /* where the memories after `here` begin in the block */
  uint64_t left;   /* bytes in the memories after `here` */
} gm__span_copy;

/* Begins with the first memory of the range. `block` is borrowed. Errors: those of gm__access_open. */
gm_status gm__span_copy_open(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, const char *op,
                             gm__span_copy *out, gm_error *err);

/* Goes on by so many bytes of `here`; where that was all of it, to the next memory, if there is one. */
gm_status gm__span_copy_pass(gm__span_copy *copy, uint64_t bytes, gm_error *err);

/* INVALID_ARGUMENT: the two are on different devices, or share bytes. */
gm_status gm__span_copy_check(gm__span_copy dst, const gm__span_copy *src, gm_error *err);

/* Does `what` with all that is left, as gm__range_run does; the bytes of the host are as many. After a failure no part
 * that was begun is under way, except in a capture. */
gm_status gm__span_copy_run(gm__span_copy *copy, const gm__transfer *what, gm_stream *stream, gm_point *out,
                            gm_error *err);
gm_status gm__span_copy_copy(gm__span_copy *dst, gm__span_copy *src, gm_stream *stream, gm_point *out, gm_error *err);

#endif
