/* Moving data between the host and blocks, and between blocks. Offsets and sizes are bytes. With `out` NULL the call
 * returns when the bytes have arrived; otherwise at once: host memory stays valid and unchanged until *out has passed,
 * and the caller releases *out. `stream` NULL: a stream of gm's own, and the call always waits. Ranges are checked
 * against the block, which may lie in several memories (gm/spans.h). Errors: INVALID_ARGUMENT, NOT_SUPPORTED (the
 * stream may not submit; no memory behind the device), DRIVER, DEVICE_LOST, FORKED. Thread-safe. */
#ifndef GM_COPY_H
#define GM_COPY_H

#include "gm/pool.h"

GM_BEGIN_DECLS

/* Copy `bytes` from host memory into the block at `offset`, or from there into host memory. */
GM_API gm_status gm_block_write(gm_pool *pool, const gm_block *block, uint64_t offset, const void *src, uint64_t bytes,
                                gm_stream *stream, gm_point *out, gm_error *err);
GM_API gm_status gm_block_read(gm_pool *pool, const gm_block *block, uint64_t offset, void *dst, uint64_t bytes,
                               gm_stream *stream, gm_point *out, gm_error *err);

/* Between blocks of the same device; the pools may differ. Ranges must not overlap. */
GM_API gm_status gm_block_copy(gm_pool *dst_pool, const gm_block *dst, uint64_t dst_offset, gm_pool *src_pool,
                               const gm_block *src, uint64_t src_offset, uint64_t bytes, gm_stream *stream,
                               gm_point *out, gm_error *err);

/* `pattern` of 1, 2, 4, 8 or 16 bytes, repeated from `offset`; bytes need not be a multiple. */
GM_API gm_status gm_block_fill(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes,
                               const void *pattern, uint32_t pattern_bytes, gm_stream *stream, gm_point *out,
                               gm_error *err);

/* Host access. `mode`: GM_MAP_READ, GM_MAP_WRITE or both; GM_MAP_DISCARD: what was in the range need not be kept
 * (gm_map_mode in gm/backend.h). map waits for earlier work of `stream`; the pointer is valid until unmap. One mapping
 * of a block at a time. NOT_SUPPORTED when the memory is not host-visible (ask for GM_HOST_VISIBLE). An unmap that
 * fails leaves the mapping, to be tried again; on a lost device (DEVICE_LOST) it is gone all the same, so that the
 * block can be freed.
 */
GM_API gm_status gm_block_map(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, uint32_t mode,
                              gm_stream *stream, void **out, gm_error *err);
GM_API gm_status gm_block_unmap(gm_pool *pool, const gm_block *block, void *pointer, gm_stream *stream, gm_error *err);

GM_END_DECLS

#endif
