#include "core/guard/guard.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/saturate.h"
#include "core/base/shadow.h"
#include "core/context/config.h"
#include "core/guard/guard_record.h"
#include "core/heap/heap_track.h"
#include "core/staging/range.h"

/* Invariants. A guarded block is a plain block of the heap with a record. The caller sees the part between the zones;
 * the block's gm__cold says which part that is. The guard has the memory first, while no other thread can name it:
 * zones and record are there before the block is.
 *
 * A freed block stays the heap's live block until its zones are judged. Then the heap gets it in host order, because
 * all work on it has passed; a damaged block stays in quarantine. So the heap's rules of order need not know of guards,
 * and a block counts as in use until it was judged. */

enum { GUARD_HOLDS = 32, GUARD_MOST_ALIGN = 64 * 1024, GUARD_PROBE = 256 };

/* ---- making ---- */

/* Some backends have memory without contents. Damage could never be found there. */
static gm_status guard_probe(gm_device *device, gm_error *err) {
  const gm__device_request request = {.bytes = GUARD_PROBE, .align = (uint32_t)device->info.alignment};
  unsigned char seen[GUARD_PROBE] = {0};
  gm_memory memory;
  if (!gm__device_has_default_stream(device)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_pool_create", "red zones and patterns " GM__STREAM_MISSING);
  }
  gm_status status = gm__device_alloc(device, &request, &memory, err);
  if (status) return status;
  const gm__access range = {device, memory, 0, GUARD_PROBE};
  const gm__transfer fill = {.kind = GM__TRANSFER_FILL, .src = GM_DEBUG_FRESH_PATTERN, .pattern_bytes = 1};
  const gm__transfer read = {.kind = GM__TRANSFER_READ, .dst = seen};
  status = gm__range_run(&range, &fill, NULL, NULL, "gm_pool_create", err);
  if (!status) status = gm__range_run(&range, &read, NULL, NULL, "gm_pool_create", err);
  gm__device_free(device, &memory, NULL);
  if (!status && seen[GUARD_PROBE - 1] == (unsigned char)GM_DEBUG_FRESH_PATTERN[0]) return GM_OK;
  if (status && status != GM_ERR_NOT_SUPPORTED) return status;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_pool_create",
                  "red zones and patterns need memory whose contents can be read, and that of %s cannot",
                  device->info.name);
}

static bool guard_has_host_memory(const gm_device *device) {
  uint32_t flags = 0;
  for (uint32_t i = 0; i < device->type_count; i++) flags |= device->types[i].flags;
  return (flags & GM_MEMORY_HOST_POINTER) != 0;
}

static uint64_t guard_zone(gm_context *ctx, uint64_t asked) {
  if (asked == GM_NO_BYTES) return 0;
  return asked ? asked : gm__config_u64(ctx, "debug.red_zone_bytes");
}

gm_status gm__guard_create(gm__heap *heap, gm_device *device, const gm_pool_params *params,
                           const gm__profiler *profiler, gm__guard **out, gm_error *err) {
  gm_context *ctx = device->ctx;
  gm__guard asked = {.heap = heap,
                     .zone = guard_zone(ctx, params->red_zone_bytes),
                     .check_freed = params->debug & GM_DEBUG_CHECK_FREED || gm__config_bool(ctx, "debug.check_freed"),
                     .shadow = gm__shadow_present() && guard_has_host_memory(device),
                     .regions = gm__profiler_wants_memory(profiler)};
  asked.poison = asked.check_freed || params->debug & GM_DEBUG_POISON || gm__config_bool(ctx, "debug.poison");
  *out = NULL;
  if (!asked.poison && !asked.zone && !asked.shadow && !asked.regions) return GM_OK;
  gm_status status = asked.poison || asked.zone ? guard_probe(device, err) : GM_OK;
  if (status) return status;
  gm__guard *guard = gm__alloc(gm__context_services(ctx), sizeof *guard);
  if (!guard) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_pool_create", "no host memory for a pool's guard");
  *guard = asked;
  gm__mutex_init(&guard->lock, GM__RANK_GUARD);
  gm__cond_init(&guard->changed);
  *out = guard;
  return GM_OK;
}

static void guard_forget(gm__guard *guard, gm__guard_list *list, bool forked) {
  for (gm__guard_record *record = list->first, *next; record; record = next) {
    next = record->next;
    const gm_close_mode mode = forked ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL;
    if (record->has_point) guard->heap->device->ops->point_release(guard->heap->device->handle, &record->point, mode);
    gm__guard_record_release(guard, record);
  }
}

void gm__guard_end(gm__guard *guard, bool forked) {
  if (!guard) return;
  guard_forget(guard, &guard->out, forked);
  guard_forget(guard, &guard->leaving, forked);
  guard_forget(guard, &guard->broken, forked);
  if (!forked) gm__cond_destroy(&guard->changed);
  if (!forked) gm__mutex_destroy(&guard->lock);
  gm__release(gm__context_services(guard->heap->device->ctx), guard, sizeof *guard);
}

/* ---- handing out ---- */

bool gm__guard_writes(const gm__guard *guard) { return guard->zone || guard->poison; }

static uint64_t guard_front(const gm__guard *guard, uint64_t align) {
  if (!guard->zone || align > GUARD_MOST_ALIGN) return 0;
  return gm__round_up(guard->zone, align);
}

uint64_t gm__guard_bytes(const gm__guard *guard, uint64_t bytes, uint64_t align) {
  return gm__add_sat(bytes, guard->zone + guard_front(guard, align));
}

static void guard_close(const gm__guard *guard, const gm_memory *memory, uint64_t offset, uint64_t bytes) {
  if (guard->shadow && memory->host) gm__shadow_close((unsigned char *)memory->host + offset, bytes);
}

/* Shows a profiler what the caller may touch, inside of the driver's allocation. */
static void guard_show(const gm__guard *guard, void *heap, const gm_block *block) {
  if (guard->regions) gm__profiler_region(guard->heap->provider.profiler, heap, block->address, block->bytes);
}

static void guard_hide(const gm__guard *guard, const void *heap, const gm_block *block) {
  if (guard->regions && heap) gm__profiler_region_end(guard->heap->provider.profiler, block->address);
}

/* A profiler's name of the driver allocation that the memory lies in; NULL: no profiler asks. */
static void *guard_heap(const gm__guard *guard, const gm__grant *grant) {
  gm__live live;
  if (!guard->regions) return NULL;
  gm__live_open_grant(guard->heap, grant, &live);
  void *heap = live.allocation->heap;
  gm__live_close(&live);
  return heap;
}

static gm__guard_record *guard_record(const gm__guard *guard, const gm__want *want, const gm__grant *grant) {
  gm__guard_record *record = gm__guard_record_new(guard);
  if (!record) return NULL;
  record->heap = guard_heap(guard, grant);
  record->memory = grant->memory;
  record->offset = grant->offset;
  record->front = guard_front(guard, want->align);
  record->usable = want->bytes;
  record->tag = want->tag;
  return record;
}

/* Notes the record in the memory's cold record. False without host memory. */
static bool guard_set(const gm__guard *guard, const gm__grant *grant, gm__guard_record *record) {
  gm__live live;
  gm__live_open_grant(guard->heap, grant, &live);
  const bool made = gm__live_make_cold(&live);
  if (made) live.cold->guard = (gm__guarded){record, record->front, record->usable, false};
  gm__live_close(&live);
  return made;
}

/* Writes zones and patterns, and notes the record where the heap finds it. `record` may be NULL. */
static gm_status guard_prepare(gm__guard *guard, const gm__want *want, const gm__grant *grant, gm__guard_record *record,
                               gm_error *err) {
  const bool fresh = guard->poison && !(want->flags & GM_ZERO);
  const gm_status status = record ? gm__guard_write(guard, record, want->stream, fresh, err) : GM_OK;
  if (status || (record && guard_set(guard, grant, record))) return status;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_alloc", "no host memory for the record of a guarded block");
}

static gm_acquire guard_refuse(gm__guard *guard, const gm__want *want, const gm__grant *grant, gm__guard_record *record,
                               const gm_error *failure) {
  if (record) gm__guard_drop_point(guard, record);
  if (record) gm__guard_record_release(guard, record);
  gm__heap_undo(guard->heap, want, grant);
  gm__provider_note_failure(&guard->heap->provider, want, failure);
  return failure->status == GM_ERR_OUT_OF_HOST_MEMORY ? GM_ACQUIRE_EXHAUSTED : GM_ACQUIRE_FAILED;
}

/* Makes the block, and puts the record where a free of it looks. Nobody frees the block in between. */
static gm_block guard_give(gm__guard *guard, const gm__want *want, const gm__grant *grant, bool fresh,
                           gm__guard_record *record) {
  gm__mutex_lock(&guard->lock);
  gm__heap_hand_out(guard->heap, want, grant, fresh, &record->raw);
  gm__guard_list_add(&guard->out, record);
  const gm_block block = gm__guard_block(record);
  gm__mutex_unlock(&guard->lock);
  return block;
}

gm_acquire gm__guard_hand_out(gm__guard *guard, const gm__want *want, const gm__grant *grant, gm_acquire answer,
                              gm_block *out) {
  const bool fresh = answer == GM_ACQUIRE_FRESH;
  if (!gm__guard_writes(guard)) {
    void *heap = guard_heap(guard, grant);
    gm__heap_hand_out(guard->heap, want, grant, fresh, out);
    guard_show(guard, heap, out);
    return answer;
  }
  gm_error failure = {.status = GM_OK};
  gm__guard_record *record = guard_record(guard, want, grant);
  failure.status = guard_prepare(guard, want, grant, record, &failure);
  if (failure.status) return guard_refuse(guard, want, grant, record, &failure);
  void *heap = record->heap;
  *out = guard_give(guard, want, grant, fresh, record);
  guard_show(guard, heap, out);
  return answer;
}

/* ---- damage ---- */

static void guard_note(gm__guard *guard, gm__guard_record *record, const gm_damage *damage) {
  record->damaged = true;
  if (guard->damaged++ == 0) guard->first = *damage;
  guard->last = *damage;
}

void gm__guard_tell(const gm__guard *guard, const gm_damage *damage) {
  char text[256];
  gm__guard_text(guard, damage, text, sizeof text);
  gm__log(gm__context_services(guard->heap->device->ctx), GM_LOG_ERROR, "%s", text);
}

/* Puts the block out of everybody's reach until the pool ends. REQUIRES: guard lock. */
static void guard_quarantine(gm__guard *guard, gm__guard_record *record) {
  gm__heap_quarantine(guard->heap, &record->raw);
  record->state = GM__GUARD_BROKEN;
  gm__guard_list_add(&guard->broken, record);
}

/* ---- freeing ---- */

/* Takes the block from the caller: *out is its record, NULL for a block without one. REQUIRES: guard lock. */
static gm_status guard_take_back(gm__guard *guard, const gm_block *block, gm_stream *stream, gm__guard_record **out,
                                 uint64_t *out_untrack) {
  gm__live live;
  gm_status status = GM_OK;
  *out = NULL;
  if (!gm__live_open(guard->heap, block, &live)) return GM_ERR_INVALID_ARGUMENT;
  if (live.cold && live.cold->part) {
    status = GM_ERR_INVALID_ARGUMENT;
  } else if (live.cold && live.cold->mappings) {
    status = GM_ERR_BUSY;
  } else if (live.cold && live.cold->guard.owner && stream && gm__live_free_slot(&live, stream) == GM__ORDER_HOST) {
    status = GM_ERR_OUT_OF_HOST_MEMORY;
  } else if (live.cold && live.cold->guard.owner) {
    *out = live.cold->guard.owner;
    (*out)->track_id = gm__tracked_id(&live);
    *out_untrack = gm__track_leave(&live, stream); /* quotas, too, before it is withheld */
    live.cold->guard.withheld = true;
  }
  gm__live_close(&live);
  return status;
}

/* Makes later work of the stream follow all work on the block. `used`: the stream itself may have used it. BUSY: the
 * block cannot even remember that the stream uses it. */
static gm_status guard_order(gm__guard *guard, const gm_block *raw, gm_stream *stream, bool used) {
  gm_status status = used ? GM_ERR_BUSY : GM_ERR_NOT_SUPPORTED;
  gm__live live;
  if (!gm__live_open_raw(guard->heap, raw, &live)) return status;
  const int slot = used ? gm__live_free_slot(&live, stream) : gm__live_slot(&live, stream);
  gm__last_use *use = &live.cold->use;
  if (slot >= GM__ORDER_SLOTS) { /* no stream can wait for a slot that several streams share */
    gm__order_note_use(live.order, use, slot);
    gm__live_note_use(&live);
    status = GM_ERR_NOT_SUPPORTED;
  } else if (slot != GM__ORDER_HOST) {
    use->streams |= use->users | (used ? UINT64_C(1) << slot : 0);
    use->users = 0;
    use->freed_at = gm__order_now(live.order);
    status = gm__order_insert(live.order, use, slot, NULL) ? GM_ERR_NOT_SUPPORTED : GM_OK;
    gm__live_note_use(&live);
  }
  gm__live_close(&live);
  return status;
}

/* May work of streams still use the block? */
static bool guard_is_pending(gm__guard *guard, const gm_block *raw) {
  gm__live live;
  if (!gm__live_open_raw(guard->heap, raw, &live)) return false;
  gm__last_use use = gm__live_last_use(&live);
  const bool pending = gm__order_settle(live.order, &use) || use.users;
  gm__live_close(&live);
  return pending;
}

/* Chooses the stream for the guard's own work; it follows all work on the block. NULL: no work on the block is left.
 * NOT_SUPPORTED: work may be left, and the block remembers it. Where only `stream` has work left, the record becomes
 * `late`. BUSY: work may be left, and the block cannot remember it. */
static gm_status guard_follow(gm__guard *guard, gm__guard_record *record, gm_stream *stream, gm_stream **out) {
  gm_stream *on = stream;
  const bool others = guard_is_pending(guard, &record->raw);
  *out = NULL;
  if (!stream && !others && gm__guard_passed(guard, record, 0)) return GM_OK;
  if (!stream && gm__device_default_stream(guard->heap->device, "gm_free", &on, NULL)) return GM_ERR_NOT_SUPPORTED;
  const bool follows = gm__guard_wait_on(guard, record, on);
  const gm_status status = guard_order(guard, &record->raw, on, stream != NULL);
  record->ordered = follows && !status;
  if (record->ordered) *out = on;
  if (record->ordered || status == GM_ERR_BUSY) return status;
  record->late = follows && stream && !others && !gm__guard_note_point(guard, record, stream, NULL);
  return GM_ERR_NOT_SUPPORTED;
}

/* Reads the zones, now or in the order of the stream. Where neither can be, the record stays `unread`. BUSY: work may
 * still use block or record, and nothing tells when it ends. REQUIRES: record at work. */
static gm_status guard_begin(gm__guard *guard, gm__guard_record *record, gm_stream *stream) {
  gm_stream *on;
  record->state = GM__GUARD_LEAVING;
  record->unread = true;
  const gm_status status = guard_follow(guard, record, stream, &on);
  if (status) return status == GM_ERR_BUSY ? status : GM_OK;
  record->unread = gm__guard_leave(guard, record, on, NULL) != GM_OK;
  return record->unread && on ? gm__order_drain(on, "gm_free", NULL) : GM_OK;
}

/* Reads the zones now that the work on the block has passed. False: that failed, and the driver may still write to the
 * record. REQUIRES: record at work. */
static bool guard_read_late(gm__guard *guard, gm__guard_record *record) {
  gm_stream *on;
  record->late = false;
  record->turn = 0; /* a reap waits for this work, too */
  if (gm__device_default_stream(guard->heap->device, "gm_free", &on, NULL)) return true;
  record->unread = gm__guard_leave(guard, record, on, NULL) != GM_OK;
  return !record->unread || gm__order_drain(on, "gm_free", NULL) == GM_OK;
}

bool gm__guard_settle(gm__guard *guard, gm__guard_record *record, gm_damage *out) {
  if (record->damaged || record->unread || !gm__guard_judge(guard, record, out)) return false;
  guard_note(guard, record, out);
  return true;
}

/* Frees a block of a guard that only tells tools: it writes nothing and waits for nothing. */
static gm_status guard_free_plain(gm__guard *guard, const gm_block *block, gm_stream *stream) {
  gm__live live;
  if (!gm__live_open(guard->heap, block, &live)) return GM_ERR_INVALID_ARGUMENT;
  gm__last_use use = gm__live_last_use(&live);
  const bool held = live.cold && (live.cold->mappings || live.cold->part);
  const bool kept = !held && !live.allocation->foreign;
  const bool idle = kept && !stream && !gm__order_settle(live.order, &use) && !use.users;
  const gm_memory memory = live.allocation->memory;
  void *heap = live.allocation->heap;
  gm__live_close(&live);
  if (idle) guard_close(guard, &memory, live.offset, live.block.bytes);
  if (kept) guard_hide(guard, heap, block);
  return gm__heap_free(guard->heap, block, stream);
}

/* Puts the record of a freed block where it belongs. DAMAGED: its zones are. REQUIRES: guard lock. */
static gm_status guard_put_away(gm__guard *guard, gm__guard_record *record, bool lost, gm_damage *damage) {
  const bool known = record->damaged;
  const bool broken = !record->has_point && (gm__guard_settle(guard, record, damage) || known);
  gm__guard_end_work(guard, broken || lost ? NULL : &guard->leaving, record);
  if (broken || lost) guard_quarantine(guard, record);
  return broken ? GM_ERR_DAMAGED : GM_OK;
}

gm_status gm__guard_free(gm__guard *guard, const gm_block *block, gm_stream *stream) {
  gm_damage damage = {.kind = GM_DAMAGE_NONE};
  gm__guard_record *record;
  uint64_t track_id = 0; /* what to untrack at the end */
  if (!gm__guard_writes(guard)) return guard_free_plain(guard, block, stream);
  if (gm__stream_captured(stream)) return GM_ERR_BUSY;
  gm__mutex_lock(&guard->lock);
  gm_status status = guard_take_back(guard, block, stream, &record, &track_id);
  while (!status && record && record->looked_at) gm__cond_wait(&guard->changed, &guard->lock);
  if (!status && record) {
    gm__guard_begin_work(guard, &guard->out, record);
    gm__mutex_unlock(&guard->lock);
    guard_hide(guard, record->heap, block);
    const bool lost = guard_begin(guard, record, stream) != GM_OK; /* work may still use block and record */
    gm__mutex_lock(&guard->lock);
    status = guard_put_away(guard, record, lost, &damage);
  }
  gm__mutex_unlock(&guard->lock);
  if (damage.kind) gm__guard_tell(guard, &damage);
  if (!status && !record) return gm__heap_free(guard->heap, block, stream); /* the engine's own memory has no record */
  if (track_id) gm_tracker_untrack(guard->heap->observers.tracker, track_id);
  gm__guard_reap(guard, false);
  return status;
}

/* ---- reaping ---- */

/* The oldest record to work on: one that the heap may have back, or that turned out damaged. With `all` also one that
 * this reap has not yet waited for. NULL: none. REQUIRES: guard lock. */
static gm__guard_record *guard_next(gm__guard *guard, bool all, uint64_t turn, gm_damage *out) {
  for (gm__guard_record *record = guard->leaving.first, *next; record; record = next) {
    next = record->next;
    if (record->state == GM__GUARD_LEAVING) {
      if (!gm__guard_passed(guard, record, 0)) {
        if (all && record->turn < turn) return record;
        continue;
      }
      if (record->late) return record;
      const bool bad = gm__guard_settle(guard, record, out) || record->damaged;
      if (bad || !guard->check_freed || !record->poisoned) return record;
      record->state = GM__GUARD_HELD;
      guard->held++;
      next = guard->leaving.first; /* the oldest leaves first */
      continue;
    }
    if (!all && guard->held <= GUARD_HOLDS) continue;
    guard->held--;
    return record;
  }
  return NULL;
}

/* Waits for the record's work; or, for a block held back, looks whether somebody wrote to it. REQUIRES: record at
 * work. */
static void guard_examine(gm__guard *guard, gm__guard_record *record, gm_damage *out) {
  if (record->state != GM__GUARD_HELD) {
    gm__guard_passed(guard, record, GM__GUARD_PATIENCE_NS);
  } else if (gm__guard_judge_freed(guard, record, out)) {
    gm__mutex_lock(&guard->lock);
    guard_note(guard, record, out);
    gm__mutex_unlock(&guard->lock);
  }
}

/* Gives the block to the heap. Until then the record says that the block was freed. */
static void guard_return(gm__guard *guard, gm__guard_record *record) {
  gm__live live;
  if (gm__live_open_raw(guard->heap, &record->raw, &live)) {
    if (record->ordered) live.cold->use.streams = 0; /* the record's point came after all of them */
    gm__live_close(&live);
  }
  guard_close(guard, &record->memory, record->offset, record->raw.bytes);
  gm__heap_free(guard->heap, &record->raw, NULL);
  gm__guard_record_release(guard, record);
}

/* Works on one record. False: there is none to work on. *any becomes true if the heap got the block. */
static bool guard_reap_one(gm__guard *guard, bool all, uint64_t turn, bool *any) {
  gm_damage damage = {.kind = GM_DAMAGE_NONE};
  gm__mutex_lock(&guard->lock);
  gm__guard_record *record = guard_next(guard, all, turn, &damage);
  if (record) gm__guard_begin_work(guard, &guard->leaving, record);
  gm__mutex_unlock(&guard->lock);
  if (!record) return false;
  const bool reads = record->late && !record->has_point, waits = record->has_point || reads;
  const bool lost = reads && !guard_read_late(guard, record);
  if (!reads && (waits || record->state == GM__GUARD_HELD)) guard_examine(guard, record, &damage);
  const bool damaged = record->damaged;
  gm__mutex_lock(&guard->lock);
  gm__guard_end_work(guard, waits && !lost ? &guard->leaving : NULL, record);
  if (lost || (!waits && damaged)) guard_quarantine(guard, record);
  gm__mutex_unlock(&guard->lock);
  if (damage.kind) gm__guard_tell(guard, &damage);
  if (waits || damaged) return true;
  guard_return(guard, record);
  *any = true;
  return true;
}

bool gm__guard_reap(gm__guard *guard, bool all) {
  bool any = false;
  gm__mutex_lock(&guard->lock);
  const uint64_t turn = ++guard->turns;
  gm__mutex_unlock(&guard->lock);
  while (guard_reap_one(guard, all, turn, &any)) {}
  return any;
}
