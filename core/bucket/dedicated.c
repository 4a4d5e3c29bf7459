#include "core/bucket/dedicated.h"

#include "core/provider/walk.h"

/* How allocations come into the buckets and leave them. Invariants: a pooled allocation that is idle has no last use
 * and no point. An allocation outside the buckets that has a last use is in `multi_stream`. So a stream that closes is
 * looked for there, in its own lists, and in the lists of several streams. */

static bool dedicated_has_use(const gm__last_use *use) { return use->streams || use->users || use->has_point; }

void gm__dedicated_note_use(gm__dedicated *dedicated, gm__allocation *allocation) {
  if (allocation->multi_stream || !dedicated_has_use(&allocation->cold.use)) return;
  allocation->multi_stream = true;
  gm__allocation_list_push(&dedicated->multi_stream, GM__BY_USE, allocation);
}

/* The allocation no longer has a last use outside the buckets. */
static void dedicated_drop_use(gm__dedicated *dedicated, gm__allocation *allocation) {
  if (!allocation->multi_stream) return;
  allocation->multi_stream = false;
  gm__allocation_list_remove(&dedicated->multi_stream, GM__BY_USE, allocation);
}

static void dedicated_note(gm__dedicated *dedicated, const gm__allocation *allocation, bool pooled) {
  if (!gm__provider_lends(dedicated->provider) ||
      !gm__device_is_charged(dedicated->provider->device, &allocation->memory))
    return;
  gm__device_note_pooled(dedicated->provider->device,
                         pooled ? (int64_t)allocation->bytes : -(int64_t)allocation->bytes);
}

void gm__dedicated_keep(gm__dedicated *dedicated, gm__allocation *allocation, int slot) {
  dedicated_drop_use(dedicated, allocation);
  gm__order_note_free(&dedicated->order, &allocation->cold.use, slot);
  allocation->freed_on = gm__order_stream_id(&dedicated->order, slot);
  gm__bucket_put(&dedicated->buckets, allocation);
  dedicated_note(dedicated, allocation, true);
  if (allocation->idle) {
    gm__stats_count(&dedicated->provider->stats.reclaimable_bytes, allocation->bytes);
  } else {
    gm__dedicated_settle(dedicated, allocation);
  }
}

void gm__dedicated_pull(gm__dedicated *dedicated, gm__allocation *allocation) {
  if (allocation->idle) gm__stats_uncount(&dedicated->provider->stats.reclaimable_bytes, allocation->bytes);
  dedicated_note(dedicated, allocation, false);
  gm__bucket_remove(&dedicated->buckets, allocation);
}

bool gm__dedicated_settle(gm__dedicated *dedicated, gm__allocation *allocation) {
  if (allocation->idle || gm__order_settle(&dedicated->order, &allocation->cold.use)) return allocation->idle;
  gm__order_drop_point(&dedicated->order, &allocation->cold.use);
  gm__bucket_settle(&dedicated->buckets, allocation);
  gm__stats_count(&dedicated->provider->stats.reclaimable_bytes, allocation->bytes);
  return true;
}

static void dedicated_settle_several(gm__dedicated *dedicated, gm__allocation *oldest) {
  int looks = GM__DEDICATED_LOOKS;
  for (gm__allocation *allocation = oldest, *newer; allocation && looks; allocation = newer) {
    newer = allocation->links[GM__BY_USE].prev;
    looks -= !gm__dedicated_settle(dedicated, allocation);
  }
}

void gm__dedicated_settle_bucket(gm__dedicated *dedicated, const gm__bucket *bucket) {
  for (uint64_t left = bucket->busy; left; left &= left - 1) {
    const gm__allocation_list *list = &bucket->streams[gm__order_lowest(left)];
    while (list->last && gm__dedicated_settle(dedicated, list->last)) continue;
    if (list->first != list->last) gm__dedicated_settle(dedicated, list->first); /* it may have a point of its own */
  }
  if (bucket->several.last) dedicated_settle_several(dedicated, bucket->several.last);
}

void gm__dedicated_settle_given(gm__dedicated *dedicated) {
  uint32_t cursor = 0;
  gm__allocation *allocation;
  while (dedicated->order.given && (allocation = gm__provider_walk(dedicated->provider, &cursor))) {
    if (allocation->state == GM__ALLOCATION_POOLED) gm__dedicated_settle(dedicated, allocation);
  }
}

/* False: another thread has taken the allocation, and may be outside the lock with the stream. */
static bool dedicated_forget_one(gm__dedicated *dedicated, gm__allocation *allocation, int slot) {
  const bool pooled = allocation->state == GM__ALLOCATION_POOLED;
  if (!pooled && !allocation->multi_stream) return true;
  if (allocation->state == GM__ALLOCATION_AWAY && gm__order_is_pinned(&dedicated->order, slot)) return false;
  gm__order_forget_use(&dedicated->order, &allocation->cold.use, slot);
  if (pooled) {
    gm__dedicated_settle(dedicated, allocation);
  } else {
    gm__order_settle(&dedicated->order, &allocation->cold.use);
    if (!dedicated_has_use(&allocation->cold.use)) dedicated_drop_use(dedicated, allocation);
  }
  return true;
}

/* Blocks that the stream alone used leave its list. */
static void dedicated_forget_own(gm__dedicated *dedicated, const gm__bucket *bucket, int slot, uint32_t *looks) {
  while (bucket->streams && bucket->streams[slot].last) {
    dedicated_forget_one(dedicated, bucket->streams[slot].last, slot);
    if (++*looks % GM__PROVIDER_PIECE == 0) gm__provider_breathe(dedicated->provider);
  }
}

/* False: no look is left, or as dedicated_forget_one. */
static bool dedicated_forget_list(gm__dedicated *dedicated, gm__allocation *first, int slot, uint32_t *looks) {
  bool all = true;
  for (gm__allocation *allocation = first, *next; allocation; allocation = next) {
    if (!*looks) return false;
    --*looks;
    next = allocation->links[GM__BY_USE].next;
    all &= dedicated_forget_one(dedicated, allocation, slot);
  }
  return all;
}

/* Blocks of several streams. True: they are few, and all have forgotten it. */
static bool dedicated_forget_several(gm__dedicated *dedicated, int slot) {
  uint32_t looks = GM__PROVIDER_PIECE;
  bool all = dedicated_forget_list(dedicated, dedicated->multi_stream.first, slot, &looks);
  for (uint32_t i = 0; all && i < dedicated->buckets.class_count; i++) {
    all = dedicated_forget_list(dedicated, dedicated->buckets.classes[i].several.first, slot, &looks);
  }
  return all;
}

static bool dedicated_forget_all(gm__dedicated *dedicated, int slot) {
  uint32_t cursor = 0;
  bool all = true;
  gm__provider_breathe(dedicated->provider);
  for (gm__allocation *allocation; (allocation = gm__provider_walk(dedicated->provider, &cursor));) {
    all &= dedicated_forget_one(dedicated, allocation, slot);
  }
  return all;
}

bool gm__dedicated_forget(gm__dedicated *dedicated, int slot) {
  uint32_t looks = 0;
  gm__order_end(&dedicated->order, slot);
  for (uint32_t i = 0; i < dedicated->buckets.class_count; i++) {
    dedicated_forget_own(dedicated, &dedicated->buckets.classes[i], slot, &looks);
  }
  gm__provider_breathe(dedicated->provider);
  const bool all = dedicated_forget_several(dedicated, slot) || dedicated_forget_all(dedicated, slot);
  if (!all || gm__order_is_pinned(&dedicated->order, slot)) return false;
  gm__order_forget(&dedicated->order, slot);
  return true;
}

void gm__dedicated_leave(gm__dedicated *dedicated, gm__leaving *leaving, gm__allocation *allocation) {
  dedicated_drop_use(dedicated, allocation);
  gm__order_drop_point(&dedicated->order, &allocation->cold.use);
  gm__provider_leave(dedicated->provider, leaving, allocation);
}

void gm__dedicated_detach(gm__dedicated *dedicated, gm__leaving *leaving, gm__allocation *allocation) {
  gm__dedicated_pull(dedicated, allocation);
  gm__dedicated_leave(dedicated, leaving, allocation);
}

/* ---- recording ---- */

/* Memory that the engine or another process lends is no allocation of the pool. An upstream's memory is. */
gm__event_buffer *gm__dedicated_events(const gm__dedicated *dedicated, const gm__allocation *allocation) {
  gm__recorder *recorder = dedicated->observers->recorder;
  if (!recorder || (allocation->foreign && allocation->memory.wrapped)) return NULL;
  if (allocation->index >= dedicated->events_below) return NULL;
  return gm__recorder_buffer(recorder, 0);
}

void gm__dedicated_record(const gm__dedicated *dedicated, const gm__allocation *allocation) {
  gm__event_buffer *events = gm__dedicated_events(dedicated, allocation);
  if (events) gm__event_buffer_add(events, allocation->index, allocation->requested, allocation->asked_on);
}

/* NULL: there are none, or they do not know of the allocation yet. */
static gm__quotas *dedicated_quotas(const gm__dedicated *dedicated, const gm__allocation *allocation) {
  return allocation->index < dedicated->quotas_below ? gm__observers_quotas(dedicated->observers) : NULL;
}

void gm__dedicated_observe_enter(const gm__dedicated *dedicated, const gm__allocation *allocation, bool counted) {
  gm__quotas *quotas = dedicated_quotas(dedicated, allocation);
  if (quotas && !counted) gm__quota_enter(quotas, allocation->tag, allocation->requested);
  gm__dedicated_record(dedicated, allocation);
}

void gm__dedicated_observe_leave(const gm__dedicated *dedicated, const gm__allocation *allocation,
                                 const gm_stream *stream) {
  gm__quotas *quotas = dedicated_quotas(dedicated, allocation);
  if (quotas && gm__allocation_is_out(allocation)) gm__quota_leave(quotas, allocation->tag, allocation->requested);
  gm__event_buffer *events = gm__dedicated_events(dedicated, allocation);
  if (events) gm__event_buffer_add(events, allocation->index, 0, stream ? stream->id : 0);
}

/* ---- begin and end ---- */

static void dedicated_take_lock(void *lock) { gm__mutex_lock(lock); }

static void dedicated_leave_lock(void *lock) { gm__mutex_unlock(lock); }

bool gm__dedicated_init(gm__dedicated *dedicated, gm__provider *provider, gm__observers *observers, uint32_t bits,
                        uint32_t most) {
  const gm__order_lock lock = {dedicated_take_lock, dedicated_leave_lock, &provider->lock};
  dedicated->provider = provider;
  dedicated->observers = observers;
  dedicated->buckets.most = most;
  dedicated->events_below = dedicated->quotas_below = UINT32_MAX;
  gm__order_init(&dedicated->order, provider->device, &lock);
  return gm__buckets_init(&dedicated->buckets, gm__provider_services(provider), bits);
}

void gm__dedicated_clear(gm__dedicated *dedicated, gm_close_mode mode) {
  uint32_t cursor = 0;
  for (gm__allocation *allocation; (allocation = gm__allocation_next(&dedicated->provider->allocations, &cursor));) {
    gm__order_clear_use(&dedicated->order, &allocation->cold.use, mode);
    gm__cold_clear(gm__provider_services(dedicated->provider), &allocation->cold);
  }
  gm__order_clear(&dedicated->order, mode);
}
