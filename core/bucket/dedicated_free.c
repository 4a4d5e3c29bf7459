#include "core/bucket/dedicated.h"

#include "core/base/saturate.h"
#include "core/provider/walk.h"

enum { DEDICATED_TURNS = 4 }; /* blocks that a free looks at */

static gm_status dedicated_slot(gm__dedicated *dedicated, gm_stream *stream, int *out) {
  *out = gm__order_free_slot(&dedicated->order, stream);
  return stream && *out == GM__ORDER_HOST ? GM_ERR_OUT_OF_HOST_MEMORY : GM_OK;
}

/* True when the block is idle by now. A free submits nothing, because an engine may hold the lock of its queue. */
static bool dedicated_look(gm__dedicated *dedicated, gm__allocation *allocation) {
  if (!gm__dedicated_settle(dedicated, allocation)) gm__order_look(&dedicated->order, allocation->cold.use.streams);
  return gm__dedicated_settle(dedicated, allocation);
}

/* Gives back blocks of a bucket that has too many, as far as their streams are done: idle ones, then the oldest of each
 * list. A few at a time suffice: each free adds one. */
static void dedicated_shrink(gm__dedicated *dedicated, const gm__bucket *bucket, uint32_t most, gm__leaving *leaving) {
  uint64_t left = bucket->busy;
  for (int turn = 0; turn < DEDICATED_TURNS && bucket->count > most; turn++) {
    const gm__allocation_list *busy = left ? &bucket->streams[gm__order_lowest(left)] : &bucket->several;
    gm__allocation *oldest = bucket->idle.last ? bucket->idle.last : busy->last;
    if (oldest && dedicated_look(dedicated, oldest)) {
      gm__dedicated_detach(dedicated, leaving, oldest);
    } else if (!left) {
      return;
    } else {
      left &= left - 1;
    }
  }
}

static bool dedicated_is_over(const gm__dedicated *dedicated) {
  return dedicated->buckets.idle > atomic_load_explicit(&dedicated->most_idle, memory_order_relaxed) ||
         dedicated->buckets.ages.count > atomic_load_explicit(&dedicated->most_of_pool, memory_order_relaxed);
}

static bool dedicated_is_full(const gm__dedicated *dedicated, int slot) {
  return slot != GM__ORDER_HOST && dedicated->buckets.busy[gm__order_place(slot)] >
                                       atomic_load_explicit(&dedicated->most_of_stream, memory_order_relaxed);
}

/* Like dedicated_shrink, for the bounds of the caches. A stream that keeps too many blocks gives them to the pool once
 * it is done with them. A pool that keeps too many gives them back. */
static void dedicated_shrink_caches(gm__dedicated *dedicated, int slot, gm__leaving *leaving) {
  gm__allocation *oldest = dedicated->buckets.ages.last;
  for (int turn = 0;
       turn < DEDICATED_TURNS && oldest && (dedicated_is_over(dedicated) || dedicated_is_full(dedicated, slot));
       turn++) {
    gm__allocation *newer = oldest->links[GM__BY_AGE].prev;
    if (dedicated_look(dedicated, oldest) && dedicated_is_over(dedicated))
      gm__dedicated_detach(dedicated, leaving, oldest);
    oldest = newer;
  }
}

static void dedicated_pool(gm__dedicated *dedicated, gm__allocation *allocation, const gm_stream *stream, int slot,
                           gm__leaving *leaving) {
  gm__dedicated_keep(dedicated, allocation, slot);
  const gm__bucket *bucket = &dedicated->buckets.classes[allocation->size_class];
  const bool beyond = gm__bucket_is_beyond(&dedicated->buckets, allocation->size_class);
  const uint32_t most = beyond ? 0 : dedicated->buckets.most;
  const bool over = bucket->count > most || dedicated_is_over(dedicated) || dedicated_is_full(dedicated, slot);
  if (!over || !(dedicated->bounded || beyond) || gm__stream_captured(stream)) return;
  dedicated_shrink(dedicated, bucket, most, leaving);
  if (!dedicated->bounded) return;
  dedicated_shrink_caches(dedicated, slot, leaving);
}

/* Waits until `stream` (NULL: none) and the streams of gm_use_on are done with an imported block. BUSY: the engine
 * captures one of them, or nothing can wait for it. Steps out of the lock, so the block may be gone afterwards. */
static gm_status dedicated_drain(gm__dedicated *dedicated, const gm__allocation *allocation, gm_stream *stream,
                                 gm_error *err) {
  gm__last_use all = {.users = allocation->cold.use.users};
  const int slot = gm__order_free_slot(&dedicated->order, stream); /* the free has found it before */
  if (slot != GM__ORDER_HOST) gm__order_note_use(&dedicated->order, &all, slot);
  return gm__order_drain_slots(&dedicated->order, all.users, "gm_free", err);
}

/* Imported memory goes back at once, so all work on it must be done. Look the block up again afterwards. */
static gm_status dedicated_wait(gm__dedicated *dedicated, const gm_block *block, gm_stream *stream) {
  gm_error failure;
  const gm__allocation *allocation = gm__allocation_find(&dedicated->provider->allocations, block, dedicated->checked);
  if (!allocation || !allocation->import || allocation->cold.mappings) return GM_OK;
  const gm_status status = dedicated_drain(dedicated, allocation, stream, &failure);
  if (status) {
    dedicated->provider->refused = (gm__refused){.failure = failure, .want = {.bytes = block->bytes}};
  }
  return status;
}

/* Takes the live allocation from its owner, who frees it in the order of `stream`. */
static gm_status dedicated_take_back(gm__dedicated *dedicated, const gm_block *block, gm_stream *stream,
                                     gm__allocation **out) {
  const gm_status status = dedicated_wait(dedicated, block, stream);
  if (status) return status;
  gm__allocation *allocation = gm__allocation_find(&dedicated->provider->allocations, block, dedicated->checked);
  if (!allocation) return GM_ERR_INVALID_ARGUMENT;
  if (allocation->cold.part) return GM_ERR_INVALID_ARGUMENT;
  if (allocation->cold.mappings) return GM_ERR_BUSY;
  gm__dedicated_observe_leave(dedicated, allocation, stream);
  allocation->state = GM__ALLOCATION_AWAY;
  allocation->check++;
  allocation->cold.guard = (gm__guarded){.owner = NULL};
  dedicated->live--;
  gm__stats_uncount(&dedicated->provider->stats.requested_bytes, allocation->requested);
  gm__stats_uncount(&dedicated->provider->stats.in_use_bytes, allocation->bytes);
  gm__stats_count(&dedicated->provider->stats.frees, 1);
  *out = allocation;
  return GM_OK;
}

/* REQUIRES: provider lock. */
static gm_status dedicated_free(gm__dedicated *dedicated, const gm_block *block, gm_stream *stream,
                                uint64_t *out_track_id, gm__leaving *leaving) {
  gm__allocation *allocation;
  int slot;
  gm_status status = dedicated_slot(dedicated, stream, &slot);
  if (!status) status = dedicated_take_back(dedicated, block, stream, &allocation);
  if (status) return status;
  *out_track_id = allocation->cold.track_id;
  if (allocation->foreign) { /* the engine's own, or another process's: the pool keeps none of it */
    gm__dedicated_leave(dedicated, leaving, allocation);
  } else {
    dedicated_pool(dedicated, allocation, stream, slot, leaving);
  }
  return GM_OK;
}

gm_status gm__dedicated_free(gm__dedicated *dedicated, const gm_block *block, gm_stream *stream,
                             uint64_t *out_track_id) {
  gm__leaving leaving = {0};
  gm__mutex_lock(&dedicated->provider->lock);
  const gm_status status = dedicated_free(dedicated, block, stream, out_track_id, &leaving);
  gm__mutex_unlock(&dedicated->provider->lock);
  gm__provider_return(dedicated->provider, &leaving);
  return status;
}

gm_status gm__dedicated_free_at(gm__dedicated *dedicated, uint64_t address, uint64_t bytes, gm_stream *stream,
                                uint64_t *out_track_id) {
  gm__leaving leaving = {0};
  gm_status status = GM_ERR_INVALID_ARGUMENT;
  gm__mutex_lock(&dedicated->provider->lock);
  const gm__allocation *allocation = gm__address_map_find(&dedicated->provider->addresses, address);
  if (allocation && allocation->address == address && bytes <= allocation->bytes) {
    const gm_block block = gm__allocation_block(allocation);
    status = dedicated_free(dedicated, &block, stream, out_track_id, &leaving);
  }
  gm__mutex_unlock(&dedicated->provider->lock);
  gm__provider_return(dedicated->provider, &leaving);
  return status;
}

void gm__dedicated_quarantine(gm__dedicated *dedicated, const gm_block *block) {
  gm__allocation *allocation;
  gm__mutex_lock(&dedicated->provider->lock);
  dedicated_take_back(dedicated, block, NULL, &allocation);
  gm__mutex_unlock(&dedicated->provider->lock);
}

/* One trim: its bounds, and the blocks that are on their way already. */
typedef struct dedicated_trim {
  gm__dedicated *dedicated;
  uint64_t (*pooled)(void *user);
  void *user;
  uint64_t keep_bytes, freed_by;
  gm__leaving *leaving;
  uint32_t looks;
} dedicated_trim;

/* A pooled block as it was before the lock was left. */
typedef struct dedicated_seen {
  gm__allocation *allocation;
  uint32_t check;
} dedicated_seen;

static dedicated_seen dedicated_see(gm__allocation *allocation) {
  return (dedicated_seen){allocation, allocation ? allocation->check : 0};
}

/* NULL: somebody has taken it since. */
static gm__allocation *dedicated_seen_again(const dedicated_seen *seen) {
  const gm__allocation *at = seen->allocation;
  return at && at->state == GM__ALLOCATION_POOLED && at->check == seen->check ? seen->allocation : NULL;
}

/* Leaves the lock after each piece. Returns the block to go on with: `next`, or the oldest if that has gone. */
static gm__allocation *dedicated_trim_next(dedicated_trim *trim, gm__allocation *next) {
  const dedicated_seen seen = dedicated_see(next);
  if (!next || ++trim->looks % GM__PROVIDER_PIECE) return next;
  gm__provider_breathe(trim->dedicated->provider);
  gm__allocation *again = dedicated_seen_again(&seen);
  return again ? again : trim->dedicated->buckets.ages.last;
}

/* The bytes that are still too many. */
static uint64_t dedicated_excess(const dedicated_trim *trim) {
  return gm__sub_sat(gm__sub_sat(trim->pooled(trim->user), trim->leaving->bytes), trim->keep_bytes);
}

static bool dedicated_is_chosen(const dedicated_trim *trim, gm__allocation *allocation) {
  return gm__freed_by(allocation->cold.use.freed_at, trim->freed_by) &&
         gm__dedicated_settle(trim->dedicated, allocation);
}

/* Gives the smallest block that is enough by itself, the oldest of equal ones. False: none is. */
static bool dedicated_trim_one(dedicated_trim *trim) {
  const uint64_t excess = dedicated_excess(trim);
  dedicated_seen seen = {NULL, 0};
  for (gm__allocation *each = trim->dedicated->buckets.ages.last; each;
       each = dedicated_trim_next(trim, each->links[GM__BY_AGE].prev)) {
    gm__allocation *best = dedicated_seen_again(&seen);
    const bool better = each->bytes >= excess && (!best || each->bytes < best->bytes);
    if (better && dedicated_is_chosen(trim, each)) seen = dedicated_see(each);
  }
  gm__allocation *best = dedicated_seen_again(&seen);
  if (best) gm__dedicated_detach(trim->dedicated, trim->leaving, best);
  return best != NULL;
}

/* Gives the oldest blocks, up to one that is enough for the rest. */
static void dedicated_trim_oldest(dedicated_trim *trim) {
  for (gm__allocation *each = trim->dedicated->buckets.ages.last, *newer; each;
       each = dedicated_trim_next(trim, newer)) {
    newer = each->links[GM__BY_AGE].prev;
    if (!dedicated_is_chosen(trim, each)) continue;
    if (each->bytes >= dedicated_excess(trim)) return;
    gm__dedicated_detach(trim->dedicated, trim->leaving, each);
  }
}

void gm__dedicated_trim(gm__dedicated *dedicated, uint64_t (*pooled)(void *user), void *user, uint64_t keep_bytes,
                        uint64_t freed_by, gm__leaving *leaving) {
  dedicated_trim trim = {dedicated, pooled, user, keep_bytes, freed_by, leaving, 0};
  gm__mutex_lock(&dedicated->provider->lock);
  if (dedicated_excess(&trim) && !dedicated_trim_one(&trim)) {
    dedicated_trim_oldest(&trim);
    if (dedicated_excess(&trim)) dedicated_trim_one(&trim);
  }
  gm__mutex_unlock(&dedicated->provider->lock);
}

static void dedicated_sweep_class(gm__dedicated *dedicated, const gm__bucket *bucket, uint64_t reserved,
                                  gm__leaving *leaving) {
  uint32_t looks = 0;
  gm__dedicated_settle_bucket(dedicated, bucket);
  while (bucket->idle.last && bucket->count > bucket->served) {
    if (atomic_load(&dedicated->provider->stats.reserved_bytes) - leaving->bytes <= reserved) return;
    gm__dedicated_detach(dedicated, leaving, bucket->idle.last);
    if (++looks % GM__PROVIDER_PIECE == 0) gm__provider_breathe(dedicated->provider);
  }
}

void gm__dedicated_sweep(gm__dedicated *dedicated, uint64_t reserved, gm__leaving *leaving) {
  gm__mutex_lock(&dedicated->provider->lock);
  for (uint32_t i = 0; i < dedicated->buckets.class_count; i++) {
    dedicated_sweep_class(dedicated, &dedicated->buckets.classes[i], reserved, leaving);
    dedicated->buckets.classes[i].served = 0;
  }
  gm__mutex_unlock(&dedicated->provider->lock);
}
