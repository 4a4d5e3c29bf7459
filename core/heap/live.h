/* A live block, looked up and locked: gm__live_open locks its arena or the provider, gm__live_close unlocks it. */
#ifndef GM_CORE_HEAP_LIVE_H
#define GM_CORE_HEAP_LIVE_H

#include "core/arena/arena.h"
#include "core/heap/heap.h"

typedef struct gm__live {
  gm__heap *heap;
  gm__arena *arena;           /* NULL: the block is dedicated */
  gm__allocation *allocation; /* the block's own, or that of its segment */
  uint32_t chunk;
  uint32_t tag;
  uint64_t stream; /* id of the stream that asked for it; 0: the host did, or nobody knows */
  uint64_t offset; /* in allocation->memory */
  uint64_t requested;
  gm_block block;   /* as gm handed it out */
  gm__order *order; /* the slots of cold->use are its */
  gm__cold *cold;   /* NULL: the block has no cold record */
} gm__live;

/* Finds and locks a live block. False: the pool has no such block, it was freed, or its fields were altered; nothing is
 * locked then. */
bool gm__live_open(gm__heap *heap, const gm_block *block, gm__live *out);

/* Finds and locks the block that the heap gave to its guard. It compares only the block's number and check. */
bool gm__live_open_raw(gm__heap *heap, const gm_block *block, gm__live *out);

/* Locks memory in hand, which is to become a block. In *out only heap, arena, allocation, chunk and cold are set. */
void gm__live_open_grant(gm__heap *heap, const gm__grant *grant, gm__live *out);

/* Finds and locks the live block whose bytes contain the address. */
bool gm__live_at(gm__heap *heap, uint64_t address, gm__live *out);

/* The arena that the address belongs to; NULL: none, but a dedicated block may lie there. */
gm__arena *gm__live_arena_at(gm__heap *heap, uint64_t address);

void gm__live_close(const gm__live *live);

/* Gives the block a cold record if it has none. False without host memory. */
bool gm__live_make_cold(gm__live *live);

/* Must follow each change of the block's last use, so that a stream that closes finds the block. */
void gm__live_note_use(const gm__live *live);

/* A copy of the block's last use. */
gm__last_use gm__live_last_use(const gm__live *live);

/* The stream's slot in the block's order, which stays known from now on. GM__ORDER_HOST: no slot is left. The second
 * function is for a free. */
int gm__live_slot(const gm__live *live, gm_stream *stream);
int gm__live_free_slot(const gm__live *live, gm_stream *stream);

#endif
