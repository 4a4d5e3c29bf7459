/* How a pool asks its device or its upstream for memory. It keeps within the share of the device that gm may take. One
 * thread at a time asks, timed and counted. */
#ifndef GM_CORE_PROVIDER_ASK_H
#define GM_CORE_PROVIDER_ASK_H

#include "core/provider/provider.h"

/* Asks for `bytes` for the request; *token is the upstream's. `want` NULL: asks the device for physical memory of the
 * type of the pool's pages, whose handle comes in out->handle. OVER_LIMIT: nobody was asked. */
gm_status gm__ask(gm__provider *provider, const gm__want *want, uint64_t bytes, gm_memory *out, void **token,
                  gm_error *err);

/* Commits the memory if the request wants that and the backend could not do it while it allocated. That is so for an
 * upstream's memory, and where committing takes a queue that gm may not make. */
gm_status gm__ask_commit(const gm__provider *provider, const gm__want *want, uint64_t bytes, const gm_memory *memory,
                         gm_error *err);

#endif
