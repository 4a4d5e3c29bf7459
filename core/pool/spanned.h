/* Blocks of several memories: pieces, each a block that the pool handed out as any other, under one name. */
#ifndef GM_CORE_POOL_SPANNED_H
#define GM_CORE_POOL_SPANNED_H

#include "core/pool/acquire.h"
#include "core/pool/entry.h"
#include "gm/spans.h"

#define GM__SPANNED_BLOCK UINT32_C(0x40000000) /* in gm_block.node, without GM__ARENA_BLOCK: a block of several */

typedef struct gm__spanned gm__spanned;

/* A live block that is a piece says so in its gm__rare. */
typedef struct gm__piece {
  gm_block_span span;
  const gm__spanned *whole;
} gm__piece;

struct gm__spanned {
  gm_block block; /* as it was handed out */
  uint64_t requested;
  uint32_t count;
  gm__piece pieces[GM_BLOCK_SPANS_MOST];
};

/* Does the block say that it is of several memories? */
static inline bool gm__spanned_is(const gm_block *block) {
  return (block->node & (GM__ARENA_BLOCK | GM__SPANNED_BLOCK)) == GM__SPANNED_BLOCK;
}

/* Serve the request in several memories, after it could not be had in one for the reason *why. *why is then why not
 * either; or what it was, where there is no use in trying. */
gm_acquire gm__spanned_acquire(gm_pool *pool, const gm__want *want, const gm_request *request, gm_block *out,
                               gm__refusal *why);

/* gm_use_on. */
gm_status gm__spanned_use_on(gm_pool *pool, const gm_block *block, gm_stream *stream);

/* gm_free: all of it or, for BUSY and INVALID_ARGUMENT, nothing. */
gm_status gm__spanned_free(gm_pool *pool, const gm_block *block, gm_stream *stream);

/* A piece of a live block, by value: the one of that number, or the one that has the byte at `offset` (its last one for
 * the end). False: there is none. */
bool gm__spanned_piece(gm_pool *pool, const gm_block *block, uint32_t number, gm_block_span *out);
bool gm__spanned_at(gm_pool *pool, const gm_block *block, uint64_t offset, gm_block_span *out);

/* Is the request worth splitting, and could pieces that the device's largest allocation allows make up so much? */
bool gm__spanned_can(const gm_pool *pool, const gm__want *want);

/* The least that a piece has, but for the last. */
uint64_t gm__spanned_least(const gm_pool *pool);

/* What lies at an address, as its owner knows it: the block of several memories where the entry is a piece of one. */
static inline const gm__piece *gm__spanned_of(const gm__entry *entry) {
  return entry->rare ? entry->rare->piece : NULL;
}

/* At the pool's end: what a forked child still knows of them. */
void gm__spanned_end(gm_pool *pool);

#endif
