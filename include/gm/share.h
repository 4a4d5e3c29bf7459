/* Memory between processes (F25): a block leaves as a gm_shared, which travels by any means or over a Unix socket, and
 * comes in as a block of a pool there.
 *
 * Lifetime. The exporter keeps the block, and its process lives, until every import of it is freed: gm cannot see
 * imports in other processes. Where the exporter goes first, the contents are lost to the others at best; with IPC of
 * CUDA and HIP their next access can fail and lose them the device. A descriptor keeps the driver's memory alive by
 * itself, but the exporting pool may hand the same bytes to its next block.
 * Order. Points do not cross: the exporter waits for its work on the block (gm_stream_sync) before it tells the other
 * process that the bytes are there, and the same the other way round. */
#ifndef GM_SHARE_H
#define GM_SHARE_H

#include "gm/pool.h"
#include "gm/share_kind.h"

GM_BEGIN_DECLS

/* How the block can be opened by another process, in the way the pool was made for (gm_pool_params.share). What is
 * opened there is the driver's whole allocation, of which the block may be a part: keep in such a pool only what the
 * other process may see. A descriptor in *out is the caller's: gm_shared_close. Thread-safe.
 * INVALID_ARGUMENT: no live block, a wrapped or imported one, a pool that was not made to share, out->struct_size;
 * NOT_SUPPORTED: memory beside the device (pinned), or the driver says so; FORKED, DEVICE_LOST, DRIVER. */
GM_API gm_status gm_block_export(gm_pool *pool, const gm_block *block, gm_shared *out, gm_error *err);

/* A block of another process's memory (or of this one's, where the driver allows that), usable in every call that takes
 * a block until gm_free, which waits for the stream it names and for those of gm_use_on (BUSY while one is captured, or
 * nothing can wait for it). Counts as requested, in use and reserved, and against the pool's cap. `shared` stays the
 * caller's, its descriptor too: it can be closed at once. Blocks of one allocation of the driver are opened once for a
 * device and closed with the last of them, as far as the handle tells that it is the same (IPC, dma-buf, memfd). If
 * you import overlapping ranges into one pool, look-ups by pointer find only the first, and none once that is freed:
 * free the others by their gm_block. Every word of `shared` is checked, and again
 * what the driver opened. Needs no pool that was made to share. Thread-safe. INVALID_ARGUMENT: words that cannot be, or
 * memory of another device or backend; NOT_SUPPORTED: the device opens nothing of this kind; OVER_LIMIT,
 * OUT_OF_HOST_MEMORY, FORKED, DEVICE_LOST, DRIVER. */
GM_API gm_status gm_block_import(gm_pool *pool, const gm_shared *shared, gm_block *out, gm_error *err);

/* Closes the descriptor, if there is one, and makes *shared all zero but for struct_size; what was imported stays.
 * NULL, and what is zero already, is nothing to do. */
GM_API void gm_shared_close(gm_shared *shared);

/* One gm_shared with its descriptor over a connected Unix socket (stream or packets), for a gm of the same version on
 * the other side. Both wait as the socket does. The sender keeps its own descriptor; the receiver sets
 * out->struct_size and owns *out: gm_shared_close. INVALID_ARGUMENT; TIMEOUT: the socket was not ready (non-blocking,
 * SO_RCVTIMEO, SO_SNDTIMEO), and if part of a message went through, the socket is of no more use; IO: the other side is
 * gone, or it is no such socket; FORMAT: what came is no gm_shared, or has a descriptor too many or too few (nothing of
 * it is kept). */
GM_API gm_status gm_shared_send(int socket, const gm_shared *shared, gm_error *err);
GM_API gm_status gm_shared_receive(int socket, gm_shared *out, gm_error *err);

GM_END_DECLS

#endif
