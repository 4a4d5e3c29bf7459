/* Evictable buffers leave the device when memory is short. */
#ifndef GM_CORE_BUFFER_DEMOTE_H
#define GM_CORE_BUFFER_DEMOTE_H

#include "core/pool/pool.h"

/* Moves evictable buffers of the pool to pinned or host memory until they had `bytes`, and gives idle memory back to
 * the driver. The coldest go first, persistent ones last. Returns the bytes that left the device. */
uint64_t gm__demote(gm_pool *pool, uint64_t bytes);

#endif
