/* A mapping of a range, without the block's record of it. */
#ifndef GM_CORE_BLOCK_MAP_H
#define GM_CORE_BLOCK_MAP_H

#include "core/block/access.h"

/* Maps the range after earlier work of `stream`, with the device's bytes in it. NULL, where gm has no stream for calls
 * that name none: nothing uses the range. NOT_SUPPORTED: the API maps on a queue. End writes the bytes back. */
gm_status gm__map_begin(const gm__access *access, uint32_t mode, gm_stream *stream, void **out, gm_error *err);
gm_status gm__map_end(const gm__access *access, uint32_t mode, void *pointer, gm_stream *stream, gm_error *err);

#endif
