/* Memory that several processes use. A block leaves a process as a gm_shared. That travels by any means, or over a Unix
 * socket. It enters the other process as a block of a pool there.
 *
 * Lifetime: the exporter keeps the block, and its process lives, until every import of it is freed. gm cannot see
 * imports in other processes. Where the exporter ends first, the others lose the contents at best. With IPC of CUDA and
 * HIP their next access can fail and lose them the device. A descriptor keeps the driver's memory alive by itself. But
 * the exporting pool may hand the same bytes to its next block.
 *
 * Order: points do not cross processes. Each side waits for its work on the block (gm_stream_sync) before it tells the
 * other that the bytes are ready. */
#ifndef GM_SHARE_H
#define GM_SHARE_H

#include "gm/pool.h"
#include "gm/share_kind.h"

GM_BEGIN_DECLS

/* Makes the block known to other processes, in the way that the pool was made for (gm_pool_params.share). They can open
 * the driver's whole allocation, of which the block may be a part. So keep in such a pool only memory that they may
 * see. A descriptor in *out belongs to the caller: gm_shared_close.
 *
 * Errors: FORKED, DEVICE_LOST, DRIVER. INVALID_ARGUMENT: the block is not live, or is wrapped or imported; the pool was
 * not made to share; out->struct_size is wrong. NOT_SUPPORTED: the memory is pinned host memory, or the driver refuses.
 * Thread-safe. */
GM_API gm_status gm_block_export(gm_pool *pool, const gm_block *block, gm_shared *out, gm_error *err);

/* Makes a block of memory that another process exported; where the driver allows that, also this process. The block is
 * usable in every call that takes a block. It counts as requested, in use and reserved, and against the pool's cap. The
 * pool need not be made to share. `shared` and its descriptor stay the caller's and can be closed at once.
 *
 * gm_free ends the import. It waits for the stream that it names, and for those of gm_use_on. It answers BUSY while one
 * of them is captured, or where nothing can wait for it.
 *
 * gm opens one allocation of the driver once for each device, and closes it with its last block. It does so as far as
 * the handle shows that it is the same (IPC, dma-buf, memfd). If you import overlapping ranges into one pool, look-ups
 * by pointer find only the first, and none once that is freed. Free the others by their gm_block.
 *
 * gm checks every word of `shared`, and what the driver opened. Errors: OVER_LIMIT, OUT_OF_HOST_MEMORY, FORKED,
 * DEVICE_LOST, DRIVER. INVALID_ARGUMENT: a word is impossible, or the memory is of another device or backend.
 * NOT_SUPPORTED: the device cannot open this kind. Thread-safe. */
GM_API gm_status gm_block_import(gm_pool *pool, const gm_shared *shared, gm_block *out, gm_error *err);

/* Closes the descriptor, if there is one, and zeroes *shared except struct_size. Imported memory stays. NULL and a zero
 * struct are allowed. */
GM_API void gm_shared_close(gm_shared *shared);

/* Sends one gm_shared with its descriptor over a connected Unix socket, of streams or packets. A gm of the same version
 * receives it. The call waits as the socket does. The sender keeps its own descriptor.
 *
 * Errors: INVALID_ARGUMENT. TIMEOUT: the socket was not ready (non-blocking, SO_SNDTIMEO). If part of a message went
 * through, the socket is of no more use. IO: the other side is gone, or this is no such socket. Thread-safe. */
GM_API gm_status gm_shared_send(int socket, const gm_shared *shared, gm_error *err);
/* Receives one gm_shared with its descriptor. The caller sets out->struct_size, and owns *out: gm_shared_close. The
 * call waits as the socket does.
 *
 * Errors: INVALID_ARGUMENT. TIMEOUT: the socket was not ready (non-blocking, SO_RCVTIMEO). If part of a message went
 * through, the socket is of no more use. IO: the other side is gone, or this is no such socket. FORMAT: the message is
 * no gm_shared, or has too many or too few descriptors; gm keeps none of it. Thread-safe. */
GM_API gm_status gm_shared_receive(int socket, gm_shared *out, gm_error *err);

GM_END_DECLS

#endif
