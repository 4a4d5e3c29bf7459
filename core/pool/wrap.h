/* Blocks of memory that gm did not allocate. */
#ifndef GM_CORE_POOL_WRAP_H
#define GM_CORE_POOL_WRAP_H

#include "core/pool/pool.h"

/* Makes a block of the bytes [offset, offset + bytes) of `memory`, which becomes wrapped. gm_free closes `import`;
 * NULL: nothing. On failure the memory stays the caller's. OVER_LIMIT, OUT_OF_HOST_MEMORY, INVALID_ARGUMENT. */
gm_status gm__pool_adopt(gm_pool *pool, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                         struct gm__import *import, gm_block *out, gm_error *err);

#endif
