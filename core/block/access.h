/* From a block to the memory behind it, with the range checked. Copies, native objects and buffers begin here. */
#ifndef GM_CORE_BLOCK_ACCESS_H
#define GM_CORE_BLOCK_ACCESS_H

#include "core/pool/pool.h"

typedef struct gm__access {
  gm_device *device;
  gm_memory memory;
  uint64_t offset; /* in `memory` */
  uint64_t bytes;
} gm__access;

/* Finds the memory behind a range of a live block. INVALID_ARGUMENT: no pool, no such block, or a range outside of it.
 * FORKED. NOT_SUPPORTED: the block lies in several memories (span_copy.h). BUSY: the pool sleeps, and `bytes` of the
 * block's memory are wanted, not its place alone. */
gm_status gm__access_open(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, const char *op,
                          gm__access *out, gm_error *err);

/* Checks a range of a block of several memories, which has no one memory behind it. Errors: as for gm__access_open. */
gm_status gm__access_check_spanned(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes,
                                   const char *op, gm_error *err);

/* Chooses the stream for a call that was given `stream`. For NULL it is gm's own, and the call must wait. */
gm_status gm__access_stream(gm_device *device, gm_stream *stream, const char *op, gm_stream **out, gm_error *err);

/* Waits for the stream's earlier work. */
gm_status gm__access_settle(gm_stream *stream, gm_error *err);

/* A wait has failed, and work of the stream may be under way: waits again, and once more where that fails. NULL does
 * nothing. */
void gm__access_rest(gm_stream *stream);

typedef enum gm__transfer_kind {
  GM__TRANSFER_WRITE, /* from `src` on the host */
  GM__TRANSFER_READ,  /* to `dst` on the host */
  GM__TRANSFER_COPY,  /* from `from`, of the same device and with as many bytes */
  GM__TRANSFER_FILL   /* with the `pattern_bytes` bytes at `src` */
} gm__transfer_kind;

typedef struct gm__transfer {
  gm__transfer_kind kind;
  const void *src;
  void *dst;
  const gm__access *from;
  uint32_t pattern_bytes;
} gm__transfer;

/* Transfers the bytes of a range. `out` NULL: the call returns when they have arrived. 0 bytes: nothing is done. */
gm_status gm__access_run(const gm__access *access, const gm__transfer *what, gm_stream *stream, gm_point *out,
                         const char *op, gm_error *err);
gm_status gm__access_write(const gm__access *access, const void *src, gm_stream *stream, gm_point *out, const char *op,
                           gm_error *err);
gm_status gm__access_read(const gm__access *access, void *dst, gm_stream *stream, gm_point *out, const char *op,
                          gm_error *err);

#endif
