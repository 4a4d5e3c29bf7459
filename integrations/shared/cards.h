/* The cards of the process, for engines that name devices by CUDA or HIP ordinals, and streams by their handles. Each
 * card has one pool, on its primary context, that every engine of the process shares.
 *
 * Cards are CUDA's, or HIP's where there is no CUDA. GM_BACKENDS=hip chooses HIP on a machine with both.
 *
 * The pools use plain driver allocations only. Engines copy between cards, and open memory in other processes, by calls
 * that mapped pages do not allow. The pools may take the whole card: GM_MEMORY_FRACTION, GM_MIN_FREE_BYTES and
 * GM_MAX_POOL_BYTES bound them. Nothing is closed before the process ends. Every call is thread-safe. */
#ifndef GM_INTEGRATIONS_SHARED_CARDS_H
#define GM_INTEGRATIONS_SHARED_CARDS_H

#include <stdbool.h>

#include "gm/gm.h"

GM_BEGIN_DECLS

typedef struct gm_card gm_card; /* an open card; thread-safe */

enum { GM_CARDS_MOST = 64 };

/* Opens a card, at the first call for its ordinal. NULL: gm_engines_why has the reason. */
gm_card *gm_card_of(int ordinal);
/* Returns the card if it is open, else NULL. */
gm_card *gm_card_if_open(int ordinal);
/* Returns the pool of a card. Borrowed. */
gm_pool *gm_card_pool(gm_card *card);
/* Returns the stream of a native handle. NULL: gm_engines_why has the reason. */
gm_stream *gm_card_stream(gm_card *card, const void *native);
/* Lets go of the stream of a native handle, as gm_stream_forget does. */
gm_status gm_card_forget(gm_card *card, const void *native, gm_error *err);

/* Allocates in the order of a native stream, from `pool` of the card. NULL: gm_engines_why has the reason. */
void *gm_card_alloc(gm_card *card, gm_pool *pool, uint64_t bytes, const void *native);

/* Frees what gm_card_alloc returned from `pool`, in the order of a native stream. Where gm cannot find that stream, the
 * memory waits for all streams of the card. INVALID_ARGUMENT: no block of the pool begins at the pointer. */
gm_status gm_card_free(gm_card *card, gm_pool *pool, void *pointer, const void *native);

/* Allocates `bytes` on a card in the order of a native stream. NULL: gm_engines_why has the reason. */
GM_API void *gm_cards_alloc(uint64_t bytes, int ordinal, void *stream);
/* Frees what gm_cards_alloc returned in the order of a native stream. Returns 0, or a gm_status. */
GM_API int gm_cards_free(void *pointer, int ordinal, void *stream);
/* Tells how much memory is free on a card, pooled memory included, and how much it has. Returns 0, or a gm_status. */
GM_API int gm_cards_memory(int ordinal, uint64_t *free_bytes, uint64_t *total_bytes);
/* Finds the driver's allocation that an address lies in. NULL: no card has such a block. */
GM_API void *gm_cards_base(const void *pointer, uint64_t *out_bytes);
/* Returns the field of a card's gm_stats that is called `name`. UINT64_MAX: there is none, or the card is not open. */
GM_API uint64_t gm_cards_figure(int ordinal, const char *name);
/* Closes the pool and device of every card, for tests. Returns 0, or a gm_status: BUSY while blocks are left.
 */
GM_API int gm_cards_close(void);

GM_END_DECLS

#endif
