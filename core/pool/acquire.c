#include "core/pool/acquire.h"

#include <string.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/pool/quota.h"
#include "core/pool/record.h"
#include "core/pool/release.h"
#include "core/pool/room.h"
#include "core/pool/serve.h"
#include "core/pool/spanned.h"
#include "core/pool/supply.h"
#include "core/pool/tracked.h"

/* What gm_alloc and gm_free do where the fast path (fast.c) does not: all of it for buckets, and what is the same for
 * every strategy: zeroing, tracking, answers. Of the buckets a request is served in this order: a pooled block that its
 * stream may use at once; one that a point says is done; one of the stream's own that needs a barrier or a wait there;
 * new memory; a block of another stream that needs a wait, because a wait is better than a failure; what a trim sets
 * free. A node is AWAY while one thread works on it outside the lock; nobody else can name it. */

/* Bring a node that is AWAY into the request's order; false when that is not possible. Steps out of the lock. */
static bool acquire_order(gm_pool *pool, const gm__want *want, int slot, gm__node *node, gm__order_verdict verdict,
                          gm_acquire *out) {
  gm_error failure;
  gm_status status = GM_OK;
  *out = GM_ACQUIRE_OK;
  if (verdict == GM__ORDER_READY) return true;
  if (want->insert) {
    status = gm__order_insert(&pool->order, &node->rare.mark, slot, &failure);
  } else if (verdict == GM__ORDER_BARRIER) {
    *out = GM_ACQUIRE_NEEDS_BARRIER;
  } else {
    *out = GM_ACQUIRE_NEEDS_WAIT;
    status = gm__order_attach_point(&pool->order, &node->rare.mark, slot, &failure);
  }
  if (status) {
    /* cppcheck-suppress uninitStructMember ; it is complete when a status is not GM_OK */
    pool->last_failure = failure;
    return false;
  }
  gm__stats_count(&pool->stats.waits, 1);
  return true;
}

static gm__order_verdict acquire_judge(gm_pool *pool, const gm__want *want, int slot, gm__node *node) {
  if (!node->leads) gm__order_settle(&pool->order, &node->rare.mark); /* who leads is settled */
  return gm__order_judge(&pool->order, &node->rare.mark, slot, want->insert);
}

/* Of a ring the newest that will do, if its newest does; else the oldest. The others are not looked at. */
static gm__node *acquire_of_ring(gm_pool *pool, const gm__want *want, int slot, gm__node *oldest,
                                 gm__order_verdict worst, gm__order_verdict *out) {
  gm__node *newest = gm__ring_newest(oldest), *node = newest;
  *out = acquire_judge(pool, want, slot, newest);
  const bool all = *out <= worst;
  if (all && gm__want_fits(pool, want, newest)) return newest;
  if (oldest == newest) return NULL;
  do {
    node = all ? gm__ring_older(node) : gm__ring_newer(node);
    *out = acquire_judge(pool, want, slot, node);
    if (*out <= worst && gm__want_fits(pool, want, node)) return node;
  } while (node != (all ? oldest : newest) && (*out <= worst || all));
  return NULL;
}

static gm__node *acquire_idle(const gm_pool *pool, const gm__want *want, const gm__bucket *bucket) {
  gm__node *node = bucket->idle.first;
  while (node && !gm__want_fits(pool, want, node)) node = node->links[GM__BY_USE].next;
  return node;
}

/* A node of the bucket with a verdict of at most `worst`: one that its own stream freed leaves idle ones to others. */
static gm__node *acquire_of_bucket(gm_pool *pool, const gm__want *want, int slot, const gm__bucket *bucket,
                                   gm__order_verdict worst, uint64_t *pending, gm__order_verdict *out) {
  for (gm__node *oldest = bucket->rings.first, *next; oldest; oldest = next) {
    next = oldest->links[GM__BY_RING].next;
    oldest = gm__pool_settle_ring(pool, oldest);
    if (!oldest) continue;
    gm__node *node = acquire_of_ring(pool, want, slot, oldest, worst, out);
    if (node) return node;
    *pending |= gm__ring_newest(oldest)->rare.mark.streams;
  }
  *out = GM__ORDER_READY;
  return acquire_idle(pool, want, bucket);
}

/* The first of the request's bucket, or of the next larger ones. *pending collects the streams that stand in the way of
 * others. */
static gm__node *acquire_scan(gm_pool *pool, const gm__want *want, int slot, gm__order_verdict worst, uint64_t *pending,
                              gm__order_verdict *out) {
  const uint32_t end = gm__bucket_class_end(&pool->buckets, want->size_class);
  gm__node *node = NULL;
  for (uint32_t class = want->size_class; class < end && !node; class ++) {
    node = acquire_of_bucket(pool, want, slot, &pool->buckets.classes[class], worst, pending, out);
  }
  return node;
}

/* A pooled node for the request and what it needs; NULL if there is none. Asks the driver only when nothing serves at
 * once, out of the lock. `others`: blocks of other streams with a wait, too. */
static gm__node *acquire_pooled(gm_pool *pool, const gm__want *want, int slot, bool others, gm__order_verdict *out) {
  uint64_t pending = 0;
  const gm__order_verdict worst = others ? GM__ORDER_OTHERS_WAIT : GM__ORDER_OWN_WAIT;
  const bool own_waits = slot != GM__ORDER_HOST && want->stream->kind != GM_STREAM_FIFO;
  if (pool->order.owed) gm__order_settle_up(&pool->order, want->stream);
  gm__node *node = acquire_scan(pool, want, slot, GM__ORDER_READY, &pending, out);
  if (!node && pending && !gm__stream_captured(want->stream)) {
    gm__order_refresh(&pool->order, gm__order_doubtful(&pool->order, pending, slot));
    node = acquire_scan(pool, want, slot, GM__ORDER_READY, &pending, out);
    if (!node && own_waits) node = acquire_scan(pool, want, slot, GM__ORDER_OWN_WAIT, &pending, out);
    if (!node && others) node = acquire_scan(pool, want, slot, worst, &pending, out);
  }
  return node;
}

static void acquire_count(gm_pool *pool, const gm__want *want, const gm__taken *taken, bool fresh) {
  const gm__node *node = taken->node;
  gm__stats *stats = &pool->stats;
  gm__stats_grow(&stats->in_use_bytes, &stats->peak_in_use_bytes, node->bytes);
  gm__stats_grow(&stats->requested_bytes, &stats->peak_requested_bytes, want->bytes);
  gm__stats_count(fresh ? &stats->misses : taken->same_stream ? &stats->stream_hits : &stats->global_hits, 1);
  if (taken->from_all) gm__stats_count(&stats->global_cache_hits, 1);
}

/* The node is the caller's now. With the lock. */
static void acquire_record(gm_pool *pool, const gm__want *want, const gm__taken *taken, bool fresh, gm_block *out) {
  gm__node *node = taken->node;
  node->requested = want->bytes;
  node->tag = want->tag;
  node->asked_on = want->stream ? want->stream->id : 0;
  node->rare.track_id = 0;
  node->state = GM__NODE_LIVE;
  node->check++;
  pool->live++;
  acquire_count(pool, want, taken, fresh);
  gm__record_enter(pool, node);
  if (gm__pool_quotas(pool)) gm__quota_enter(gm__pool_quotas(pool), want);
  *out = gm__node_block(node);
}

/* Nothing is left to do with pooled memory outside the lock that it was found under. */
static bool acquire_is_direct(const gm_pool *pool, const gm__want *want) {
  return !gm__pool_tracks(pool) && !(want->flags & GM_ZERO);
}

static void acquire_describe(gm__taken *taken, gm__node *node) {
  *taken = (gm__taken){
      .node = node, .memory = node->memory, .offset = node->offset, .address = node->address, .bytes = node->bytes};
}

/* The pooled node is in its bucket no more. */
static void acquire_pull(gm_pool *pool, const gm__want *want, gm__node *node, gm__taken *taken) {
  acquire_describe(taken, node);
  taken->same_stream = want->stream && node->freed_on == want->stream->id;
  taken->from_all = node->idle || !taken->same_stream;
  gm__pool_pull(pool, node);
  gm__pool_mark(pool, node);
  pool->buckets.classes[node->size_class].served++;
}

/* Pooled memory for the request, AWAY; or handed out already, if it is direct. */
static bool acquire_search(gm_pool *pool, const gm__want *want, bool others, gm__taken *taken, gm_acquire *out,
                           gm_block *block) {
  gm__mutex_lock(&pool->lock);
  int slot = gm__order_slot_of(&pool->order, want->stream);
  gm__order_verdict verdict;
  gm__node *node = acquire_pooled(pool, want, slot, others, &verdict);
  if (node) acquire_pull(pool, want, node, taken);
  const bool found = node && acquire_order(pool, want, slot, node, verdict, out);
  if (found) {
    if (verdict != GM__ORDER_READY) gm__pool_mark(pool, node);
    taken->done = acquire_is_direct(pool, want);
    if (taken->done) acquire_record(pool, want, taken, false, block);
  } else if (node) {
    gm__pool_free_node(pool, node, GM__ORDER_HOST); /* as it was: its streams may be no further */
    *taken = (gm__taken){.node = NULL};
  }
  gm__mutex_unlock(&pool->lock);
  return found;
}

/* New memory: rounded, or exact where that is too much. */
static gm_status acquire_fresh(gm_pool *pool, const gm__want *want, gm__taken *taken, gm_acquire *answer,
                               gm_error *err) {
  gm__node *node = NULL;
  gm_status status = gm__supply_take(pool, want, want->rounded, &node, err);
  if (gm__supply_is_shortage(status) && want->rounded != want->exact) {
    status = gm__supply_take(pool, want, want->exact, &node, err);
  }
  *answer = GM_ACQUIRE_FRESH;
  if (status == GM_OK) acquire_describe(taken, node);
  return status;
}

/* While the engine captures the request's stream nothing may be asked of the driver for it. Asked where a driver's call
 * comes next, so that the way without one stays without. */
bool gm__acquire_is_captured(const gm__want *want, gm_error *err) {
  if (!gm__stream_captured(want->stream)) return false;
  gm__fail(err, GM_ERR_BUSY, 0, "gm_alloc",
           "the stream is being captured: until that ends only pooled memory serves, such as was freed on it");
  return true;
}

/* gm__serve for buckets. */
static gm_status acquire_bucket(gm_pool *pool, const gm__want *want, gm__taken *taken, gm_acquire *answer,
                                gm_block *block, gm_error *err) {
  bool pooled_only = (want->flags & GM_POOLED_ONLY) != 0;
  if (acquire_search(pool, want, pooled_only, taken, answer, block)) return GM_OK;
  if (pooled_only) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  if (gm__acquire_is_captured(want, err)) return GM_ERR_BUSY;
  gm_status status = gm__room_check(pool, want, err);
  if (status) return status;
  status = acquire_fresh(pool, want, taken, answer, err);
  if (!gm__supply_is_shortage(status)) return status;
  if (acquire_search(pool, want, true, taken, answer, block)) return GM_OK;
  return gm__room_make(pool, want, status) ? acquire_fresh(pool, want, taken, answer, err) : status;
}

static gm_acquire acquire_answer(gm_status status) {
  if (status == GM_ERR_OVER_LIMIT) return GM_ACQUIRE_OVER_LIMIT;
  const bool passing = status == GM_ERR_OUT_OF_HOST_MEMORY || status == GM_ERR_BUSY;
  return gm__supply_is_shortage(status) || passing ? GM_ACQUIRE_EXHAUSTED : GM_ACQUIRE_FAILED;
}

/* The last word on a request: it fails for that reason. */
static gm_acquire acquire_refused(gm_pool *pool, const gm__want *want, const gm__refusal *why) {
  const gm_acquire answer = acquire_answer(why->status);
  if (want->flags & GM_POOLED_ONLY && gm__supply_is_shortage(why->status)) return GM_ACQUIRE_EXHAUSTED; /* no failure */
  gm__pool_note_failure(pool, &why->failure);
  if (answer == GM_ACQUIRE_OVER_LIMIT) gm__stats_count(&pool->stats.over_limit, 1);
  if (answer == GM_ACQUIRE_EXHAUSTED) gm__stats_count(&pool->stats.failures, 1);
  return answer;
}

static gm_status acquire_zero(gm_pool *pool, const gm__want *want, const gm__taken *taken, gm_error *err) {
  if (!want->stream) return gm__supply_zero(pool, &taken->memory, taken->offset, taken->bytes, err);
  const gm_device *device = pool->device;
  gm_backend_point point;
  gm_status status = gm__submitting(device)->fill(device->handle, want->stream->handle, &taken->memory, taken->offset,
                                                  taken->bytes, "", 1, &point, err);
  if (status) return status;
  device->ops->point_release(device->handle, &point, GM_CLOSE_NORMAL);
  if (want->stream->kind == GM_STREAM_FIFO) return GM_OK;
  return gm__submitting(device)->stream_barrier(device->handle, want->stream->handle,
                                                err); /* the caller's work follows the fill */
}

void gm__acquire_hand_out(gm_pool *pool, const gm__want *want, const gm__taken *taken, bool fresh, gm_block *out) {
  if (!taken->node) {
    gm__serve_hand_out(taken, want, fresh, out);
    return;
  }
  gm__mutex_lock(&pool->lock);
  acquire_record(pool, want, taken, fresh, out);
  const bool tracked = gm__pool_tracks(pool);
  gm__mutex_unlock(&pool->lock);
  if (tracked) gm__tracked_enter(pool, out);
}

/* Back into the pool in the order of the stream that may have been given work on it. */
static void acquire_undo(gm_pool *pool, const gm__want *want, const gm__taken *taken) {
  if (!taken->node) {
    gm__serve_undo(taken, want->stream);
    return;
  }
  int slot;
  gm__mutex_lock(&pool->lock);
  const bool noted = gm__give_back_slot(pool, want->stream, &slot) == GM_OK;
  if (noted) gm__pool_free_node(pool, taken->node, slot); /* else work may still run there: nobody gets it */
  gm__mutex_unlock(&pool->lock);
}

static gm_status acquire_take(gm_pool *pool, const gm__want *want, gm__taken *taken, gm_acquire *answer,
                              gm_block *block, gm_error *err) {
  if (want->flags & GM_ZERO && gm__acquire_is_captured(want, err)) return GM_ERR_BUSY;
  if (pool->strategy == GM_STRATEGY_BUCKET) return acquire_bucket(pool, want, taken, answer, block, err);
  return gm__serve(pool, want, taken, answer, block, err);
}

/* *why: the reason for an answer without a block that is still to be noted, with a status then. */
static gm_acquire acquire(gm_pool *pool, const gm__want *want, gm_block *out, gm__refusal *why) {
  gm_acquire answer = GM_ACQUIRE_OK;
  gm__taken taken = {.node = NULL};
  why->status = acquire_take(pool, want, &taken, &answer, out, &why->failure);
  if (why->status) return acquire_answer(why->status);
  if (taken.done) return answer;
  if (pool->guard) gm__guard_open(pool, &taken.memory, taken.offset, taken.bytes);
  if (want->flags & GM_ZERO && !taken.zeroed && acquire_zero(pool, want, &taken, &why->failure)) {
    acquire_undo(pool, want, &taken);
    gm__pool_note_failure(pool, &why->failure);
    return GM_ACQUIRE_FAILED;
  }
  gm__acquire_hand_out(pool, want, &taken, answer == GM_ACQUIRE_FRESH, out);
  if (answer == GM_ACQUIRE_FRESH) gm__cache_tend(pool);
  return answer;
}

/* For zones and patterns around it; blocks that only wait for their check are memory, too. */
static gm_acquire acquire_guarded(gm_pool *pool, const gm__want *want, gm_block *out, gm__refusal *why) {
  if (gm__guard_writes(pool->guard) && gm__acquire_is_captured(want, &why->failure)) {
    why->status = GM_ERR_BUSY;
    return acquire_answer(why->status);
  }
  gm__guard_reap(pool, false);
  gm_acquire answer = acquire(pool, want, out, why);
  bool short_of = answer == GM_ACQUIRE_EXHAUSTED || answer == GM_ACQUIRE_OVER_LIMIT;
  return short_of && gm__guard_reap(pool, true) ? acquire(pool, want, out, why) : answer;
}

/* Within the quota of its tag: claimed before anything is looked for. */
static gm_acquire acquire_within(gm_pool *pool, gm__want *want, gm_block *out, gm__refusal *why) {
  why->status = gm__pool_quotas(pool) ? gm__quota_claim(pool, want, &why->failure) : GM_OK;
  if (why->status) return acquire_answer(why->status);
  gm_acquire answer = pool->guard ? acquire_guarded(pool, want, out, why) : acquire(pool, want, out, why);
  if (answer > GM_ACQUIRE_NEEDS_BARRIER) {
    gm__quota_unclaim(pool, want);
    return answer;
  }
  return pool->guard ? gm__guard_hand_out(pool, want, answer, out) : answer;
}

gm_acquire gm__acquire_part(gm_pool *pool, const gm_request *request, gm_block *out, gm__refusal *why) {
  gm__want want;
  *why = (gm__refusal){.status = GM_OK};
  if (gm__want_read(pool, request, &want, NULL)) return GM_ACQUIRE_INVALID;
  return acquire_within(pool, &want, out, why);
}

gm_acquire gm__acquire(gm_pool *pool, const gm_request *request, gm_block *out) {
  gm__want want;
  if (!gm__pool_is(pool) || !out) return GM_ACQUIRE_INVALID;
  if (gm__pool_forked(pool)) return GM_ACQUIRE_FAILED;
  if (gm__want_read(pool, request, &want, NULL)) return GM_ACQUIRE_INVALID;
  gm__refusal why = {.status = GM_OK};
  gm_acquire answer = acquire_within(pool, &want, out, &why);
  if (want.flags & GM_ALLOW_SPANS && gm__supply_is_shortage(why.status)) {
    answer = gm__spanned_acquire(pool, &want, request, out, &why);
  }
  return why.status ? acquire_refused(pool, &want, &why) : answer;
}

gm_acquire gm__pool_alloc_beside(gm_pool *pool, const gm_request *request, gm_block *out) {
  gm__want want;
  gm_request beside = *request;
  if (beside.must_be == GM_DEVICE_LOCAL) beside.must_be = GM_DEVICE_ACCESSIBLE;
  if (gm__want_read(pool, &beside, &want, NULL)) return GM_ACQUIRE_INVALID;
  if (pool->has_upstream) return GM_ACQUIRE_EXHAUSTED;
  want.beside_device = true;
  gm__refusal why = {.status = GM_OK};
  gm_acquire answer = acquire_within(pool, &want, out, &why);
  if (why.status) answer = acquire_refused(pool, &want, &why);
  return answer == GM_ACQUIRE_FAILED ? GM_ACQUIRE_EXHAUSTED : answer;
}

gm_status gm__pool_alloc_managed(gm_pool *pool, const gm_request *request, gm_block *out, gm_error *err) {
  gm__want want;
  gm__node *node = NULL;
  gm__taken taken;
  gm__refusal why = {.status = GM_OK};
  gm_status status = gm__want_read(pool, request, &want, err);
  if (status) return status;
  want.managed = true;
  status = gm__quota_claim(pool, &want, err);
  if (status) return status;
  status = gm__supply_take(pool, &want, want.exact, &node, &why.failure);
  if (gm__supply_is_shortage(status) && gm__room_make(pool, &want, status)) {
    status = gm__supply_take(pool, &want, want.exact, &node, &why.failure);
  }
  if (status) {
    gm__quota_unclaim(pool, &want);
    why.status = status;
    acquire_refused(pool, &want, &why);
    if (err) *err = why.failure;
    return status;
  }
  acquire_describe(&taken, node);
  gm__acquire_hand_out(pool, &want, &taken, true, out);
  return GM_OK;
}
