#include "core/bucket/dedicated.h"

/* The order in which blocks serve a request. First: a pooled block that its stream may use at once. Then: one that a
 * point says is done. Then: one of its own stream, with a barrier or a wait there. Last, with `others`: one of another
 * stream, with a wait. An allocation is AWAY while one thread works on it outside the lock; no other thread can name
 * it. */

/* The newest block of the list that fits. */
static gm__allocation *dedicated_newest(const gm__dedicated *dedicated, const gm__want *want,
                                        const gm__allocation_list *list) {
  gm__allocation *allocation = list->first;
  while (allocation && !gm__want_fits(dedicated->provider, want, allocation))
    allocation = allocation->links[GM__BY_USE].next;
  return allocation;
}

/* The newest block that fits of a stream's list, which is not empty: all its blocks need the same. */
static gm__allocation *dedicated_of_stream(const gm__dedicated *dedicated, const gm__want *want, int slot,
                                           const gm__allocation_list *list, gm__order_verdict worst,
                                           gm__order_verdict *out) {
  *out = gm__order_judge(&dedicated->order, &list->first->cold.use, slot, want->insert);
  return *out <= worst ? dedicated_newest(dedicated, want, list) : NULL;
}

/* The oldest block that will do, of those that several streams may use. */
static gm__allocation *dedicated_of_several(const gm__dedicated *dedicated, const gm__want *want, int slot,
                                            gm__allocation *oldest, gm__order_verdict worst, uint64_t *pending,
                                            gm__order_verdict *out) {
  gm__allocation *allocation = oldest;
  for (int looks = GM__DEDICATED_LOOKS; allocation && looks; allocation = allocation->links[GM__BY_USE].prev, looks--) {
    *out = gm__order_judge(&dedicated->order, &allocation->cold.use, slot, want->insert);
    if (*out <= worst && gm__want_fits(dedicated->provider, want, allocation)) return allocation;
    *pending |= allocation->cold.use.streams;
  }
  return NULL;
}

/* A block of the bucket that streams may still use, with a verdict of at most `worst`. The request's own stream comes
 * first. */
static gm__allocation *dedicated_busy(const gm__dedicated *dedicated, const gm__want *want, int slot,
                                      const gm__bucket *bucket, gm__order_verdict worst, uint64_t *pending,
                                      gm__order_verdict *out) {
  const uint64_t own = slot == GM__ORDER_HOST ? 0 : bucket->busy & gm__order_bit(slot);
  gm__allocation *allocation = NULL;
  if (own) allocation = dedicated_of_stream(dedicated, want, slot, &bucket->streams[slot], worst, out);
  if (!allocation && bucket->several.last)
    allocation = dedicated_of_several(dedicated, want, slot, bucket->several.last, worst, pending, out);
  if (allocation || worst < GM__ORDER_OTHERS_WAIT) return allocation;
  for (uint64_t left = bucket->busy & ~own; left && !allocation; left &= left - 1) {
    allocation = dedicated_of_stream(dedicated, want, slot, &bucket->streams[gm__order_lowest(left)], worst, out);
  }
  return allocation;
}

/* A block of the bucket with a verdict of at most `worst`. One that the request's own stream freed comes first: idle
 * ones are for others. */
static gm__allocation *dedicated_of_bucket(gm__dedicated *dedicated, const gm__want *want, int slot,
                                           const gm__bucket *bucket, gm__order_verdict worst, uint64_t *pending,
                                           gm__order_verdict *out) {
  if (bucket->count > bucket->idle.count) {
    gm__dedicated_settle_bucket(dedicated, bucket);
    gm__allocation *allocation = dedicated_busy(dedicated, want, slot, bucket, worst, pending, out);
    if (allocation) return allocation;
  }
  *pending |= bucket->busy;
  *out = GM__ORDER_READY;
  return dedicated_newest(dedicated, want, &bucket->idle);
}

/* The first that serves, from the request's bucket or the next larger ones. *pending gets the streams that still use
 * the others. */
static gm__allocation *dedicated_scan(gm__dedicated *dedicated, const gm__want *want, int slot, gm__order_verdict worst,
                                      uint64_t *pending, gm__order_verdict *out) {
  const uint32_t end = gm__bucket_class_end(&dedicated->buckets, want->size_class);
  gm__allocation *allocation = NULL;
  for (uint32_t class = want->size_class; class < end && !allocation; class ++) {
    allocation = dedicated_of_bucket(dedicated, want, slot, &dedicated->buckets.classes[class], worst, pending, out);
  }
  return allocation;
}

/* A pooled allocation for the request, and what it needs; NULL: there is none. It asks the driver only when nothing
 * serves at once. `others`: blocks of other streams serve, too, with a wait. Steps out of the lock. */
static gm__allocation *dedicated_pooled(gm__dedicated *dedicated, const gm__want *want, int slot, bool others,
                                        gm__order_verdict *out) {
  uint64_t pending = 0;
  const gm__order_verdict worst = others ? GM__ORDER_OTHERS_WAIT : GM__ORDER_OWN_WAIT;
  const bool own_waits = slot != GM__ORDER_HOST && want->stream->kind != GM_STREAM_FIFO;
  if (dedicated->order.owed) gm__order_settle_up(&dedicated->order, want->stream);
  gm__allocation *allocation = dedicated_scan(dedicated, want, slot, GM__ORDER_READY, &pending, out);
  if (!allocation && pending && !gm__stream_captured(want->stream)) {
    gm__order_refresh(&dedicated->order, gm__order_doubtful(&dedicated->order, pending, slot));
    allocation = dedicated_scan(dedicated, want, slot, GM__ORDER_READY, &pending, out);
    if (!allocation && own_waits) allocation = dedicated_scan(dedicated, want, slot, GM__ORDER_OWN_WAIT, &pending, out);
    if (!allocation && others) allocation = dedicated_scan(dedicated, want, slot, worst, &pending, out);
  }
  return allocation;
}

static void dedicated_count(gm__dedicated *dedicated, const gm__want *want, const gm__grant *grant, bool fresh) {
  const gm__allocation *allocation = grant->allocation;
  gm__stats *stats = &dedicated->provider->stats;
  gm__stats_grow(&stats->in_use_bytes, &stats->peak_in_use_bytes, allocation->bytes);
  gm__stats_grow(&stats->requested_bytes, &stats->peak_requested_bytes, want->bytes);
  gm__stats_count(fresh ? &stats->misses : grant->same_stream ? &stats->stream_hits : &stats->global_hits, 1);
  if (grant->from_all) gm__stats_count(&stats->global_cache_hits, 1);
}

/* The caller has the allocation now. REQUIRES: provider lock. */
static void dedicated_record(gm__dedicated *dedicated, const gm__want *want, const gm__grant *grant, bool fresh,
                             gm_block *out) {
  gm__allocation *allocation = grant->allocation;
  allocation->requested = want->bytes;
  allocation->tag = want->tag;
  allocation->asked_on = want->stream ? want->stream->id : 0;
  allocation->cold.track_id = 0;
  allocation->state = GM__ALLOCATION_LIVE;
  allocation->check++;
  dedicated->live++;
  dedicated_count(dedicated, want, grant, fresh);
  gm__dedicated_observe_enter(dedicated, allocation, want->counted);
  *out = gm__allocation_block(allocation);
}

/* True when nothing is left to do with pooled memory outside the lock. */
static bool dedicated_is_direct(const gm__dedicated *dedicated, const gm__want *want) {
  const bool later = want->flags & (GM_ZERO | GM_MAPPED);
  return !dedicated->guarded && !gm__observers_track(dedicated->observers) && !later;
}

void gm__dedicated_describe(gm__grant *grant, gm__allocation *allocation) {
  *grant = (gm__grant){.allocation = allocation,
                       .memory = allocation->memory,
                       .offset = allocation->offset,
                       .address = allocation->address,
                       .bytes = allocation->bytes};
}

/* Takes the pooled allocation out of its bucket. */
static void dedicated_remove(gm__dedicated *dedicated, const gm__want *want, gm__allocation *allocation,
                             gm__grant *grant) {
  gm__dedicated_describe(grant, allocation);
  grant->same_stream = want->stream && allocation->freed_on == want->stream->id;
  grant->from_all = allocation->idle || !grant->same_stream;
  gm__dedicated_pull(dedicated, allocation);
  gm__dedicated_note_use(dedicated, allocation);
  dedicated->buckets.classes[allocation->size_class].served++;
}

bool gm__dedicated_alloc_pooled(gm__dedicated *dedicated, const gm__want *want, bool others, gm__grant *grant,
                                gm_acquire *out, gm_block *block) {
  gm__mutex_lock(&dedicated->provider->lock);
  int slot = gm__order_slot_of(&dedicated->order, want->stream);
  gm__order_verdict verdict;
  gm__allocation *allocation = dedicated_pooled(dedicated, want, slot, others, &verdict);
  if (allocation) dedicated_remove(dedicated, want, allocation, grant);
  *out = GM_ACQUIRE_OK;
  const bool found =
      allocation && (verdict == GM__ORDER_READY || gm__want_order(dedicated->provider, want, &dedicated->order,
                                                                  &allocation->cold.use, slot, verdict, out));
  if (found) {
    if (verdict != GM__ORDER_READY) gm__dedicated_note_use(dedicated, allocation);
    grant->done = dedicated_is_direct(dedicated, want);
    if (grant->done) dedicated_record(dedicated, want, grant, false, block);
  } else if (allocation) {
    gm__dedicated_keep(dedicated, allocation, GM__ORDER_HOST); /* as it was: its streams may have come no further */
    *grant = (gm__grant){.allocation = NULL};
  }
  gm__mutex_unlock(&dedicated->provider->lock);
  return found;
}

gm_status gm__dedicated_alloc_fresh(gm__dedicated *dedicated, const gm__want *want, gm__grant *grant,
                                    gm_acquire *answer, gm_error *err) {
  gm__allocation *allocation = NULL;
  gm_status status = gm__provider_alloc(dedicated->provider, want, want->rounded, &allocation, err);
  if (gm__is_shortage(status) && want->rounded != want->exact) {
    status = gm__provider_alloc(dedicated->provider, want, want->exact, &allocation, err);
  }
  *answer = GM_ACQUIRE_FRESH;
  if (status == GM_OK) gm__dedicated_describe(grant, allocation);
  return status;
}

void gm__dedicated_hand_out(gm__dedicated *dedicated, const gm__want *want, const gm__grant *grant, bool fresh,
                            gm_block *out) {
  gm__mutex_lock(&dedicated->provider->lock);
  dedicated_record(dedicated, want, grant, fresh, out);
  gm__mutex_unlock(&dedicated->provider->lock);
}

void gm__dedicated_undo(gm__dedicated *dedicated, const gm__grant *grant, gm_stream *stream) {
  gm__mutex_lock(&dedicated->provider->lock);
  const int slot = gm__order_free_slot(&dedicated->order, stream);
  const bool noted = !stream || slot != GM__ORDER_HOST;
  if (noted)
    gm__dedicated_keep(dedicated, grant->allocation, slot); /* else work may still run there, and nobody gets it */
  gm__mutex_unlock(&dedicated->provider->lock);
}
