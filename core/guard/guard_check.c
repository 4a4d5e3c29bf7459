#include "core/guard/guard_record.h"
#include "core/heap/heap_track.h"

/* The zones of live blocks are read while their owners may free them. */

#define CHECK_PATIENCE_NS UINT64_C(1000000000)

/* The block's id in the pool's tracker; 0: none. */
static uint64_t check_tracked_id(const gm__guard *guard, const gm__guard_record *record) {
  gm__live live;
  if (!gm__live_open_raw(guard->heap, &record->raw, &live)) return 0;
  const uint64_t id = gm__tracked_id(&live);
  gm__live_close(&live);
  return id;
}

/* Reads the zones of one live block; a thread that frees it waits meanwhile. REQUIRES: guard lock, which the call gives
 * up while the driver reads. */
static bool check_one(gm__guard *guard, gm__guard_record *record, gm_check_report *report) {
  gm_damage damage;
  record->looked_at = true;
  gm__mutex_unlock(&guard->lock);
  const bool read = gm__guard_passed(guard, record, CHECK_PATIENCE_NS) && !gm__guard_look(guard, record, NULL);
  gm__mutex_lock(&guard->lock);
  record->looked_at = false;
  gm__cond_broadcast(&guard->changed);
  *(read ? &report->checked : &report->unchecked) += 1;
  if (read) record->track_id = check_tracked_id(guard, record);
  return read && gm__guard_settle(guard, record, &damage);
}

/* Checks every live block. The caller logs what was found, after it unlocked the guard. REQUIRES: guard lock. */
static uint32_t check_out(gm__guard *guard, gm_check_report *report) {
  uint32_t found = 0;
  for (gm__guard_record *record = guard->out.first, *next; record; record = next) {
    found += !record->looked_at && check_one(guard, record, report);
    next = record->next;
  }
  return found;
}

gm_status gm__guard_check(gm__guard *guard, gm_check_report *report) {
  if (!guard || !gm__guard_writes(guard)) return GM_OK;
  gm__mutex_lock(&guard->lock);
  report->checked = guard->leaving.count;
  gm__mutex_unlock(&guard->lock);
  gm__guard_reap(guard, true);
  gm__mutex_lock(&guard->lock);
  report->checked -= guard->leaving.count < report->checked ? guard->leaving.count : report->checked;
  report->unchecked = guard->leaving.count;
  const uint32_t found = check_out(guard, report);
  report->damaged = guard->damaged;
  report->first = guard->first;
  report->last = guard->last;
  gm__mutex_unlock(&guard->lock);
  if (!report->damaged) return GM_OK;
  if (found) gm__guard_tell(guard, &report->last);
  gm__guard_text(guard, &report->last, report->text, sizeof report->text);
  return GM_ERR_DAMAGED;
}
