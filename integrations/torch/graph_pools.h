/* Pools that belong to captured graphs: what a graph uses is handed to nobody else while the graph may run.
 *
 * REQUIRES: the caller takes turns; nothing here locks. */
#ifndef GM_INTEGRATIONS_TORCH_GRAPH_POOLS_H
#define GM_INTEGRATIONS_TORCH_GRAPH_POOLS_H

#include <stdbool.h>

#include "gm/gm.h"
#include "gm_torch.h"

GM_BEGIN_DECLS

enum { GM_GRAPH_POOLS_MOST = 256 };

/* Begins to use the pool of `id` for the card, and makes it at first, with `bytes` ready for a capture. */
gm_status gm_graph_pools_begin(int ordinal, gm_torch_pool_id id, gm_device *device, uint64_t bytes, gm_error *err);
/* Ends that. */
void gm_graph_pools_end(int ordinal, gm_torch_pool_id id);
/* Lets go of the pool of `id`. */
void gm_graph_pools_release(int ordinal, gm_torch_pool_id id);

/* Returns the pool that the card's allocations go to now; NULL: the card's own. */
gm_pool *gm_graph_pools_current(int ordinal);
/* Frees a block of one of the card's graph pools. NOT_FOUND: it is in none of them. */
gm_status gm_graph_pools_free(int ordinal, void *pointer, gm_stream *stream);

GM_END_DECLS

#endif
