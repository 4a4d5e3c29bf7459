#include "core/guard/guard_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/shadow.h"
#include "core/discovery/answer.h"
#include "core/staging/range_host.h"

/* Memory that the host can address is read and written at once where no stream is to be followed. All else goes through
 * the backend's copies, so that zones work on every device. */

static const unsigned char zone_pattern[8] = {0xFA, 0xCE, 0x5A, 0xB1, 0xE6, 0x2D, 0x97, 0x43};

enum { GUARD_STEP = 64 * 1024, GUARD_PATTERN_BYTES = 2 };

void gm__guard_list_add(gm__guard_list *list, gm__guard_record *record) {
  record->prev = list->last;
  record->next = NULL;
  if (list->last) {
    list->last->next = record;
  } else {
    list->first = record;
  }
  list->last = record;
  list->count++;
}

static void guard_list_remove(gm__guard_list *list, gm__guard_record *record) {
  if (record->prev) {
    record->prev->next = record->next;
  } else {
    list->first = record->next;
  }
  if (record->next) {
    record->next->prev = record->prev;
  } else {
    list->last = record->prev;
  }
  list->count--;
}

void gm__guard_begin_work(gm__guard *guard, gm__guard_list *list, gm__guard_record *record) {
  guard_list_remove(list, record);
  gm__guard_list_add(&guard->at_work, record);
  record->turn = ++guard->turns;
}

void gm__guard_end_work(gm__guard *guard, gm__guard_list *list, gm__guard_record *record) {
  guard_list_remove(&guard->at_work, record);
  if (list) gm__guard_list_add(list, record);
}

static size_t record_size(const gm__guard *guard) { return sizeof(gm__guard_record) + 2 * (size_t)guard->zone; }

gm__guard_record *gm__guard_record_new(const gm__guard *guard) {
  return gm__alloc(gm__context_services(guard->heap->device->ctx), record_size(guard));
}

void gm__guard_record_release(const gm__guard *guard, gm__guard_record *record) {
  gm__release(gm__context_services(guard->heap->device->ctx), record, record_size(guard));
}

/* ---- looking up ---- */

gm_block gm__guard_block(const gm__guard_record *record) {
  return (gm_block){record->raw.address + record->front, record->usable, record->raw.memory, record->raw.number,
                    record->raw.check};
}

/* ---- one range ---- */

static void record_let_go(const gm__guard *guard, const gm_backend_point *point) {
  guard->heap->device->ops->point_release(guard->heap->device->handle, point, GM_CLOSE_NORMAL);
}

/* On `stream`; NULL: by the host where it can, else on gm's own, and the call waits. */
static gm_status record_run(const gm__guard *guard, const gm__guard_record *record, gm_stream *stream, uint64_t at,
                            uint64_t bytes, const gm__transfer *what, gm_error *err) {
  gm_point point = {0};
  const gm__access range = {guard->heap->device, record->memory, record->offset + at, bytes};
  if (bytes == 0) return GM_OK;
  if (!stream && record->memory.host) {
    gm__host_move(what, (unsigned char *)record->memory.host + range.offset, bytes);
    return GM_OK;
  }
  const gm_status status = gm__range_run(&range, what, stream, &point, "gm_alloc", err);
  gm_point_release(range.device, &point);
  return status;
}

static gm_status record_fill(const gm__guard *guard, const gm__guard_record *record, gm_stream *stream, uint64_t at,
                             uint64_t bytes, const void *pattern, uint32_t pattern_bytes, gm_error *err) {
  const gm__transfer fill = {.kind = GM__TRANSFER_FILL, .src = pattern, .pattern_bytes = pattern_bytes};
  return record_run(guard, record, stream, at, bytes, &fill, err);
}

static gm_status record_read(const gm__guard *guard, const gm__guard_record *record, gm_stream *stream, uint64_t at,
                             void *to, uint64_t bytes, gm_error *err) {
  return record_run(guard, record, stream, at, bytes, &(gm__transfer){.kind = GM__TRANSFER_READ, .dst = to}, err);
}

/* ---- zones and patterns ---- */

static uint64_t record_before(const gm__guard *guard, const gm__guard_record *record) {
  return record->front ? guard->zone : 0;
}

static gm_status record_read_zones(gm__guard *guard, gm__guard_record *record, gm_stream *stream, gm_error *err) {
  const uint64_t zone = guard->zone, before = record_before(guard, record);
  gm_status status = record_read(guard, record, stream, record->front - before, record->seen, before, err);
  if (status) return status;
  return record_read(guard, record, stream, record->front + record->usable, record->seen + zone, zone, err);
}

gm_status gm__guard_note_point(gm__guard *guard, gm__guard_record *record, gm_stream *stream, gm_error *err) {
  const gm_device *device = guard->heap->device;
  if (!stream) return GM_OK;
  gm_status status = gm__submitting(device)->point_record(device->handle, stream->handle, &record->point, err);
  if (status) return status;
  record->has_point = true;
  if (stream->kind == GM_STREAM_UNORDERED) {
    return gm__submitting(device)->point_wait_on(device->handle, stream->handle, &record->point, err);
  }
  if (stream->kind == GM_STREAM_FIFO_IF_BARRIER) {
    return gm__submitting(device)->stream_barrier(device->handle, stream->handle, err);
  }
  return GM_OK;
}

gm_status gm__guard_write(gm__guard *guard, gm__guard_record *record, gm_stream *stream, bool fresh, gm_error *err) {
  const uint64_t zone = guard->zone, before = record_before(guard, record);
  const uint64_t end = record->front + record->usable;
  const uint32_t size = sizeof zone_pattern;
  gm_status status = record_fill(guard, record, stream, record->front - before, before, zone_pattern, size, err);
  if (!status) status = record_fill(guard, record, stream, end, zone, zone_pattern, size, err);
  if (!status && fresh) {
    status = record_fill(guard, record, stream, record->front, record->usable, GM_DEBUG_FRESH_PATTERN,
                         GUARD_PATTERN_BYTES, err);
  }
  return status ? status : gm__guard_note_point(guard, record, stream, err);
}

gm_status gm__guard_leave(gm__guard *guard, gm__guard_record *record, gm_stream *stream, gm_error *err) {
  gm_status status = record_read_zones(guard, record, stream, err);
  if (!status && guard->poison) {
    status = record_fill(guard, record, stream, record->front, record->usable, GM_DEBUG_FREED_PATTERN,
                         GUARD_PATTERN_BYTES, err);
    record->poisoned = status == GM_OK;
  }
  return status ? status : gm__guard_note_point(guard, record, stream, err);
}

gm_status gm__guard_look(gm__guard *guard, gm__guard_record *record, gm_error *err) {
  return record_read_zones(guard, record, NULL, err);
}

/* ---- judging ---- */

static gm_damage record_damage(const gm__guard_record *record, gm_damage_kind kind, int64_t offset,
                               unsigned char found) {
  return (gm_damage){.kind = kind,
                     .address = record->raw.address + record->front,
                     .bytes = record->usable,
                     .offset = offset,
                     .tag = record->tag,
                     .found = found,
                     .track_id = record->track_id};
}

/* The place of the first byte that differs from the pattern; `bytes` if none does. If the first bytes are the pattern
 * and each later one is that of a pattern before, which memcmp says at once, none does. */
static uint64_t record_differs(const unsigned char *seen, uint64_t bytes, const void *pattern, uint32_t pattern_bytes) {
  const unsigned char *want = pattern;
  uint64_t at = 0;
  if (bytes >= pattern_bytes && memcmp(seen, want, pattern_bytes) == 0 &&
      memcmp(seen, seen + pattern_bytes, bytes - pattern_bytes) == 0) {
    return bytes;
  }
  while (at < bytes && seen[at] == want[at % pattern_bytes]) at++;
  return at;
}

bool gm__guard_judge(const gm__guard *guard, const gm__guard_record *record, gm_damage *out) {
  const uint64_t zone = guard->zone, before = record_before(guard, record);
  uint64_t at = record_differs(record->seen + zone, zone, zone_pattern, sizeof zone_pattern);
  if (at < zone) {
    *out = record_damage(record, GM_DAMAGE_BEHIND, (int64_t)(record->usable + at), record->seen[zone + at]);
    return true;
  }
  at = record_differs(record->seen, before, zone_pattern, sizeof zone_pattern);
  if (at == before) return false;
  *out = record_damage(record, GM_DAMAGE_BEFORE, (int64_t)at - (int64_t)before, record->seen[at]);
  return true;
}

bool gm__guard_judge_freed(gm__guard *guard, const gm__guard_record *record, gm_damage *out) {
  const gm_services *services = gm__context_services(guard->heap->device->ctx);
  unsigned char *seen = gm__alloc(services, GUARD_STEP);
  bool damaged = false;
  for (uint64_t done = 0; seen && !damaged && done < record->usable; done += GUARD_STEP) {
    const uint64_t left = record->usable - done, bytes = left < GUARD_STEP ? left : GUARD_STEP;
    if (record_read(guard, record, NULL, record->front + done, seen, bytes, NULL)) break;
    const uint64_t at = record_differs(seen, bytes, GM_DEBUG_FREED_PATTERN, GUARD_PATTERN_BYTES);
    damaged = at < bytes;
    if (damaged) *out = record_damage(record, GM_DAMAGE_AFTER_FREE, (int64_t)(done + at), seen[at]);
  }
  gm__release(services, seen, GUARD_STEP);
  return damaged;
}

void gm__guard_drop_point(gm__guard *guard, gm__guard_record *record) {
  if (record->has_point) record_let_go(guard, &record->point);
  record->has_point = false;
}

bool gm__guard_passed(gm__guard *guard, gm__guard_record *record, uint64_t patience_ns) {
  const gm_device *device = guard->heap->device;
  bool done = false;
  if (!record->has_point) return true;
  gm_status status = device->ops->point_done(device->handle, &record->point, &done, NULL);
  gm__answer_mend_bool(&done);
  if (!status && !done && patience_ns) {
    status = gm__submitting(device)->point_wait(device->handle, &record->point, patience_ns, NULL);
    done = status == GM_OK;
  }
  if (status != GM_ERR_DEVICE_LOST && !done) return false;
  gm__guard_drop_point(guard, record);
  return true;
}

bool gm__guard_wait_on(gm__guard *guard, gm__guard_record *record, const gm_stream *on) {
  const gm_device *device = guard->heap->device;
  if (!record->has_point) return true;
  gm_status status = gm__submitting(device)->point_wait_on(device->handle, on->handle, &record->point, NULL);
  if (status && status != GM_ERR_DEVICE_LOST) return gm__guard_passed(guard, record, 0);
  gm__guard_drop_point(guard, record);
  return true;
}

void gm__guard_text(const gm__guard *guard, const gm_damage *damage, char *text, size_t capacity) {
  static const char *const how[] = {"is whole", "was written before its beginning", "was written behind its end",
                                    "was written after it was freed"};
  char tracked[48] = "";
  if (damage->track_id) snprintf(tracked, sizeof tracked, ", tracked as %" PRIu64, damage->track_id);
  snprintf(text, capacity,
           "a block of %" PRIu64 " bytes at 0x%" PRIx64
           " of pool \"%s\" (tag %u%s) %s: the first wrong byte is at "
           "offset %" PRId64 " and holds 0x%02x",
           damage->bytes, damage->address, guard->heap->provider.name, damage->tag, tracked, how[damage->kind],
           damage->offset, damage->found);
}
