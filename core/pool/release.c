#include "core/pool/release.h"

#include "core/pool/entry.h"
#include "core/pool/quota.h"
#include "core/pool/record.h"
#include "core/pool/serve.h"
#include "core/pool/share.h"
#include "core/pool/spanned.h"
#include "core/pool/supply.h"

enum { RELEASE_TURNS = 4 }; /* blocks looked at by a free */

gm_status gm__give_back_slot(gm_pool *pool, gm_stream *stream, int *out) {
  *out = gm__order_free_slot(&pool->order, stream);
  return stream && *out == GM__ORDER_HOST ? GM_ERR_OUT_OF_HOST_MEMORY : GM_OK;
}

/* Is the block idle by now? A free submits nothing: an engine may hold the lock of its queue. */
static bool release_settle(gm_pool *pool, gm__node *node) {
  if (!gm__pool_settle(pool, node)) gm__order_look(&pool->order, node->rare.mark.streams);
  return gm__pool_settle(pool, node);
}

/* Give back the oldest blocks of a bucket that holds too many, as far as their streams are done with them. A few at a
 * time: each free adds one, so more are never needed for long. */
static void release_shrink(gm_pool *pool, const gm__node *node, gm__leaving *leaving) {
  const gm__node_list *bucket = &pool->buckets.classes[node->size_class].list;
  gm__node *oldest = bucket->last;
  for (int turn = 0; turn < RELEASE_TURNS && oldest && bucket->count > pool->buckets.most; turn++) {
    gm__node *newer = oldest->links[GM__BY_BUCKET].prev;
    if (release_settle(pool, oldest)) gm__supply_detach(pool, leaving, oldest);
    oldest = newer;
  }
}

static bool release_is_over(const gm_pool *pool) {
  return pool->buckets.idle > atomic_load_explicit(&pool->cache.global_now, memory_order_relaxed) ||
         pool->buckets.ages.count > atomic_load_explicit(&pool->cache.all, memory_order_relaxed);
}

static bool release_is_full(const gm_pool *pool, int slot) {
  return slot != GM__ORDER_HOST &&
         pool->buckets.busy[gm__order_place(slot)] > atomic_load_explicit(&pool->cache.local_now, memory_order_relaxed);
}

/* The same for the bounds of the caches. What a stream keeps too many of becomes the pool's, once the stream is done
 * with it; what the pool keeps too many of goes. */
static void release_shrink_caches(gm_pool *pool, int slot, gm__leaving *leaving) {
  gm__node *oldest = pool->buckets.ages.last;
  for (int turn = 0; turn < RELEASE_TURNS && oldest && (release_is_over(pool) || release_is_full(pool, slot)); turn++) {
    gm__node *newer = oldest->links[GM__BY_AGE].prev;
    if (release_settle(pool, oldest) && release_is_over(pool)) gm__supply_detach(pool, leaving, oldest);
    oldest = newer;
  }
}

static void release_pool_node(gm_pool *pool, gm__node *node, const gm_stream *stream, int slot, gm__leaving *leaving) {
  gm__pool_free_node(pool, node, slot);
  const bool over = pool->buckets.classes[node->size_class].list.count > pool->buckets.most || release_is_over(pool) ||
                    release_is_full(pool, slot);
  if (!over || pool->strategy != GM_STRATEGY_BUCKET || gm__stream_captured(stream)) return;
  release_shrink(pool, node, leaving);
  release_shrink_caches(pool, slot, leaving);
}

/* What is not the pool's goes at once: all work on it must be done. Then it is looked at again. */
static gm_status release_wait(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  gm_error failure;
  const gm__node *node = gm__node_find(&pool->nodes, block, pool->checked);
  if (!node || !node->opened || node->rare.mapping.pointer) return GM_OK;
  const gm_status status = gm__share_drain(pool, node, stream, &failure);
  if (status) pool->last_failure = failure;
  return status;
}

/* The live node, taken away from its owner, who frees it in the order of `stream`. */
static gm_status release_take_back(gm_pool *pool, const gm_block *block, gm_stream *stream, gm__node **out) {
  const gm_status status = release_wait(pool, block, stream);
  if (status) return status;
  gm__node *node = gm__node_find(&pool->nodes, block, pool->checked);
  if (!node) return GM_ERR_INVALID_ARGUMENT;
  if (node->rare.piece) return GM_ERR_INVALID_ARGUMENT;
  if (node->rare.mapping.pointer) return GM_ERR_BUSY;
  if (gm__pool_quotas(pool) && gm__node_is_out(node)) {
    gm__quota_leave(gm__pool_quotas(pool), node->tag, node->requested);
  }
  gm__record_leave(pool, node, stream);
  node->state = GM__NODE_AWAY;
  node->check++;
  node->rare.guard = NULL;
  pool->live--;
  gm__stats_uncount(&pool->stats.requested_bytes, node->requested);
  gm__stats_uncount(&pool->stats.in_use_bytes, node->bytes);
  gm__stats_count(&pool->stats.frees, 1);
  *out = node;
  return GM_OK;
}

/* A block that is a driver allocation of its own. */
static gm_status release_node(gm_pool *pool, const gm_block *block, gm_stream *stream, uint64_t *out_track_id) {
  gm__leaving leaving = {0};
  gm__node *node;
  int slot;
  gm__mutex_lock(&pool->lock);
  gm_status status = gm__give_back_slot(pool, stream, &slot);
  if (!status) status = release_take_back(pool, block, stream, &node);
  if (!status) *out_track_id = node->rare.track_id;
  if (!status && node->foreign) { /* the engine's own, or another process's: nothing to keep */
    gm__supply_leave(pool, &leaving, node);
  } else if (!status) {
    release_pool_node(pool, node, stream, slot, &leaving);
  }
  gm__mutex_unlock(&pool->lock);
  gm__supply_return(pool, &leaving);
  return status;
}

gm_status gm__pool_free(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  uint64_t track_id = 0;
  gm_status status = block->node & GM__ARENA_BLOCK ? gm__serve_give_back(pool, block, stream)
                                                   : release_node(pool, block, stream, &track_id);
  if (track_id) gm_tracker_untrack(pool->tracker, track_id);
  return status;
}

void gm__pool_quarantine(gm_pool *pool, const gm_block *block) {
  gm__node *node;
  if (block->node & GM__ARENA_BLOCK) {
    gm__serve_quarantine(pool, block);
    return;
  }
  gm__mutex_lock(&pool->lock);
  release_take_back(pool, block, NULL, &node);
  gm__mutex_unlock(&pool->lock);
}

/* The work of a closed stream is done. */
static bool release_stream_ok(const gm_pool *pool, gm_stream **stream) {
  if (*stream && gm__stream_is_closed(*stream)) *stream = NULL;
  return !*stream || (*stream)->device == pool->device;
}

gm_status gm__give_back(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  if (!release_stream_ok(pool, &stream)) return GM_ERR_INVALID_ARGUMENT;
  if (gm__pool_forked(pool)) return GM_ERR_FORKED;
  if (gm__spanned_is(block)) return gm__spanned_free(pool, block, stream);
  return pool->guard ? gm__guard_free(pool, block, stream) : gm__pool_free(pool, block, stream);
}

/* A captured stream was given no work, and one whose order cannot be noted is waited for. The host's order keeps what
 * was pending on the block before. */
gm_status gm__give_back_unused(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  if (gm__stream_captured(stream)) return gm_free(pool, block, NULL);
  const gm_status status = gm_free(pool, block, stream);
  const bool unnoted = status == GM_ERR_OUT_OF_HOST_MEMORY && stream;
  return unnoted && gm__order_drain(stream, "gm_free", NULL) == GM_OK ? gm_free(pool, block, NULL) : status;
}

gm_status gm__give_back_ptr(gm_pool *pool, const void *pointer, uint64_t bytes_or_0, gm_stream *stream) {
  gm__entry entry;
  if (!pointer) return GM_OK;
  if (!release_stream_ok(pool, &stream)) return GM_ERR_INVALID_ARGUMENT;
  if (gm__pool_forked(pool)) return GM_ERR_FORKED;
  gm__arena *arena = pool->fast_key != GM__HERE_NOBODY ? gm__entry_arena_at(pool, (uintptr_t)pointer) : NULL;
  if (arena) return gm__serve_give_back_at(arena, (uintptr_t)pointer, bytes_or_0, stream);
  if (!gm__entry_at(pool, (uintptr_t)pointer, &entry)) return GM_ERR_INVALID_ARGUMENT;
  gm__entry_close(&entry);
  if (entry.block.address != (uintptr_t)pointer || bytes_or_0 > entry.block.bytes) return GM_ERR_INVALID_ARGUMENT;
  return gm__give_back(pool, &entry.block, stream);
}

gm_status gm_use_on(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  gm__entry entry;
  if (!gm__pool_is(pool) || !block || !stream || stream->device != pool->device) return GM_ERR_INVALID_ARGUMENT;
  if (gm__pool_forked(pool)) return GM_ERR_FORKED;
  if (gm__spanned_is(block)) return gm__spanned_use_on(pool, block, stream);
  if (!gm__entry_open(pool, block, &entry)) return GM_ERR_INVALID_ARGUMENT;
  gm_status status = GM_OK;
  const int slot = gm__entry_free_slot(&entry, stream);
  if (slot == GM__ORDER_HOST || !gm__entry_make_rare(&entry)) {
    status = GM_ERR_OUT_OF_HOST_MEMORY;
  } else {
    gm__order_note_use(entry.order, &entry.rare->mark, slot);
    gm__entry_note_mark(&entry);
  }
  gm__entry_close(&entry);
  return status;
}

gm_point gm_block_point(gm_pool *pool, const gm_block *block) {
  gm_point point = {0};
  gm__entry entry;
  if (!gm__pool_is(pool) || !block || gm__pool_forked(pool) || !gm__entry_open(pool, block, &entry)) return point;
  if (entry.rare && entry.rare->mark.has_point) {
    const gm__mark *mark = &entry.rare->mark;
    point = (gm_point){entry.order->slots[mark->point_slot].stream->id, mark->point.handle, mark->point.value};
  }
  gm__entry_close(&entry);
  return point;
}
