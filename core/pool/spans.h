/* Blocks of several memories. Each part is a block that the pool handed out like any other; together they have one
 * name. */
#ifndef GM_CORE_POOL_SPANS_H
#define GM_CORE_POOL_SPANS_H

#include "core/heap/live.h"
#include "core/pool/pool.h"
#include "gm/spans.h"

#define GM__SPANS_BLOCK \
  UINT32_C(0x40000000) /* in gm_block.number, without GM__ARENA_BLOCK: a block of several memories */

typedef struct gm__spans gm__spans;

/* One part. The gm__cold of its block points here. */
typedef struct gm__span_part {
  gm_block_span span;
  const gm__spans *whole;
} gm__span_part;

struct gm__spans {
  gm_block block; /* as gm handed it out */
  uint64_t requested;
  uint32_t count;
  gm__span_part parts[GM_BLOCK_SPANS_MOST];
};

/* Does the block say that it is of several memories? */
static inline bool gm__spans_is(const gm_block *block) {
  return (block->number & (GM__ARENA_BLOCK | GM__SPANS_BLOCK)) == GM__SPANS_BLOCK;
}

/* Serves the request in several memories, after one memory was refused for the reason *why. On failure *why says why
 * several do not serve either; where there is no use in trying it stays as it is. */
gm_acquire gm__spans_alloc(gm_pool *pool, const gm__want *want, const gm_request *request, gm_block *out,
                           gm__refusal *why);

/* gm_free: frees all parts. After BUSY or INVALID_ARGUMENT nothing was freed. */
gm_status gm__spans_free(gm_pool *pool, const gm_block *block, gm_stream *stream);

/* Finds one part of a live block, by number or by the byte at `offset`; the end belongs to the last part. False: there
 * is none. */
bool gm__spans_part(gm_pool *pool, const gm_block *block, uint32_t number, gm_block_span *out);
bool gm__spans_at(gm_pool *pool, const gm_block *block, uint64_t offset, gm_block_span *out);

/* The next part of a block, by value; a block in one memory is its own only part. *cursor begins as 0. */
bool gm__spans_next(gm_pool *pool, const gm_block *block, uint32_t *cursor, gm_block_span *out);

/* Frees the records when the pool ends; only a forked child has any left. */
void gm__spans_end(gm_pool *pool);

#endif
