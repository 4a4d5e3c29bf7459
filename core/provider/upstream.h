/* Memory from the user's callbacks instead of the backend. The backend wraps it. */
#ifndef GM_CORE_PROVIDER_UPSTREAM_H
#define GM_CORE_PROVIDER_UPSTREAM_H

#include "core/provider/provider.h"

/* Asks the pool's upstream; *out_token is for gm__upstream_free. The upstream's own refusal, DRIVER (it said GM_OK and
 * gave less), NOT_SUPPORTED (the backend cannot wrap memory). */
gm_status gm__upstream_alloc(gm__provider *provider, uint64_t bytes, uint32_t align, gm_memory *out, void **out_token,
                             gm_error *err);

/* Releases the wrapped memory, then tells the upstream. A forked child does not tell the upstream. */
void gm__upstream_free(gm__provider *provider, const gm_memory *memory, void *token);

#endif
