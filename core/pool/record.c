#include "core/pool/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/pool/arena.h"
#include "gm/record.h"
#include "gm/version.h"

/* Invariants: `recorder` changes with the gate and the lock; an arena that is made later sees it, those that are there
 * get their tapes from who begins, one after the other, each with what is out there at that moment. So every block that
 * is out has one allocation on the tape of its arena. Before a recorder is finished each arena was entered once after
 * its tape was taken away, so that nobody writes any more. */

enum { RECORD_NODES = 0 /* tape of the lock; that of an arena is one more than its number */ };

_Static_assert(GM__POOL_ARENAS + 1 <= GM__RECORDER_TAPES, "a tape for each arena");

gm__tape *gm__record_tape(const gm_pool *pool, uint32_t arena) {
  return pool->recorder ? gm__recorder_tape(pool->recorder, arena + 1) : NULL;
}

/* ---- driver allocations ---- */

/* What the engine or another process lends is no allocation; an upstream's memory is the pool's own. */
static gm__tape *record_tape_of(const gm_pool *pool, const gm__node *node) {
  if (!pool->recorder || (node->foreign && node->memory.wrapped)) return NULL;
  return gm__recorder_tape(pool->recorder, RECORD_NODES);
}

void gm__record_enter(gm_pool *pool, const gm__node *node) {
  gm__tape *tape = record_tape_of(pool, node);
  if (tape) gm__tape_add(tape, node->index, node->requested, node->asked_on);
}

void gm__record_leave(gm_pool *pool, const gm__node *node, const gm_stream *stream) {
  gm__tape *tape = record_tape_of(pool, node);
  if (tape) gm__tape_add(tape, node->index, 0, stream ? stream->id : 0);
}

/* ---- marks ---- */

static gm_status record_mark(gm_pool *pool, const char *label) {
  gm_status status = GM_ERR_NOT_FOUND;
  gm__mutex_lock(&pool->lock);
  if (pool->recorder) {
    gm__tape *tape = gm__recorder_tape(pool->recorder, RECORD_NODES);
    if (tape) gm__tape_mark(tape, label, strlen(label));
    status = GM_OK; /* without a tape the end tells */
  }
  gm__mutex_unlock(&pool->lock);
  return status;
}

void gm__record_tracker_mark(gm_pool *pool, uint64_t mark) {
  char label[32];
  snprintf(label, sizeof label, "mark %" PRIu64, mark);
  record_mark(pool, label);
}

static gm_status record_none(const gm_pool *pool, const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_NOT_FOUND, 0, op, "pool \"%s\" is not being recorded", pool->name);
}

gm_status gm_pool_record_mark(gm_pool *pool, const char *label, gm_error *err) {
  static const char op[] = "gm_pool_record_mark";
  gm_status status = gm__pool_check(pool, op, err);
  if (status) return status;
  const size_t length = label ? strnlen(label, GM__TAPE_LABEL_MOST + 1) : 0;
  if (length == 0 || length > GM__TAPE_LABEL_MOST) {
    return gm__bad_argument(err, op, "`label` must have 1 to %d bytes", GM__TAPE_LABEL_MOST);
  }
  return record_mark(pool, label) ? record_none(pool, op, err) : GM_OK;
}

/* ---- begin ---- */

/* From now on nodes and new arenas write. */
static void record_begin_nodes(gm_pool *pool, gm__recorder *recorder) {
  uint32_t cursor = 0;
  gm__mutex_lock(&pool->lock);
  pool->recorder = recorder;
  for (gm__node *node; (node = gm__node_next(&pool->nodes, &cursor));) {
    if (!gm__node_is_out(node) || !record_tape_of(pool, node)) continue;
    gm__record_enter(pool, node);
    recorder->already_alive++;
  }
  gm__mutex_unlock(&pool->lock);
}

static void record_begin_arenas(gm_pool *pool, gm__recorder *recorder) {
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    gm__tape *tape = arena->tape ? NULL : gm__recorder_tape(recorder, i + 1);
    if (tape) recorder->already_alive += gm__watch_record(arena, tape);
    gm__arena_unlock(arena);
  }
}

/* No arena and no node writes any more. */
static gm__recorder *record_stop(gm_pool *pool) {
  gm__arena *arena;
  gm__mutex_lock(&pool->lock);
  gm__recorder *recorder = pool->recorder;
  pool->recorder = NULL;
  gm__mutex_unlock(&pool->lock);
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    gm__watch_unrecord(arena);
    gm__arena_unlock(arena);
  }
  return recorder;
}

static gm_status record_begin(gm_pool *pool, const char *path, gm_error *err) {
  gm__recorder *recorder = NULL;
  if (pool->recorder) {
    return gm__fail(err, GM_ERR_BUSY, 0, "gm_pool_record_begin", "pool \"%s\" is being recorded already", pool->name);
  }
  gm_status status = gm__recorder_open(gm__context_services(pool->device->ctx), path, &recorder, err);
  if (status) return status;
  gm__tape *tape = gm__recorder_tape(recorder, RECORD_NODES);
  if (tape) gm__tape_mark(tape, "start", strlen("start"));
  record_begin_nodes(pool, recorder);
  record_begin_arenas(pool, recorder);
  record_mark(pool, "recording");
  if (!gm__recorder_has_failed(recorder, err)) return GM_OK;
  status = recorder->failure.status;
  gm__recorder_close(record_stop(pool), false);
  return status;
}

gm_status gm_pool_record_begin(gm_pool *pool, const char *path, gm_error *err) {
  static const char op[] = "gm_pool_record_begin";
  gm_status status = gm__pool_check(pool, op, err);
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
  gm__recorder *recorder = record_stop(pool);
  if (!recorder) return record_none(pool, "gm_pool_record_end", err);
  snprintf(comment, sizeof comment, "# recorded by gm %s from pool \"%s\" (%s) on %s", gm_version_string(), pool->name,
           pool->strategy == GM_STRATEGY_BUCKET ? "bucket" : "best_fit", pool->device->info.name);
  gm_status status = gm__recorder_finish(recorder, comment, out, err);
  gm__recorder_close(recorder, false);
  return status;
}

gm_status gm_pool_record_end(gm_pool *pool, gm_recording *out, gm_error *err) {
  static const char op[] = "gm_pool_record_end";
  gm_status status = gm__pool_check(pool, op, err);
  if (!status && out) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  gm_recording made = {.struct_size = sizeof made};
  gm__mutex_lock(&pool->gate);
  status = record_end(pool, &made, err);
  gm__mutex_unlock(&pool->gate);
  if (!status && out) gm__sized_out(out, &made, sizeof made);
  return status;
}
