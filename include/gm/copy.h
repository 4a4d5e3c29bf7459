/* Copies between the host and blocks, and between blocks of one device. Offsets and sizes are bytes.
 *
 * With `out` NULL a call returns when the bytes have arrived. With `out` it returns at once. Host memory then stays
 * valid and unchanged until *out has passed, and the caller releases *out. With `stream` NULL gm uses the device's
 * default stream (gm_device_set_default_stream), else one of its own, and the call always waits. An adopted device may
 * have neither. There the host writes, reads, fills and maps host-visible memory, which nothing else may use meanwhile
 * (Vulkan). Other calls are NOT_SUPPORTED; the message names the ways out.
 *
 * gm checks every range against the block. A block may consist of several memories (gm/spans.h). Errors:
 * INVALID_ARGUMENT, DRIVER, DEVICE_LOST, FORKED. NOT_SUPPORTED: gm may not submit to the stream, or no memory is behind
 * the device. BUSY: the pool sleeps as a whole (gm/relocation.h). Every call is thread-safe. */
#ifndef GM_COPY_H
#define GM_COPY_H

#include "gm/pool.h"

GM_BEGIN_DECLS

/* Copies `bytes` from host memory `src` into the block at `offset`. */
GM_API gm_status gm_block_write(gm_pool *pool, const gm_block *block, uint64_t offset, const void *src, uint64_t bytes,
                                gm_stream *stream, gm_point *out, gm_error *err);
/* Copies `bytes` from the block at `offset` into host memory `dst`. */
GM_API gm_status gm_block_read(gm_pool *pool, const gm_block *block, uint64_t offset, void *dst, uint64_t bytes,
                               gm_stream *stream, gm_point *out, gm_error *err);

/* Copies `bytes` between two blocks of one device. The pools may differ. The ranges must not overlap. */
GM_API gm_status gm_block_copy(gm_pool *dst_pool, const gm_block *dst, uint64_t dst_offset, gm_pool *src_pool,
                               const gm_block *src, uint64_t src_offset, uint64_t bytes, gm_stream *stream,
                               gm_point *out, gm_error *err);

/* Fills a range of the block with `pattern`, repeated from `offset`. A pattern has 1, 2, 4, 8 or 16 bytes. `bytes` need
 * not be a multiple of that. */
GM_API gm_status gm_block_fill(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes,
                               const void *pattern, uint32_t pattern_bytes, gm_stream *stream, gm_point *out,
                               gm_error *err);

/* Strided copies: they move a box of bytes, such as a part of a matrix, with other pitches on both sides (gm_rect, in
 * gm/memory.h). Where the backend has no such copy gm copies row by row. INVALID_ARGUMENT: also where a pitch is
 * less than its row or slice, or the box reaches beyond the block. A box of 0 bytes is GM_OK.
 *
 * From host memory `src` into the block. */
GM_API gm_status gm_block_write_rect(gm_pool *pool, const gm_block *block, const void *src, const gm_rect *rect,
                                     gm_stream *stream, gm_point *out, gm_error *err);
/* From the block into host memory `dst`. */
GM_API gm_status gm_block_read_rect(gm_pool *pool, const gm_block *block, void *dst, const gm_rect *rect,
                                    gm_stream *stream, gm_point *out, gm_error *err);
/* Between two blocks of one device. The pools may differ. In one block the boxes share no byte; boxes that lie in one
 * another have equal pitches. */
GM_API gm_status gm_block_copy_rect(gm_pool *dst_pool, const gm_block *dst, gm_pool *src_pool, const gm_block *src,
                                    const gm_rect *rect, gm_stream *stream, gm_point *out, gm_error *err);

/* Records the copy of gm_block_copy into the engine's own command buffer, and submits nothing. On Vulkan
 * `native_command_buffer` is a VkCommandBuffer in the recording state, outside of a render pass. The engine puts its
 * own barriers around the copy, and keeps both blocks until the commands have run. One thread at a time records into a
 * command buffer. NOT_SUPPORTED: the API has no command buffers that gm can write. On CUDA and HIP capture a stream
 * instead. */
GM_API gm_status gm_block_copy_record(gm_pool *dst_pool, const gm_block *dst, uint64_t dst_offset, gm_pool *src_pool,
                                      const gm_block *src, uint64_t src_offset, uint64_t bytes,
                                      uintptr_t native_command_buffer, gm_error *err);

/* Maps a range of the block for the host. `mode` is a sum of gm_map_mode flags with GM_MAP_READ, GM_MAP_WRITE or both.
 * With GM_MAP_DISCARD gm need not keep the contents of the range. The call waits for earlier work of `stream`. The
 * pointer is valid until its gm_block_unmap. A block may have several mappings at once; each has an unmap of its own.
 *
 * With GM_MAP_NO_WAIT `stream` must be NULL. The call then waits for nothing, submits nothing, and needs no leave to
 * submit. The caller knows that the device is done with the range. It serves on memory with GM_MEMORY_PERSISTENT_MAP.
 *
 * NOT_SUPPORTED: the memory is not host-visible (ask for GM_HOST_VISIBLE), or its API maps it by a queue alone, as
 * OpenCL maps a cl_mem, and GM_MAP_NO_WAIT was given. BUSY: OpenCL maps another range at the same address. */
GM_API gm_status gm_block_map(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, uint32_t mode,
                              gm_stream *stream, void **out, gm_error *err);
/* Ends a mapping of a block. If there are several mappings at one address, it ends the newest. A failed call leaves
 * the mapping, and can be repeated. After DEVICE_LOST the mapping is gone all the same, so that the block can be
 * freed. */
GM_API gm_status gm_block_unmap(gm_pool *pool, const gm_block *block, void *pointer, gm_stream *stream, gm_error *err);

/* Returns the host's address of a block's first byte. It is valid until the block is freed, and needs no unmap. The
 * call waits for nothing. Every block of GM_MAPPED has it, and every block in memory with GM_MEMORY_PERSISTENT_MAP.
 * Where the memory is not GM_MEMORY_HOST_COHERENT, the caller flushes and invalidates. NOT_SUPPORTED: no mapping of
 * this memory may stay. */
GM_API gm_status gm_block_host(gm_pool *pool, const gm_block *block, void **out, gm_error *err);

/* Lets work that is submitted later see what the host wrote into a range. gm widens the range to whole atoms
 * (gm_memory_type.atom_bytes). Coherent memory costs nothing. NOT_SUPPORTED: the memory is not host-visible. */
GM_API gm_status gm_block_flush(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, gm_error *err);
/* Lets the host see what work that is done wrote into a range. Bytes of the range, widened to whole atoms, that the
 * host wrote and did not flush are lost. Errors as for gm_block_flush. */
GM_API gm_status gm_block_invalidate(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes,
                                     gm_error *err);

GM_END_DECLS

#endif
