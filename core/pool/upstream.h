/* Memory from the user's callbacks instead of the backend: native memory that the backend wraps. */
#ifndef GM_CORE_POOL_UPSTREAM_H
#define GM_CORE_POOL_UPSTREAM_H

#include "core/pool/pool.h"

/* Ask the pool's upstream. Its own refusal, DRIVER (it said GM_OK and gave less), NOT_SUPPORTED (the backend cannot
 * wrap memory). `*out_token` is for gm__upstream_give. */
gm_status gm__upstream_take(gm_pool *pool, uint64_t bytes, uint32_t align, gm_memory *out, void **out_token,
                            gm_error *err);

/* Let go of the memory, then tell the upstream; in a forked child only the first. */
void gm__upstream_give(gm_pool *pool, const gm_memory *memory, void *token);

#endif
