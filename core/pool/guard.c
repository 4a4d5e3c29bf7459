#include "core/pool/guard.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/shadow.h"
#include "core/pool/entry.h"
#include "core/pool/guard_record.h"
#include "core/pool/quota.h"
#include "core/pool/tracked.h"

/* Invariants. A guarded block is a plain block of the pool with a record; the caller sees the part between the zones,
 * its gm__rare says which. A freed block stays the pool's live block until its zones are judged: then the pool gets it
 * in host order, because all work on it has passed; or, damaged, nobody gets it any more. So the pool's own rules of
 * order need not know of guards, and a block counts as in use until it was judged. */

enum { GUARD_HOLDS = 32, GUARD_MOST_ALIGN = 64 * 1024, GUARD_PROBE = 256 };

/* ---- making ---- */

/* A backend may have memory without contents: then nothing could ever be found. */
static gm_status guard_probe(gm_device *device, gm_error *err) {
  const gm__device_request request = {.bytes = GUARD_PROBE, .align = (uint32_t)device->info.alignment};
  unsigned char seen[GUARD_PROBE] = {0};
  gm_memory memory;
  gm_stream *stream;
  if (!gm__device_makes_streams(device)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "gm_pool_create", "red zones and patterns " GM__STREAM_MISSING);
  }
  gm_status status = gm__device_default_stream(device, "gm_pool_create", &stream, err);
  if (!status) status = gm__device_alloc(device, &request, &memory, err);
  if (status) return status;
  status = gm__submitting(device)->fill(device->handle, stream->handle, &memory, 0, GUARD_PROBE, GM_DEBUG_FRESH_PATTERN,
                                        1, NULL, err);
  if (!status) {
    status =
        gm__submitting(device)->copy_to_host(device->handle, stream->handle, &memory, 0, seen, GUARD_PROBE, NULL, err);
  }
  gm__device_free(device, &memory, NULL);
  if (!status && seen[GUARD_PROBE - 1] == (unsigned char)GM_DEBUG_FRESH_PATTERN[0]) return GM_OK;
  if (status && status != GM_ERR_NOT_SUPPORTED) return status;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "gm_pool_create",
                  "red zones and patterns need memory whose contents can be read, and that of %s cannot",
                  device->info.name);
}

static bool guard_has_host_memory(const gm_device *device) {
  uint32_t flags = 0;
  for (uint32_t i = 0; i < device->type_count; i++) flags |= device->types[i].flags;
  return (flags & GM_MEMORY_HOST_POINTER) != 0;
}

gm_status gm__guard_create(gm_device *device, const gm_pool_params *params, const gm__marks *marks, gm__guard **out,
                           gm_error *err) {
  gm_context *ctx = device->ctx;
  gm__guard asked = {
      .zone = params->red_zone_bytes ? params->red_zone_bytes : gm__config_u64(ctx, "debug.red_zone_bytes"),
      .check_freed = params->debug & GM_DEBUG_CHECK_FREED || gm__config_bool(ctx, "debug.check_freed"),
      .shadow = gm__shadow_present() && guard_has_host_memory(device),
      .regions = gm__marks_wants_memory(marks)};
  asked.poison = asked.check_freed || params->debug & GM_DEBUG_POISON || gm__config_bool(ctx, "debug.poison");
  *out = NULL;
  if (!asked.poison && !asked.zone && !asked.shadow && !asked.regions) return GM_OK;
  gm_status status = asked.poison || asked.zone ? guard_probe(device, err) : GM_OK;
  if (status) return status;
  gm__guard *guard = gm__alloc(gm__context_services(ctx), sizeof *guard);
  if (!guard) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_pool_create", "no host memory for a pool's guard");
  *guard = asked;
  gm__mutex_init(&guard->lock, GM__RANK_GUARD);
  gm__cond_init(&guard->changed);
  *out = guard;
  return GM_OK;
}

static void guard_forget(gm_pool *pool, gm__guard_list *list, bool forked) {
  for (gm__guard_record *record = list->first, *next; record; record = next) {
    next = record->next;
    const gm_close_mode mode = forked ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL;
    if (record->has_point) pool->device->ops->point_release(pool->device->handle, &record->point, mode);
    gm__guard_record_release(pool, record);
  }
}

void gm__guard_end(gm_pool *pool, bool forked) {
  gm__guard *guard = pool->guard;
  if (!guard) return;
  guard_forget(pool, &guard->out, forked);
  guard_forget(pool, &guard->leaving, forked);
  guard_forget(pool, &guard->broken, forked);
  if (!forked) gm__cond_destroy(&guard->changed);
  if (!forked) gm__mutex_destroy(&guard->lock);
  pool->guard = NULL;
  gm__release(gm__context_services(pool->device->ctx), guard, sizeof *guard);
}

/* ---- handing out ---- */

bool gm__guard_writes(const gm__guard *guard) { return guard->zone || guard->poison; }

static uint64_t guard_front(const gm__guard *guard, uint64_t align) {
  if (!guard->zone || align > GUARD_MOST_ALIGN) return 0;
  return (guard->zone + align - 1) / align * align;
}

uint64_t gm__guard_bytes(const gm__guard *guard, uint64_t bytes, uint64_t align) {
  const uint64_t more = guard->zone + guard_front(guard, align);
  return more > UINT64_MAX - bytes ? UINT64_MAX : bytes + more;
}

void gm__guard_open(const gm_pool *pool, const gm_memory *memory, uint64_t offset, uint64_t bytes) {
  if (pool->guard->shadow && memory->host) gm__shadow_open((unsigned char *)memory->host + offset, bytes);
}

static void guard_close(const gm_pool *pool, const gm_memory *memory, uint64_t offset, uint64_t bytes) {
  if (pool->guard->shadow && memory->host) gm__shadow_close((unsigned char *)memory->host + offset, bytes);
}

/* The tool sees what the caller may touch, inside of what the driver gave. */
static void guard_show(const gm_pool *pool, void *heap, const gm_block *block) {
  if (pool->guard->regions) gm__marks_region(pool->marks, heap, block->address, block->bytes);
}

static void guard_hide(const gm_pool *pool, const void *heap, const gm_block *block) {
  if (pool->guard->regions && heap) gm__marks_region_end(pool->marks, block->address);
}

static void guard_fill_in(const gm_pool *pool, gm__guard_record *record, const gm__entry *entry, const gm__want *want) {
  record->raw = entry->block;
  record->memory = entry->node->memory;
  record->heap = entry->node->heap;
  record->offset = entry->offset;
  record->front = guard_front(pool->guard, want->align);
  record->usable = want->bytes;
  record->tag = want->tag;
  record->track_id = gm__tracked_id(entry);
}

/* What is guarded of the block is the record, or nothing any more. False without host memory. */
static bool guard_set(gm_pool *pool, const gm_block *raw, gm__guard_record *record) {
  gm__entry entry;
  if (!gm__entry_open_raw(pool, raw, &entry)) return false;
  const bool there = gm__entry_make_rare(&entry);
  if (there) entry.rare->guard = record;
  gm__entry_close(&entry);
  return there;
}

static gm_acquire guard_refuse(gm_pool *pool, const gm_block *raw, gm_stream *stream, gm__guard_record *record) {
  if (record) gm__guard_drop_point(pool, record);
  if (record) gm__guard_record_release(pool, record);
  gm__pool_free(pool, raw, stream);
  return record ? GM_ACQUIRE_FAILED : GM_ACQUIRE_EXHAUSTED;
}

static gm_acquire guard_mark_out(gm_pool *pool, const gm__want *want, gm_acquire answer, gm__guard_record *record,
                                 gm_block *block) {
  gm__guard *guard = pool->guard;
  gm_error failure = {.status = GM_ERR_OUT_OF_HOST_MEMORY};
  const bool fresh = guard->poison && !(want->flags & GM_ZERO);
  if (gm__guard_mark(pool, record, want->stream, fresh, &failure)) {
    gm__pool_note_failure(pool, &failure);
    return guard_refuse(pool, block, want->stream, record);
  }
  gm__mutex_lock(&guard->lock);
  gm__guard_list_add(&guard->out, record);
  guard_set(pool, block, record);
  gm__mutex_unlock(&guard->lock);
  *block = gm__guard_block(record);
  guard_show(pool, record->heap, block);
  return answer;
}

gm_acquire gm__guard_hand_out(gm_pool *pool, const gm__want *want, gm_acquire answer, gm_block *block) {
  gm__entry entry;
  gm_error failure;
  if (!gm__entry_open_raw(pool, block, &entry)) return GM_ACQUIRE_FAILED; /* it has just been given */
  gm__guard_open(pool, &entry.node->memory, entry.offset, entry.block.bytes);
  void *heap = entry.node->heap;
  const bool writes = gm__guard_writes(pool->guard);
  gm__guard_record *record = writes && gm__entry_make_rare(&entry) ? gm__guard_record_new(pool) : NULL;
  if (record) guard_fill_in(pool, record, &entry, want);
  gm__entry_close(&entry);
  if (!writes) {
    guard_show(pool, heap, block);
    return answer;
  }
  if (!record) {
    gm__fail(&failure, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_alloc", "no host memory for the record of a guarded block");
    gm__pool_note_failure(pool, &failure);
    return guard_refuse(pool, block, want->stream, NULL);
  }
  return guard_mark_out(pool, want, answer, record, block);
}

/* ---- damage ---- */

static void guard_note(gm_pool *pool, gm__guard_record *record, const gm_damage *damage) {
  gm__guard *guard = pool->guard;
  record->damaged = true;
  if (guard->damaged++ == 0) guard->first = *damage;
  guard->last = *damage;
}

void gm__guard_tell(const gm_pool *pool, const gm_damage *damage) {
  char text[256];
  gm__guard_text(pool, damage, text, sizeof text);
  gm__log(gm__context_services(pool->device->ctx), GM_LOG_ERROR, "%s", text);
}

/* The block is out of everybody's reach until the pool ends. With the lock. */
static void guard_quarantine(gm_pool *pool, gm__guard_record *record) {
  gm__pool_quarantine(pool, &record->raw);
  record->state = GM__GUARD_BROKEN;
  gm__guard_list_add(&pool->guard->broken, record);
}

/* ---- taking back ---- */

static void guard_leave_quota(const gm__entry *entry) {
  struct gm__quotas *quotas = entry->arena ? entry->arena->quotas : gm__pool_quotas(entry->pool);
  if (quotas) gm__quota_leave(quotas, entry->tag, entry->requested);
}

/* The record of the caller's block, which is not the caller's any more. With the lock. */
static gm_status guard_take(gm_pool *pool, const gm_block *block, gm_stream *stream, gm__guard_record **out,
                            uint64_t *out_untrack) {
  gm__entry entry;
  gm_status status = GM_OK;
  *out = NULL;
  if (!gm__entry_open(pool, block, &entry)) return GM_ERR_INVALID_ARGUMENT;
  if (entry.rare && entry.rare->piece) {
    status = GM_ERR_INVALID_ARGUMENT;
  } else if (entry.rare && entry.rare->mapping.pointer) {
    status = GM_ERR_BUSY;
  } else if (entry.rare && entry.rare->guard && stream && gm__entry_free_slot(&entry, stream) == GM__ORDER_HOST) {
    status = GM_ERR_OUT_OF_HOST_MEMORY;
  } else if (entry.rare && entry.rare->guard) {
    *out = entry.rare->guard;
    guard_leave_quota(&entry);
    (*out)->freed = true;
    *out_untrack = gm__tracked_leave(&entry, stream);
  }
  gm__entry_close(&entry);
  return status;
}

/* Later work of the stream follows all work on the block; `used`: the stream's own, too. BUSY: the block does not even
 * remember that the stream uses it. */
static gm_status guard_order(gm_pool *pool, const gm_block *raw, gm_stream *stream, bool used) {
  gm_status status = used ? GM_ERR_BUSY : GM_ERR_NOT_SUPPORTED;
  gm__entry entry;
  if (!gm__entry_open_raw(pool, raw, &entry)) return status;
  const int slot = used ? gm__entry_free_slot(&entry, stream) : gm__entry_slot(&entry, stream);
  gm__mark *mark = &entry.rare->mark;
  if (slot >= GM__ORDER_SLOTS) { /* no stream can wait for the crowd */
    gm__order_note_use(entry.order, mark, slot);
    gm__entry_note_mark(&entry);
    status = GM_ERR_NOT_SUPPORTED;
  } else if (slot != GM__ORDER_HOST) {
    mark->streams |= mark->users | (used ? UINT64_C(1) << slot : 0);
    mark->users = 0;
    mark->freed_at = gm__order_now(entry.order);
    status = gm__order_insert(entry.order, mark, slot, NULL) ? GM_ERR_NOT_SUPPORTED : GM_OK;
    gm__entry_note_mark(&entry);
  }
  gm__entry_close(&entry);
  return status;
}

/* May work of streams still use the block? */
static bool guard_is_pending(gm_pool *pool, const gm_block *raw) {
  gm__entry entry;
  if (!gm__entry_open_raw(pool, raw, &entry)) return false;
  gm__mark mark = gm__entry_mark(&entry);
  const bool pending = gm__order_settle(entry.order, &mark) || mark.users;
  gm__entry_close(&entry);
  return pending;
}

/* *out is the stream that the guard's work goes to, which follows all work on the block; NULL: there is none any more.
 * NOT_SUPPORTED: there may be, and the block remembers it; where only this stream's is left, the record becomes `late`.
 * BUSY: and it does not. */
static gm_status guard_follow(gm_pool *pool, gm__guard_record *record, gm_stream *stream, gm_stream **out) {
  gm_stream *on = stream;
  const bool others = guard_is_pending(pool, &record->raw);
  *out = NULL;
  if (!stream && !others && gm__guard_passed(pool, record, 0)) return GM_OK;
  if (!stream && gm__device_default_stream(pool->device, "gm_free", &on, NULL)) return GM_ERR_NOT_SUPPORTED;
  const bool follows = gm__guard_wait_on(pool, record, on);
  const gm_status status = guard_order(pool, &record->raw, on, stream != NULL);
  record->ordered = follows && !status;
  if (record->ordered) *out = on;
  if (record->ordered || status == GM_ERR_BUSY) return status;
  record->late = follows && stream && !others && !gm__guard_note_point(pool, record, stream, NULL);
  return GM_ERR_NOT_SUPPORTED;
}

/* The zones are read, or will be when the stream comes to it, or cannot be. BUSY: work may still use the block or the
 * record, and nothing can tell when it ends. The record is at work. */
static gm_status guard_begin(gm_pool *pool, gm__guard_record *record, gm_stream *stream) {
  gm_stream *on;
  record->state = GM__GUARD_LEAVING;
  record->unread = true;
  const gm_status status = guard_follow(pool, record, stream, &on);
  if (status) return status == GM_ERR_BUSY ? status : GM_OK;
  record->unread = gm__guard_leave(pool, record, on, NULL) != GM_OK;
  return record->unread && on ? gm__order_drain(on, "gm_free", NULL) : GM_OK;
}

/* The work on the block has passed: its zones are read now. False: it failed, and who reads may still be at it. The
 * record is at work. */
static bool guard_read_late(gm_pool *pool, gm__guard_record *record) {
  gm_stream *on;
  record->late = false;
  record->turn = 0; /* this work is waited for, too */
  if (gm__device_default_stream(pool->device, "gm_free", &on, NULL)) return true;
  record->unread = gm__guard_leave(pool, record, on, NULL) != GM_OK;
  return !record->unread || gm__order_drain(on, "gm_free", NULL) == GM_OK;
}

bool gm__guard_settle(gm_pool *pool, gm__guard_record *record, gm_damage *out) {
  gm__guard *guard = pool->guard;
  if (record->damaged || record->unread || !gm__guard_judge(guard, record, out)) return false;
  guard_note(pool, record, out);
  return true;
}

/* Of a shadow alone: nothing is written, nobody waits. */
static gm_status guard_free_plain(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  gm__entry entry;
  if (!gm__entry_open(pool, block, &entry)) return GM_ERR_INVALID_ARGUMENT;
  gm__mark mark = gm__entry_mark(&entry);
  const bool held = entry.rare && (entry.rare->mapping.pointer || entry.rare->piece);
  const bool kept = !held && !entry.node->foreign;
  const bool idle = kept && !stream && !gm__order_settle(entry.order, &mark) && !mark.users;
  const gm_memory memory = entry.node->memory;
  void *heap = entry.node->heap;
  gm__entry_close(&entry);
  if (idle) guard_close(pool, &memory, entry.offset, entry.block.bytes);
  if (kept) guard_hide(pool, heap, block);
  return gm__pool_free(pool, block, stream);
}

/* The record of a block that was freed goes where it belongs. DAMAGED: its zones are. With the lock. */
static gm_status guard_part(gm_pool *pool, gm__guard_record *record, bool lost, gm_damage *damage) {
  const bool known = record->damaged;
  const bool broken = !record->has_point && (gm__guard_settle(pool, record, damage) || known);
  gm__guard_end_work(pool->guard, broken || lost ? NULL : &pool->guard->leaving, record);
  if (broken || lost) guard_quarantine(pool, record);
  return broken ? GM_ERR_DAMAGED : GM_OK;
}

gm_status gm__guard_free(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  gm__guard *guard = pool->guard;
  gm_damage damage = {.kind = GM_DAMAGE_NONE};
  gm__guard_record *record;
  uint64_t track_id = 0; /* what is left to untrack */
  if (!gm__guard_writes(guard)) return guard_free_plain(pool, block, stream);
  if (gm__stream_captured(stream)) return GM_ERR_BUSY;
  gm__mutex_lock(&guard->lock);
  gm_status status = guard_take(pool, block, stream, &record, &track_id);
  while (!status && record && record->looked_at) gm__cond_wait(&guard->changed, &guard->lock);
  if (!status && record) {
    gm__guard_begin_work(guard, &guard->out, record);
    gm__mutex_unlock(&guard->lock);
    guard_hide(pool, record->heap, block);
    const bool lost = guard_begin(pool, record, stream) != GM_OK; /* work may still use block and record */
    gm__mutex_lock(&guard->lock);
    status = guard_part(pool, record, lost, &damage);
  }
  gm__mutex_unlock(&guard->lock);
  if (damage.kind) gm__guard_tell(pool, &damage);
  if (!status && !record) return gm__pool_free(pool, block, stream); /* the engine's own memory */
  if (track_id) gm_tracker_untrack(pool->tracker, track_id);
  gm__guard_reap(pool, false);
  return status;
}

/* ---- reaping ---- */

/* The oldest record that the pool may have back, that turned out damaged, or, if `all`, that this reap has not yet
 * waited for; NULL: none. With the lock. */
static gm__guard_record *guard_next(gm_pool *pool, bool all, uint64_t turn, gm_damage *out) {
  gm__guard *guard = pool->guard;
  for (gm__guard_record *record = guard->leaving.first, *next; record; record = next) {
    next = record->next;
    if (record->state == GM__GUARD_LEAVING) {
      if (!gm__guard_passed(pool, record, 0)) {
        if (all && record->turn < turn) return record;
        continue;
      }
      if (record->late) return record;
      const bool bad = gm__guard_settle(pool, record, out) || record->damaged;
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

/* Wait for the record's work, or see what became of memory that was held. The record is at work. */
static void guard_examine(gm_pool *pool, gm__guard_record *record, gm_damage *out) {
  if (record->state != GM__GUARD_HELD) {
    gm__guard_passed(pool, record, GM__GUARD_PATIENCE_NS);
  } else if (gm__guard_judge_freed(pool, record, out)) {
    gm__mutex_lock(&pool->guard->lock);
    guard_note(pool, record, out);
    gm__mutex_unlock(&pool->guard->lock);
  }
}

/* The record says that the block was freed until the pool has it: with it goes what it knows of the record. */
static void guard_return(gm_pool *pool, gm__guard_record *record) {
  gm__entry entry;
  if (gm__entry_open_raw(pool, &record->raw, &entry)) {
    if (record->ordered) entry.rare->mark.streams = 0; /* its point came after all of them */
    gm__entry_close(&entry);
  }
  guard_close(pool, &record->memory, record->offset, record->raw.bytes);
  gm__pool_free(pool, &record->raw, NULL);
  gm__guard_record_release(pool, record);
}

/* One record. False: there is none to work on. *any: the pool got it back. */
static bool guard_reap_one(gm_pool *pool, bool all, uint64_t turn, bool *any) {
  gm__guard *guard = pool->guard;
  gm_damage damage = {.kind = GM_DAMAGE_NONE};
  gm__mutex_lock(&guard->lock);
  gm__guard_record *record = guard_next(pool, all, turn, &damage);
  if (record) gm__guard_begin_work(guard, &guard->leaving, record);
  gm__mutex_unlock(&guard->lock);
  if (!record) return false;
  const bool reads = record->late && !record->has_point, waits = record->has_point || reads;
  const bool lost = reads && !guard_read_late(pool, record);
  if (!reads && (waits || record->state == GM__GUARD_HELD)) guard_examine(pool, record, &damage);
  const bool damaged = record->damaged;
  gm__mutex_lock(&guard->lock);
  gm__guard_end_work(guard, waits && !lost ? &guard->leaving : NULL, record);
  if (lost || (!waits && damaged)) guard_quarantine(pool, record);
  gm__mutex_unlock(&guard->lock);
  if (damage.kind) gm__guard_tell(pool, &damage);
  if (waits || damaged) return true;
  guard_return(pool, record);
  *any = true;
  return true;
}

bool gm__guard_reap(gm_pool *pool, bool all) {
  gm__guard *guard = pool->guard;
  bool any = false;
  gm__mutex_lock(&guard->lock);
  const uint64_t turn = ++guard->turns;
  gm__mutex_unlock(&guard->lock);
  while (guard_reap_one(pool, all, turn, &any)) {}
  return any;
}
