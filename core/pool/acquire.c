#include <string.h>

#include "core/base/error.h"
#include "core/pool/growth.h"
#include "core/pool/request.h"
#include "core/pool/supply.h"
#include "gm/size.h"

/* gm_alloc and gm_free. The order in which a request is served: a pooled block that its stream may use at once; one
 * that a point says is done; one of the stream's own that needs a barrier or a wait there; new memory; a block of
 * another stream that needs a wait, because a wait is better than a failure; what a trim sets free. So gm makes no
 * stream depend on another one while there is memory, and never waits on the host. A node is AWAY while one thread
 * works on it outside the lock; nobody else can name it. */

enum { ACQUIRE_FREES = 64 };

/* Bring a pooled node into the request's order; false when that is not possible, then it is where it was. */
static bool acquire_order(gm_pool *pool, const gm__want *want, int slot, gm__node *node, gm__order_verdict verdict,
                          gm_acquire *out) {
  gm_error failure;
  gm_status status = GM_OK;
  *out = GM_ACQUIRE_OK;
  if (verdict == GM__ORDER_READY) return true;
  if (want->insert) {
    status = gm__order_insert(&pool->order, node, slot, &failure);
  } else if (verdict == GM__ORDER_BARRIER) {
    *out = GM_ACQUIRE_NEEDS_BARRIER;
  } else {
    *out = GM_ACQUIRE_NEEDS_WAIT;
    status = gm__order_attach_point(&pool->order, node, slot, &failure);
  }
  if (status) {
    /* cppcheck-suppress uninitStructMember ; it is complete when a status is not GM_OK */
    pool->last_failure = failure;
    return false;
  }
  gm__stats_count(&pool->stats.waits, 1);
  return true;
}

/* The first node of the request's bucket, newest first, with a verdict of at most `worst`. *pending collects the
 * streams that stand in the way of others. */
static gm__node *acquire_scan(gm_pool *pool, const gm__want *want, int slot, gm__order_verdict worst, uint64_t *pending,
                              gm__order_verdict *out) {
  gm__node *node = pool->buckets.classes[want->size_class].first;
  for (; node; node = node->links[GM__BY_BUCKET].next) {
    if (!gm__want_fits(pool, want, node)) continue;
    gm__pool_settle(pool, node);
    *out = gm__order_judge(&pool->order, node, slot, want->insert);
    if (*out <= worst) return node;
    *pending |= node->streams;
  }
  return NULL;
}

/* A pooled node for the request, ordered and pulled; NULL if there is none. Asks the driver only when nothing serves
 * at once. `others`: blocks of other streams with a wait, too. With the lock. */
static gm__node *acquire_pooled(gm_pool *pool, const gm__want *want, int slot, bool others, gm_acquire *out) {
  uint64_t pending = 0;
  gm__order_verdict verdict = GM__ORDER_READY, worst = others ? GM__ORDER_OTHERS_WAIT : GM__ORDER_OWN_WAIT;
  gm__node *node = acquire_scan(pool, want, slot, GM__ORDER_READY, &pending, &verdict);
  if (!node && pending) {
    gm__order_refresh(&pool->order, slot == GM__ORDER_HOST ? pending : pending & ~(UINT64_C(1) << slot), 0);
    node = acquire_scan(pool, want, slot, GM__ORDER_READY, &pending, &verdict);
    if (!node) node = acquire_scan(pool, want, slot, GM__ORDER_OWN_WAIT, &pending, &verdict);
    if (!node && others) node = acquire_scan(pool, want, slot, worst, &pending, &verdict);
  }
  if (!node || !acquire_order(pool, want, slot, node, verdict, out)) return NULL;
  gm__pool_pull(pool, node);
  return node;
}

/* Where several streams free, ask now and then how far they are: holes of streams that are done can be joined and are
 * everybody's, and the pool packs tighter. One point for each stream and so many frees. */
static void acquire_freshen(gm_pool *pool) {
  bool one_stream = !(pool->order.used & (pool->order.used - 1));
  if (one_stream || pool->segments.frees < ACQUIRE_FREES) return;
  pool->segments.frees = 0;
  gm__order_refresh(&pool->order, pool->order.used, 0);
  gm__segments_settle(pool);
}

/* The same from the holes of segments. Before more is taken, all that the pool knows and can ask for is used: which
 * streams are done, and which holes they leave behind together. */
static gm__node *acquire_hole(gm_pool *pool, const gm__want *want, int slot, bool others,
                              gm__order_verdict *out_verdict) {
  uint64_t pending = 0;
  acquire_freshen(pool);
  gm__node *hole = gm__segments_find(pool, want, slot, GM__ORDER_READY, &pending, out_verdict);
  if (hole || !pending) return hole;
  gm__order_refresh(&pool->order, pending, 0);
  gm__segments_settle(pool);
  hole = gm__segments_find(pool, want, slot, GM__ORDER_READY, &pending, out_verdict);
  if (hole) return hole;
  gm__segments_gather(pool, slot);
  hole = gm__segments_find(pool, want, slot, GM__ORDER_OWN_WAIT, &pending, out_verdict);
  if (hole || !others) return hole;
  return gm__segments_find(pool, want, slot, GM__ORDER_OTHERS_WAIT, &pending, out_verdict);
}

static gm__node *acquire_part(gm_pool *pool, const gm__want *want, int slot, bool others, gm_acquire *out) {
  gm__order_verdict verdict = GM__ORDER_READY;
  gm__node *hole = acquire_hole(pool, want, slot, others, &verdict);
  gm__node *part = hole ? gm__segments_carve(pool, want, hole) : NULL;
  if (!part || acquire_order(pool, want, slot, part, verdict, out)) return part;
  gm__segments_put(pool, part);
  return NULL;
}

static void acquire_count(gm_pool *pool, const gm__want *want, const gm__node *node, bool fresh) {
  gm__stats *stats = &pool->stats;
  gm__stats_grow(&stats->in_use_bytes, &stats->peak_in_use_bytes, node->bytes);
  gm__stats_grow(&stats->requested_bytes, &stats->peak_requested_bytes, want->bytes);
  bool same_stream = want->stream && node->freed_on == want->stream->id;
  gm__stats_count(fresh ? &stats->misses : same_stream ? &stats->stream_hits : &stats->global_hits, 1);
}

/* The node is the caller's now. With the lock. */
static void acquire_record(gm_pool *pool, const gm__want *want, gm__node *node, bool fresh, gm_block *out) {
  node->requested = want->bytes;
  node->tag = want->tag;
  node->state = GM__NODE_LIVE;
  node->check++;
  pool->live++;
  acquire_count(pool, want, node, fresh);
  *out = gm__node_block(node);
}

/* Nothing is left to do with pooled memory outside the lock that it was found under. */
static bool acquire_is_direct(const gm_pool *pool, const gm__want *want) {
  return !pool->tracker && !(want->flags & GM_ZERO);
}

/* Pooled memory for the request, AWAY; or handed out already, if it is direct. */
static gm__node *acquire_search(gm_pool *pool, const gm__want *want, bool others, gm_acquire *out, gm_block *block) {
  gm__mutex_lock(&pool->lock);
  int slot = gm__order_slot_of(&pool->order, want->stream);
  gm__node *node = pool->strategy == GM_STRATEGY_BEST_FIT ? acquire_part(pool, want, slot, others, out)
                                                          : acquire_pooled(pool, want, slot, others, out);
  if (node && acquire_is_direct(pool, want)) acquire_record(pool, want, node, false, block);
  gm__mutex_unlock(&pool->lock);
  return node;
}

/* New memory: a segment, or rounded, or exact where that is too much. */
static gm_status acquire_fresh(gm_pool *pool, const gm__want *want, gm__node **out, gm_error *err) {
  if (pool->strategy == GM_STRATEGY_BEST_FIT) return gm__growth_take(pool, want, out, err);
  gm_status status = gm__supply_take(pool, want, want->rounded, out, err);
  if (!gm__supply_is_shortage(status) || want->rounded == want->exact) return status;
  return gm__supply_take(pool, want, want->exact, out, err);
}

/* Set memory free for a request that found none: as much as the cap is short of, or all when the device is full. */
static bool acquire_make_room(gm_pool *pool, const gm__want *want, gm_status status) {
  uint64_t keep = 0;
  if (status == GM_ERR_OVER_LIMIT) {
    gm__mutex_lock(&pool->lock);
    keep = pool->pooled > want->exact ? pool->pooled - want->exact : 0;
    gm__mutex_unlock(&pool->lock);
  }
  return gm__supply_trim(pool, keep) > 0;
}

static gm_acquire acquire_refused(gm_pool *pool, gm_status status, const gm_error *failure) {
  gm__pool_note_failure(pool, failure);
  if (status == GM_ERR_OVER_LIMIT) {
    gm__stats_count(&pool->stats.over_limit, 1);
    return GM_ACQUIRE_OVER_LIMIT;
  }
  if (!gm__supply_is_shortage(status) && status != GM_ERR_OUT_OF_HOST_MEMORY) return GM_ACQUIRE_FAILED;
  gm__stats_count(&pool->stats.failures, 1);
  return GM_ACQUIRE_EXHAUSTED;
}

/* A node for the request; *answer says what it needs, or why there is none. It is AWAY; but if it is pooled memory (not
 * FRESH) for a direct request, it is handed out. */
static gm__node *acquire_node(gm_pool *pool, const gm__want *want, gm_acquire *answer, gm_block *block) {
  gm_error failure;
  bool pooled_only = (want->flags & GM_POOLED_ONLY) != 0;
  gm__node *node = acquire_search(pool, want, pooled_only, answer, block);
  if (node) return node;
  if (pooled_only) { /* a question that was answered, and no failure */
    *answer = GM_ACQUIRE_EXHAUSTED;
    return NULL;
  }
  *answer = GM_ACQUIRE_FRESH;
  gm_status status = acquire_fresh(pool, want, &node, &failure);
  if (status == GM_OK) return node;
  if (gm__supply_is_shortage(status)) {
    gm_acquire found;
    if ((node = acquire_search(pool, want, true, &found, block))) {
      *answer = found;
      return node;
    }
    if (acquire_make_room(pool, want, status)) status = acquire_fresh(pool, want, &node, &failure);
    if (status == GM_OK) return node;
  }
  *answer = acquire_refused(pool, status, &failure);
  return NULL;
}

static gm_status acquire_zero_by_host(gm_pool *pool, const gm__node *node, gm_error *err) {
  if (node->memory.host) {
    memset((unsigned char *)node->memory.host + node->offset, 0, node->bytes);
    return GM_OK;
  }
  gm_stream *stream;
  gm_status status = gm__device_default_stream(pool->device, &stream, err);
  if (status) return status;
  return pool->device->ops->fill(pool->device->handle, stream->handle, &node->memory, node->offset, node->bytes, "", 1,
                                 NULL, err);
}

static gm_status acquire_zero(gm_pool *pool, const gm__want *want, const gm__node *node, gm_error *err) {
  if (!want->stream) return acquire_zero_by_host(pool, node, err);
  const gm_device *device = pool->device;
  gm_backend_point point;
  gm_status status = device->ops->fill(device->handle, want->stream->handle, &node->memory, node->offset, node->bytes,
                                       "", 1, &point, err);
  if (status) return status;
  device->ops->point_release(device->handle, &point, GM_CLOSE_NORMAL);
  if (want->stream->kind == GM_STREAM_FIFO) return GM_OK;
  return device->ops->stream_barrier(device->handle, want->stream->handle,
                                     err); /* the caller's work follows the fill */
}

static uint64_t acquire_track(gm_pool *pool, const gm__want *want, const gm__node *node) {
  if (!pool->tracker) return 0;
  gm_track_entry entry = {.address = node->address,
                          .bytes = want->bytes,
                          .pool = pool->id,
                          .stream = want->stream ? want->stream->id : 0,
                          .tag = want->tag,
                          .location = gm__pool_location(pool, &node->memory)};
  return gm_tracker_track(pool->tracker, &entry);
}

static void acquire_hand_out(gm_pool *pool, const gm__want *want, gm__node *node, bool fresh, gm_block *out) {
  node->track_id = acquire_track(pool, want, node);
  gm__mutex_lock(&pool->lock);
  acquire_record(pool, want, node, fresh, out);
  gm__mutex_unlock(&pool->lock);
}

/* Slots are for 64 streams at a time; the work of one more is waited for. */
static int acquire_free_slot(gm_pool *pool, gm_stream *stream) {
  int slot = gm__order_slot_of(&pool->order, stream);
  if (!stream || slot != GM__ORDER_HOST) return slot;
  gm__mutex_unlock(&pool->lock);
  gm__order_drain(pool->device, stream);
  gm__mutex_lock(&pool->lock);
  return GM__ORDER_HOST;
}

/* Back into the pool in the order of the stream that may have been given work on it. */
static void acquire_undo(gm_pool *pool, const gm__want *want, gm__node *node) {
  gm__mutex_lock(&pool->lock);
  gm__order_note_free(&pool->order, node, acquire_free_slot(pool, want->stream));
  gm__pool_put(pool, node);
  gm__mutex_unlock(&pool->lock);
}

static gm_acquire acquire(gm_pool *pool, const gm__want *want, gm_block *out) {
  gm_acquire answer;
  gm__node *node = acquire_node(pool, want, &answer, out);
  if (!node || (answer != GM_ACQUIRE_FRESH && acquire_is_direct(pool, want))) return answer;
  gm_error failure;
  if (want->flags & GM_ZERO && acquire_zero(pool, want, node, &failure)) {
    acquire_undo(pool, want, node);
    gm__pool_note_failure(pool, &failure);
    return GM_ACQUIRE_FAILED;
  }
  acquire_hand_out(pool, want, node, answer == GM_ACQUIRE_FRESH, out);
  return answer;
}

gm_acquire gm_alloc(gm_pool *pool, const gm_request *request, gm_block *out) {
  gm__want want;
  if (!gm__pool_is(pool) || !out) return GM_ACQUIRE_INVALID;
  if (gm__pool_forked(pool)) return GM_ACQUIRE_FAILED;
  if (gm__want_read(pool, request, &want, NULL)) return GM_ACQUIRE_INVALID;
  return acquire(pool, &want, out);
}

gm_acquire gm__pool_alloc_beside(gm_pool *pool, const gm_request *request, gm_block *out) {
  gm__want want;
  if (gm__want_read(pool, request, &want, NULL)) return GM_ACQUIRE_INVALID;
  if (pool->has_upstream) return GM_ACQUIRE_EXHAUSTED;
  if (want.must_be == GM_DEVICE_LOCAL) want.must_be = GM_DEVICE_ACCESSIBLE;
  want.beside_device = true;
  gm_acquire answer = acquire(pool, &want, out);
  return answer == GM_ACQUIRE_FAILED ? GM_ACQUIRE_EXHAUSTED : answer;
}

gm_status gm_block_wrap(gm_pool *pool, const gm_native_memory *native, gm_block *out, gm_error *err) {
  static const char op[] = "gm_block_wrap";
  gm_status status = gm__pool_check(pool, op, err);
  if (status) return status;
  if (!native || !out) return gm__bad_argument(err, op, "`%s` is NULL", native ? "out" : "native");
  gm_memory memory = {.handle = 0};
  status = pool->device->ops->memory_wrap(pool->device->handle, native, &memory, err);
  if (status) return status;
  gm__want want = {.bytes = memory.bytes, .exact = memory.bytes, .align = 1, .size_class = gm_size_class(memory.bytes)};
  gm__node *node = NULL;
  memory.wrapped = true;
  status = gm__supply_adopt(pool, &want, &memory, &node, err);
  if (status) {
    gm__device_free(pool->device, &memory, NULL);
    return status;
  }
  acquire_hand_out(pool, &want, node, true, out);
  return GM_OK;
}

/* Give back the oldest blocks of a bucket that holds too many, as far as their streams are done with them. A few at a
 * time: each free adds one, so more are never needed for long. */
static void acquire_shrink(gm_pool *pool, gm__node *node, gm__leaving *leaving) {
  gm__node_list *bucket = &pool->buckets.classes[node->size_class];
  gm__node *oldest = bucket->last;
  for (int turn = 0; turn < 4 && oldest && bucket->count > pool->buckets.most; turn++) {
    gm__node *newer = oldest->links[GM__BY_BUCKET].prev;
    if (!gm__pool_settle(pool, oldest)) gm__order_refresh(&pool->order, oldest->streams, 0);
    if (gm__pool_settle(pool, oldest)) gm__supply_detach(pool, leaving, oldest);
    oldest = newer;
  }
}

/* The live node, taken away from its owner; NULL if the block names none. */
static gm_status acquire_take_back(gm_pool *pool, const gm_block *block, gm__node **out) {
  gm__node *node = gm__pool_find(pool, block);
  if (!node) return GM_ERR_INVALID_ARGUMENT;
  if (node->mapped) return GM_ERR_BUSY;
  node->state = GM__NODE_AWAY;
  node->check++;
  pool->live--;
  gm__stats_uncount(&pool->stats.requested_bytes, node->requested);
  gm__stats_uncount(&pool->stats.in_use_bytes, node->bytes);
  gm__stats_count(&pool->stats.frees, 1);
  *out = node;
  return GM_OK;
}

gm_status gm_free(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  if (!gm__pool_is(pool) || !block || (stream && stream->device != pool->device)) return GM_ERR_INVALID_ARGUMENT;
  if (gm__pool_forked(pool)) return GM_ERR_FORKED;
  gm__leaving leaving = {0};
  gm__node *node;
  gm__mutex_lock(&pool->lock);
  gm_status status = acquire_take_back(pool, block, &node);
  uint64_t track_id = status ? 0 : node->track_id;
  if (!status && node->foreign) { /* the engine's own: nothing to keep */
    gm__supply_leave(pool, &leaving, node);
  } else if (!status) {
    gm__order_note_free(&pool->order, node, acquire_free_slot(pool, stream));
    gm__pool_put(pool, node);
    if (pool->strategy == GM_STRATEGY_BUCKET) acquire_shrink(pool, node, &leaving);
  }
  gm__mutex_unlock(&pool->lock);
  gm__supply_return(pool, &leaving);
  if (track_id) gm_tracker_untrack(pool->tracker, track_id);
  return status;
}

gm_status gm_use_on(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  if (!gm__pool_is(pool) || !block || !stream || stream->device != pool->device) return GM_ERR_INVALID_ARGUMENT;
  if (gm__pool_forked(pool)) return GM_ERR_FORKED;
  gm_status status = GM_OK;
  gm__mutex_lock(&pool->lock);
  gm__node *node = gm__pool_find(pool, block);
  int slot = node ? gm__order_slot_of(&pool->order, stream) : GM__ORDER_HOST;
  if (!node) {
    status = GM_ERR_INVALID_ARGUMENT;
  } else if (slot == GM__ORDER_HOST) {
    status = GM_ERR_NOT_SUPPORTED;
  } else {
    node->users |= UINT64_C(1) << slot;
  }
  gm__mutex_unlock(&pool->lock);
  return status;
}

gm_point gm_block_point(gm_pool *pool, const gm_block *block) {
  gm_point point = {0};
  if (!gm__pool_is(pool) || !block || gm__pool_forked(pool)) return point;
  gm__mutex_lock(&pool->lock);
  const gm__node *node = gm__pool_find(pool, block);
  if (node && node->has_point) {
    point = (gm_point){pool->order.slots[node->point_slot].stream->id, node->point.handle, node->point.value};
  }
  gm__mutex_unlock(&pool->lock);
  return point;
}
