/* A range in the host's hands: what it may do with the memory, and mappings without a block's record of them. It does
 * transfers itself where gm has no stream. */
#ifndef GM_CORE_STAGING_RANGE_HOST_H
#define GM_CORE_STAGING_RANGE_HOST_H

#include "core/staging/range.h"

/* The memory's type; NULL: it is not known, as for some imports. */
const gm_memory_type *gm__host_access_type(const gm__access *access);

/* True when host and device see each other's bytes without flush and invalidate. */
bool gm__host_access_is_coherent(const gm__access *access);

/* Widens the range to whole atoms, inside the memory: those bytes belong to this block alone. */
gm__access gm__host_access_widen(const gm__access *access);

/* NOT_SUPPORTED: the host cannot reach the memory at all. */
gm_status gm__host_access_check(const gm__access *access, const char *op, gm_error *err);

/* Maps the range after earlier work of `stream`, with the device's bytes in it. NULL, where gm has no stream for calls
 * that name none: nothing uses the range. NOT_SUPPORTED: the API maps on a queue. End writes the bytes back. */
gm_status gm__map_begin(const gm__access *access, uint32_t mode, gm_stream *stream, void **out, gm_error *err);
gm_status gm__map_end(const gm__access *access, uint32_t mode, void *pointer, gm_stream *stream, gm_error *err);

/* Does a write, a read or a fill with memory of the host at `at`. */
void gm__host_move(const gm__transfer *what, void *at, uint64_t bytes);

/* Writes, reads or fills memory that the host can map; nothing else uses the range. NOT_SUPPORTED: the memory is not
 * host-visible, the API maps on a queue, or it is a copy between blocks. */
gm_status gm__access_by_host(const gm__access *access, const gm__transfer *what, const char *op, gm_error *err);

#endif
