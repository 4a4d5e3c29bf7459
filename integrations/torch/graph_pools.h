/* torch's private pools, by torch's ids. Each is a pool of GM_POOL_CAPTURES on its card: what a graph uses is handed to
 * nobody else while the graph may run. Thread-safe. */
#ifndef GM_INTEGRATIONS_TORCH_GRAPH_POOLS_H
#define GM_INTEGRATIONS_TORCH_GRAPH_POOLS_H

#include "../shared/cards.h"
#include "gm_torch.h"

GM_BEGIN_DECLS

/* Begins to serve what `filter` wants from the pool of `id`. From the call on the pool owns the filter. A pool that was
 * begun already goes on with the new filter. Returns false without host memory; then nothing has begun. */
bool gm_graph_pools_begin(int ordinal, gm_torch_pool_id id, const gm_torch_filter *filter);
/* Ends that, and drops the filter. An unknown id is ignored. */
void gm_graph_pools_end(int ordinal, gm_torch_pool_id id);
/* Takes back one gm_graph_pools_begin. After the last one the pool goes with its last block. An unknown id is ignored.
 */
void gm_graph_pools_release(int ordinal, gm_torch_pool_id id);
/* Destroys the pools that nobody names and that have no block. */
void gm_graph_pools_sweep(void);

/* Sets the share of the card's memory that the process may hold when a pool takes memory. It holds for pools that are
 * made from now on. */
void gm_graph_pools_set_fraction(int ordinal, double fraction);

/* Returns true if a pool that was begun wants the allocation. *out is the memory then; NULL: gm_engines_why has the
 * reason. If there are several pools, the one that was begun first serves, like in torch. */
bool gm_graph_pools_alloc(gm_card *card, int ordinal, uint64_t bytes, void *stream, void **out);
/* Allocates for a captured stream that no pool was begun for, after the card's pool has refused. NULL: it refused for
 * another reason, or gm_engines_why has a new one. */
void *gm_graph_pools_alloc_unclaimed(gm_card *card, int ordinal, uint64_t bytes, void *stream);
/* Frees a block of one of the pools. INVALID_ARGUMENT, NOT_FOUND: no such block begins at the pointer. */
gm_status gm_graph_pools_free(gm_card *card, void *pointer, const void *stream);

GM_END_DECLS

#endif
