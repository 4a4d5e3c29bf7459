/* A live block looked up, with the lock held that keeps it as it is: for all that is asked of a block. */
#ifndef GM_CORE_POOL_ENTRY_H
#define GM_CORE_POOL_ENTRY_H

#include "core/pool/arena.h"

typedef struct gm__entry {
  gm_pool *pool;
  gm__arena *arena; /* NULL: a driver allocation of its own */
  gm__node *node;   /* that, or the segment's */
  uint32_t span;
  uint32_t tag;
  uint64_t stream; /* id of the one that asked for it; 0: the host did, or it is not known (any more) */
  uint64_t offset; /* in node->memory */
  uint64_t requested;
  gm_block block;   /* as it was handed out */
  gm__order *order; /* its slots are those of rare->mark */
  gm__rare *rare;   /* NULL: nothing rare about it */
} gm__entry;

/* False, and nothing is held: the block is none of the pool's, freed, or altered. */
bool gm__entry_open(gm_pool *pool, const gm_block *block, gm__entry *out);

/* The same for the block as the pool gave it to its guard, and without a look at more than which it is. */
bool gm__entry_open_raw(gm_pool *pool, const gm_block *block, gm__entry *out);

/* The same for the live block whose bytes contain the address. */
bool gm__entry_at(gm_pool *pool, uint64_t address, gm__entry *out);

/* The arena that the address belongs to; NULL: none, it may be a driver allocation of its own. */
gm__arena *gm__entry_arena_at(gm_pool *pool, uint64_t address);

void gm__entry_close(const gm__entry *entry);

/* See that there is a record; false without host memory. */
bool gm__entry_make_rare(gm__entry *entry);

/* The mark was changed: a stream that goes will find it. */
void gm__entry_note_mark(const gm__entry *entry);

/* What the block remembers: a copy. */
gm__mark gm__entry_mark(const gm__entry *entry);

/* The slot of the stream in the entry's order, which stays known from now on; GM__ORDER_HOST: no slot is left. The
 * second: for a free. */
int gm__entry_slot(const gm__entry *entry, gm_stream *stream);
int gm__entry_free_slot(const gm__entry *entry, gm_stream *stream);

#endif
