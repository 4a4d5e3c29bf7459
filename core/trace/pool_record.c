/* A pool's recording, from the file that is made to the trace in it. core/manage/record.c has the pool's part. */
#include <stdio.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/manage/record.h"
#include "core/trace/recording.h"
#include "gm/record.h"
#include "gm/version.h"

static gm_status record_none(const gm_pool *pool, const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_NOT_FOUND, op, "pool \"%s\" is not being recorded", pool->heap.provider.name);
}

gm_status gm_pool_record_mark(gm_pool *pool, const char *label, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_record_mark";
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  const size_t length = label ? strnlen(label, GM__EVENT_LABEL_MOST + 1) : 0;
  if (length == 0 || length > GM__EVENT_LABEL_MOST) {
    return gm__bad_argument(err, op, "`label` must have 1 to %d bytes", GM__EVENT_LABEL_MOST);
  }
  return gm__record_mark(pool, label) ? record_none(pool, op, err) : GM_OK;
}

static void record_save(void *pool) { gm_pool_record_end(pool, NULL, NULL); }

static gm_status record_begin(gm_pool *pool, const char *path, gm_error *err) {
  gm__recorder *recorder = NULL;
  const gm_status idle = gm__record_check_idle(pool, "gm_pool_record_begin", err);
  if (idle) return idle;
  gm_status status = gm__recorder_open(gm__context_services(pool->device->ctx), path, &recorder, err);
  if (status) return status;
  recorder->save = record_save;
  gm__record_start(pool, recorder);
  if (!gm__recorder_has_failed(recorder, err)) return GM_OK;
  status = recorder->failure.status;
  gm__recorder_close(gm__record_stop(pool), false);
  return status;
}

gm_status gm_pool_record_begin(gm_pool *pool, const char *path, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_record_begin";
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (!path || !path[0]) return gm__bad_argument(err, op, "`path` is %s", path ? "empty" : "NULL");
  gm__mutex_lock(&pool->gate);
  status = record_begin(pool, path, err);
  gm__mutex_unlock(&pool->gate);
  return status;
}

/* ---- end ---- */

static gm_status record_end(gm_pool *pool, gm_recording *out, gm_error *err) {
  char comment[160];
  if (!gm__recorder_writes(pool->heap.observers.recorder)) return record_none(pool, "gm_pool_record_end", err);
  gm__recorder *recorder = gm__record_stop(pool);
  snprintf(comment, sizeof comment, "# recorded by gm %s from pool \"%s\" (%s) on %s", gm_version_string(),
           pool->heap.provider.name, pool->heap.strategy == GM_STRATEGY_BUCKET ? "bucket" : "best_fit",
           pool->device->info.name);
  gm_status status = gm__recorder_finish(recorder, comment, out, err);
  gm__recorder_close(recorder, false);
  return status;
}

gm_status gm_pool_record_end(gm_pool *pool, gm_recording *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_record_end";
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status && out) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  gm_recording made = {.struct_size = sizeof made};
  gm__mutex_lock(&pool->gate);
  status = record_end(pool, &made, err);
  gm__mutex_unlock(&pool->gate);
  if (!status && out) gm__sized_out(out, &made, sizeof made);
  return status;
}
