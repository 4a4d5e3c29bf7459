#include "core/pool/pool.h"

/* Nodes on their way into the buckets and out, and what streams have to do with them there. Invariants: a pooled node
 * that is idle has no mark, and no point; one that is out of the buckets and has a mark is in `pool->marked`. So a
 * stream that goes is looked for there and in the rings that name it, and in no other node. */

static bool pooled_has_mark(const gm__mark *mark) { return mark->streams || mark->users || mark->has_point; }

void gm__pool_mark(gm_pool *pool, gm__node *node) {
  if (node->marked || !pooled_has_mark(&node->rare.mark)) return;
  node->marked = true;
  gm__node_list_push(&pool->marked, GM__BY_USE, node);
}

void gm__pool_unmark(gm_pool *pool, gm__node *node) {
  if (!node->marked) return;
  node->marked = false;
  gm__node_list_remove(&pool->marked, GM__BY_USE, node);
}

static void pooled_note(gm_pool *pool, const gm__node *node, bool pooled) {
  if (pool->has_upstream || !gm__device_is_charged(pool->device, &node->memory)) return;
  gm__device_note_pooled(pool->device, pooled ? (int64_t)node->bytes : -(int64_t)node->bytes);
}

void gm__pool_free_node(gm_pool *pool, gm__node *node, int slot) {
  gm__pool_unmark(pool, node);
  gm__order_note_free(&pool->order, &node->rare.mark, slot);
  node->freed_on = gm__order_stream_id(&pool->order, slot);
  gm__bucket_put(&pool->buckets, node, gm__order_place(slot));
  pooled_note(pool, node, true);
  if (node->idle) {
    gm__stats_count(&pool->stats.reclaimable_bytes, node->bytes);
  } else {
    gm__pool_settle(pool, node);
  }
}

void gm__pool_pull(gm_pool *pool, gm__node *node) {
  if (node->idle) gm__stats_uncount(&pool->stats.reclaimable_bytes, node->bytes);
  pooled_note(pool, node, false);
  gm__bucket_remove(&pool->buckets, node);
}

bool gm__pool_settle(gm_pool *pool, gm__node *node) {
  if (node->idle || gm__order_settle(&pool->order, &node->rare.mark)) return node->idle;
  gm__order_drop_point(&pool->order, &node->rare.mark);
  gm__bucket_settle(&pool->buckets, node);
  gm__stats_count(&pool->stats.reclaimable_bytes, node->bytes);
  return true;
}

gm__node *gm__pool_settle_ring(gm_pool *pool, gm__node *oldest) {
  const gm__node *newest = gm__ring_newest(oldest);
  gm__node *node = oldest;
  for (gm__node *newer; node; node = newer) {
    newer = node == newest ? NULL : gm__ring_newer(node);
    if (!gm__pool_settle(pool, node)) break;
  }
  return node;
}

static void pooled_forget_marked(gm_pool *pool, int slot) {
  for (gm__node *node = pool->marked.first, *next; node; node = next) {
    next = node->links[GM__BY_USE].next;
    gm__order_forget_mark(&pool->order, &node->rare.mark, slot);
    gm__order_settle(&pool->order, &node->rare.mark);
    if (!pooled_has_mark(&node->rare.mark)) gm__pool_unmark(pool, node);
  }
}

static void pooled_forget_ring(gm_pool *pool, gm__node *oldest, int slot) {
  const gm__node *newest = gm__ring_newest(oldest);
  bool more = true;
  for (gm__node *node = oldest, *newer; more; node = newer) {
    newer = gm__ring_newer(node);
    more = node != newest;
    gm__order_forget_mark(&pool->order, &node->rare.mark, slot);
    gm__bucket_forget(&pool->buckets, node, slot);
    gm__pool_settle(pool, node);
  }
}

/* Idle blocks have no mark. */
void gm__pool_forget_stream(gm_pool *pool, const gm_stream *stream) {
  const int slot = gm__order_find(&pool->order, stream);
  if (slot == GM__ORDER_HOST) return;
  for (uint32_t i = 0; i < pool->buckets.class_count; i++) {
    for (gm__node *oldest = pool->buckets.classes[i].rings.first, *next; oldest; oldest = next) {
      next = oldest->links[GM__BY_RING].next;
      if (oldest->ring >> slot & 1) pooled_forget_ring(pool, oldest, slot);
    }
  }
  pooled_forget_marked(pool, slot);
  gm__order_forget(&pool->order, slot);
}
