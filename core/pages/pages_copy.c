/* Copies of whole pages. A copy is a step: pages of both ends that are released meanwhile wait until its point has
 * passed. */
#include <string.h>

#include "core/base/cancel.h"
#include "core/device/point.h"
#include "core/pages/page_keys.h"
#include "core/pages/page_planes.h"
#include "core/pages/page_settle.h"
#include "core/pages/pages.h"
#include "gm/copy.h"

/* ---- copies ---- */

/* Pages from `to` and `from` on that lie next to each other at both ends. */
static uint32_t copy_run(const gm_pages *to_set, const gm_page *to, const gm_pages *from_set, const gm_page *from,
                         uint32_t count) {
  const uint32_t to_granule = to_set->planes.granule_pages, from_granule = from_set->planes.granule_pages;
  uint32_t run = 1;
  while (run < count && to[run] == to[0] + run && from[run] == from[0] + run && to[run] % to_granule &&
         from[run] % from_granule)
    run++;
  return run;
}

static gm_status copy_plane(const gm_pages *to_set, const gm_page *to, const gm_pages *from_set, const gm_page *from,
                            uint32_t count, uint32_t plane, gm_stream *stream, gm_error *err) {
  const uint64_t bytes = to_set->planes.bytes[plane];
  gm_status status = GM_OK;
  for (uint32_t i = 0, run; i < count && !status; i += run) {
    run = copy_run(to_set, to + i, from_set, from + i, count - i);
    if (to[i] == from[i] && to_set == from_set) continue;
    const gm_block *target = gm__page_block(to_set, plane, to[i]), *source = gm__page_block(from_set, plane, from[i]);
    gm_point point = {0, 0, 0};
    status =
        gm_block_copy(to_set->planes.pool, target, gm__page_offset(to_set, plane, to[i]), from_set->planes.pool, source,
                      gm__page_offset(from_set, plane, from[i]), run * bytes, stream, stream ? &point : NULL, err);
    if (!status && stream) gm_point_release(gm_stream_device(stream), &point);
  }
  return status;
}

gm_status gm__page_barrier(gm_stream *stream, gm_error *err) {
  if (!stream || gm_stream_get_kind(stream) == GM_STREAM_FIFO) return GM_OK;
  return gm_stream_barrier(stream, err);
}

gm_status gm__page_stream_check(const gm_pool *pool, const gm_stream *stream, const char *op, gm_error *err) {
  if (!stream || gm_stream_device(stream) == gm_pool_device(pool)) return GM_OK;
  return gm__bad_argument(err, op, "`stream` is of another device than the pool");
}

/* Copies, and records a point behind all that was submitted. Where there is none the host has waited, and *out is zero.
 * REQUIRES: not the locks; the pages have memory that stays. */
static gm_status copy_pages(const gm_pages *to_set, const gm_page *to, const gm_pages *from_set, const gm_page *from,
                            uint32_t count, gm_stream *stream, gm_point *out, gm_error *err) {
  *out = (gm_point){0, 0, 0};
  gm_status status = gm__page_barrier(stream, err);
  for (uint32_t plane = 0; plane < to_set->planes.count && !status; plane++)
    status = copy_plane(to_set, to, from_set, from, count, plane, stream, err);
  if (!status) status = gm__page_barrier(stream, err);
  if (!stream) return status;
  gm_status recorded = gm_stream_record(stream, out, NULL);
  if (recorded) recorded = gm_stream_sync(stream, status ? NULL : err);
  return status ? status : recorded;
}

typedef struct copy_step {
  uint64_t number; /* 0: gm copies nothing */
  gm_point old;    /* of an earlier copy, whose step this one is, too */
} copy_step;

/* REQUIRES: the lock. */
static gm_status copy_begin(gm_pages *set, const gm_stream *stream, copy_step *out, const char *op, gm_error *err) {
  out->number = gm__page_copy_begin(set, stream ? gm_stream_id(stream) : 0, &out->old);
  if (out->number) return GM_OK;
  return gm__fail(err, GM_ERR_OVER_LIMIT, op, "a step, %d steps ago, is still open", GM_PAGE_STEPS_MOST);
}

/* Ends the step of a copy, and releases the lock. The set has the point from then on; where nothing was copied it is
 * zero, and the earlier copy's counts. REQUIRES: the lock. */
static void copy_end(gm_pages *set, const copy_step *step, gm_point point) {
  gm_device *device = gm_pool_device(set->planes.pool);
  const bool instead = point.stream == 0 && step->old.stream != 0;
  if (step->number) gm__page_step_end_at(set, step->number, device, instead ? step->old : point);
  gm__mutex_unlock(&set->lock);
  gm_point old = step->old;
  if (step->number && !instead) gm_point_release(device, &old);
}

/* The contents of a page change. */
static void copy_forget_key(gm_pages *set, gm_page page) {
  if (set->pages[page].keyed) gm__page_key_remove(set, page);
}

/* ---- access for writes ---- */

static bool write_is_shared(const gm_pages *set, gm_page page) { return set->pages[page].hold.count > 1; }

/* How many of the pages need another; the owner holds each. */
static gm_status write_count(gm_pages *set, const gm__page_owner *owner, const gm_page *which, uint32_t count,
                             uint32_t *out, const char *op, gm_error *err) {
  *out = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (which[i] >= set->max_pages || !gm__page_is_held_by(set, owner, which[i]))
      return gm__page_not_held(set, owner, which[i], op, err);
    *out += write_is_shared(set, which[i]);
  }
  return GM_OK;
}

/* Takes the new pages, each to the place of its old one. */
static gm_status write_take(gm_pages *set, gm__page_owner *owner, const gm_page *which, uint32_t count, uint32_t shared,
                            uint32_t flags, gm_page *out, const char *op, gm_error *err) {
  uint32_t next = count - shared;
  const gm_status status = gm__pages_take(set, owner, shared, flags, out + next, op, err);
  for (uint32_t i = 0; i < count && !status; i++) out[i] = write_is_shared(set, which[i]) ? out[next++] : which[i];
  return status;
}

/* Begins what gm_pages_write does, with the lock. */
static gm_status write_begin(gm_pages *set, uint32_t number, const gm_page *which, uint32_t count, uint32_t flags,
                             const gm_stream *stream, gm_page *out, copy_step *step, const char *op, gm_error *err) {
  uint32_t shared;
  gm__pages_settle_for(set, count);
  if (!gm__page_step_has_room(set)) gm__pages_settle(set);
  gm__page_owner *owner = gm__page_owner_find(set, number);
  if (!owner) return gm__page_owner_fault(set, number, op, err);
  gm_status status = write_count(set, owner, which, count, &shared, op, err);
  if (status) return status;
  if (shared && !set->planes.pool && set->order.open_steps == set->order.awaited)
    return gm__bad_argument(err, op, "\"%s\" needs copies of pages, and no step is open", owner->tag);
  if (shared && set->planes.pool) status = copy_begin(set, stream, step, op, err);
  if (!status) status = write_take(set, owner, which, count, shared, flags, out, op, err);
  /* At once: while gm copies, another owner could find the page by its key, and share it. */
  for (uint32_t i = 0; i < count && !status; i++) {
    if (out[i] == which[i]) copy_forget_key(set, which[i]);
  }
  return status;
}

/* Gives the old pages up, or after a failure the new ones, with the lock. */
static gm_status write_finish(gm_pages *set, uint32_t number, const gm_page *which, uint32_t count, const gm_page *out,
                              gm_status copied, const char *op, gm_error *err) {
  gm__page_owner *owner = gm__page_owner_find(set, number);
  if (!owner) return copied ? copied : gm__page_owner_fault(set, number, op, err);
  gm_status status = copied;
  for (uint32_t i = 0; i < count; i++) {
    if (out[i] == which[i]) continue;
    const bool given = gm__page_release(set, owner, copied ? out[i] : which[i]);
    set->copied += given && !copied;
    if (given || status) continue;
    status = gm__page_not_held(set, owner, which[i], op, err); /* it was named twice, or released meanwhile */
    gm__page_release(set, owner, out[i]);
  }
  return status;
}

gm_status gm_pages_write(gm_pages *pages, uint32_t owner, const gm_page *which, uint32_t count, uint32_t flags,
                         gm_stream *stream, gm_page *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pages_write";
  copy_step step = {.number = 0};
  if (count && (!which || !out || which == out))
    return gm__bad_argument(err, op, "`which` or `out` is NULL, or they are the same");
  if (flags & ~(uint32_t)GM_PAGES_URGENT) return gm__bad_argument(err, op, "`flags` has an unknown flag");
  gm_status status = gm__pages_check(pages, op, err);
  if (!status && pages->planes.pool) status = gm__page_stream_check(pages->planes.pool, stream, op, err);
  if (status) return status;
  gm_point point = {0, 0, 0};
  gm__mutex_lock(&pages->lock);
  status = write_begin(pages, owner, which, count, flags, stream, out, &step, op, err);
  if (!status) {
    if (step.number) {
      gm__mutex_unlock(&pages->lock);
      status = gm__error_of(op, copy_pages(pages, out, pages, which, count, stream, &point, err), err);
      gm__mutex_lock(&pages->lock);
    }
    status = write_finish(pages, owner, which, count, out, status, op, err);
  }
  copy_end(pages, &step, point);
  return status;
}

/* ---- copies between sets ---- */

/* Checks one end, and begins its step. */
static gm_status ends_begin(gm_pages *set, uint32_t number, const gm_page *which, uint32_t count, bool alone,
                            const gm_stream *stream, copy_step *step, gm_error *err) {
  static const char op[] = "gm_pages_copy";
  gm__mutex_lock(&set->lock);
  gm__pages_settle(set);
  gm__page_owner *owner = gm__page_owner_find(set, number);
  uint32_t shared = 0;
  gm_status status =
      owner ? write_count(set, owner, which, count, &shared, op, err) : gm__page_owner_fault(set, number, op, err);
  if (!status && alone && shared)
    status = gm__bad_argument(err, op, "\"%s\" does not hold alone what is written: %u pages", owner->tag, shared);
  if (!status) status = copy_begin(set, stream, step, op, err);
  for (uint32_t i = 0; i < count && !status && alone; i++) copy_forget_key(set, which[i]);
  return gm__pages_leave(set, status);
}

static gm_status ends_check(const gm_pages *to_set, const gm_pages *from_set, const gm_stream *stream, const char *op,
                            gm_error *err) {
  gm_status status = gm__pages_check(to_set, op, err);
  if (!status) status = gm__pages_check(from_set, op, err);
  if (status) return status;
  const gm__page_planes *to = &to_set->planes, *from = &from_set->planes;
  if (!to->pool || !from->pool) return gm__bad_argument(err, op, "a set has no pool");
  if (gm_pool_device(to->pool) != gm_pool_device(from->pool))
    return gm__bad_argument(err, op, "the pools of both sets are of two devices");
  status = gm__page_stream_check(to->pool, stream, op, err);
  if (status) return status;
  if (to->count == from->count && memcmp(to->bytes, from->bytes, to->count * sizeof *to->bytes) == 0) return GM_OK;
  return gm__bad_argument(err, op, "the planes of both sets have different bytes");
}

/* A second point at the same place; where the backend has none, the host waits for the first one. */
static void copy_twin(gm_device *device, gm_point *point, gm_point *out) {
  if (gm__point_keep(device, point, out, NULL) == GM_OK) return;
  gm_point_wait(device, point, UINT64_MAX, NULL);
  gm_point_release(device, point);
  *out = (gm_point){0, 0, 0};
}

gm_status gm_pages_copy(gm_pages *to_set, uint32_t to_owner, const gm_page *to, gm_pages *from_set, uint32_t from_owner,
                        const gm_page *from, uint32_t count, gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pages_copy";
  copy_step to_step, from_step;
  gm_point point = {0, 0, 0}, other = {0, 0, 0};
  if (count && !(to && from)) return gm__bad_argument(err, op, "`to` or `from` is NULL");
  gm_status status = ends_check(to_set, from_set, stream, op, err);
  if (!status) status = ends_begin(from_set, from_owner, from, count, false, stream, &from_step, err);
  if (status) return status;
  status = ends_begin(to_set, to_owner, to, count, true, stream, &to_step, err);
  const bool begun = !status;
  if (begun) {
    status = gm__error_of(op, copy_pages(to_set, to, from_set, from, count, stream, &point, err), err);
    copy_twin(gm_pool_device(to_set->planes.pool), &point, &other);
  }
  gm__mutex_lock(&from_set->lock);
  copy_end(from_set, &from_step, other);
  if (!begun) return status;
  gm__mutex_lock(&to_set->lock);
  to_set->copied += status ? 0 : count;
  copy_end(to_set, &to_step, point);
  return status;
}
