/* From a block to the memory behind it, with the range checked: what copies, native objects and buffers begin with. */
#ifndef GM_CORE_POOL_ACCESS_H
#define GM_CORE_POOL_ACCESS_H

#include "core/pool/pool.h"

typedef struct gm__access {
  gm_device *device;
  gm_memory memory;
  uint64_t offset; /* in `memory` */
  uint64_t bytes;
} gm__access;

/* The range of a live block. INVALID_ARGUMENT: no pool, no such block, range outside of it; FORKED; NOT_SUPPORTED: it
 * lies in several memories (stretch.h). */
gm_status gm__access_open(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, const char *op,
                          gm__access *out, gm_error *err);

/* The same check of a range of a block of several memories, which has no one memory behind it. */
gm_status gm__access_check_spanned(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes,
                                   const char *op, gm_error *err);

/* The stream for a call that was given `stream`, and whether it must wait: NULL gives gm's own, and waits. */
gm_status gm__access_stream(gm_device *device, gm_stream *stream, const char *op, gm_stream **out, gm_error *err);

/* Copies. `out` NULL: returns when the bytes have arrived. 0 bytes: nothing to do. */
gm_status gm__access_write(const gm__access *access, const void *src, gm_stream *stream, gm_point *out, const char *op,
                           gm_error *err);
gm_status gm__access_read(const gm__access *access, void *dst, gm_stream *stream, gm_point *out, const char *op,
                          gm_error *err);
gm_status gm__access_copy(const gm__access *dst, const gm__access *src, gm_stream *stream, gm_point *out,
                          const char *op, gm_error *err);
gm_status gm__access_fill(const gm__access *access, const void *pattern, uint32_t pattern_bytes, gm_stream *stream,
                          gm_point *out, const char *op, gm_error *err);

#endif
