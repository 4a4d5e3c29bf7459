#include <inttypes.h>

#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/pool/guard_record.h"

/* gm_pool_check: zones of blocks that are out are read while their owners may free them. */

#define CHECK_PATIENCE_NS UINT64_C(1000000000)

/* One block that is out; whoever frees it waits. With the lock, but not while the driver reads. */
static bool check_one(gm_pool *pool, gm__guard_record *record, gm_check_report *report) {
  gm__guard *guard = pool->guard;
  gm_damage damage;
  record->looked_at = true;
  gm__mutex_unlock(&guard->lock);
  const bool read = gm__guard_passed(pool, record, CHECK_PATIENCE_NS) && !gm__guard_look(pool, record, NULL);
  gm__mutex_lock(&guard->lock);
  record->looked_at = false;
  gm__cond_broadcast(&guard->changed);
  *(read ? &report->checked : &report->unchecked) += 1;
  return read && gm__guard_settle(pool, record, &damage);
}

/* Every block that is out. What was found is told by the caller, which holds no lock then. */
static uint32_t check_out(gm_pool *pool, gm_check_report *report) {
  uint32_t found = 0;
  for (gm__guard_record *record = pool->guard->out.first, *next; record; record = next) {
    found += !record->looked_at && check_one(pool, record, report);
    next = record->next;
  }
  return found;
}

static gm_status check(gm_pool *pool, gm_check_report *report) {
  gm__guard *guard = pool->guard;
  if (!guard || !gm__guard_writes(guard)) return GM_OK;
  gm__mutex_lock(&guard->lock);
  report->checked = guard->leaving.count;
  gm__mutex_unlock(&guard->lock);
  gm__guard_reap(pool, true);
  gm__mutex_lock(&guard->lock);
  report->checked -= guard->leaving.count < report->checked ? guard->leaving.count : report->checked;
  report->unchecked = guard->leaving.count;
  const uint32_t found = check_out(pool, report);
  report->damaged = guard->damaged;
  report->first = guard->first;
  report->last = guard->last;
  gm__mutex_unlock(&guard->lock);
  if (!report->damaged) return GM_OK;
  if (found) gm__guard_tell(pool, &report->last);
  gm__guard_text(pool, &report->last, report->text, sizeof report->text);
  return GM_ERR_DAMAGED;
}

gm_status gm_pool_check(gm_pool *pool, gm_check_report *out, gm_error *err) {
  gm_status status = gm__pool_check(pool, "gm_pool_check", err);
  if (!status && out) status = gm__sized_check(out, sizeof *out, "gm_pool_check", "out", err);
  if (status) return status;
  gm_check_report report = {.struct_size = sizeof report};
  status = check(pool, &report);
  if (out) gm__sized_out(out, &report, sizeof report);
  if (!status) return GM_OK;
  return gm__fail(err, status, 0, "gm_pool_check", "%" PRIu64 " blocks are damaged; the latest: %s", report.damaged,
                  report.text);
}
