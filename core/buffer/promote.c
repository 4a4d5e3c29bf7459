#include "core/buffer/promote.h"

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/buffer/heat.h"
#include "core/buffer/hold.h"
#include "core/buffer/move.h"
#include "core/buffer/poll.h"
#include "core/device/evictor.h"
#include "gm/pressure.h"
#include "gm/relocation.h"

/* Two things keep buffers from going to and fro. None comes back while the pool would then be above the pressure
 * `medium`, far below where buffers are put off. Each that was put off waits, longer each time. */

enum { PROMOTE_LOOKS = 1024 }; /* what comes behind so many that must stay may come at the next call */

static const char promote_op[] = "gm_pool_promote";
static const uint64_t promote_wait_ns = 1000000000;

/* Would the pool still be below the pressure `medium`? */
static bool promote_has_room(gm_pool *pool, uint64_t bytes) {
  gm_pressure now = {.struct_size = sizeof now};
  if (gm_pool_pressure(pool, &now, NULL)) return true; /* nobody knows: the request will tell */
  return (double)gm__add_sat(now.used_bytes, bytes) <= gm__keep_pressure(&pool->heap).medium * (double)now.total_bytes;
}

/* ---- one buffer ---- */

/* REQUIRES: the lock of gm_pool.buffers. */
static bool promote_one_may(gm_buffer *buffer, bool alone) {
  if (buffer->moving) return false;
  buffer->shown = buffer->shown && !alone;
  gm__buffer_queue(buffer);
  return gm__buffer_may_return(buffer) && gm__heat_has_waited(buffer, gm__now_ns(), promote_wait_ns);
}

typedef enum promote_state { PROMOTE_THERE, PROMOTE_MAY, PROMOTE_STAYS } promote_state;

static promote_state promote_one_state(gm_buffer *buffer, bool alone) {
  gm__pool_buffers *list = &buffer->pool->buffers;
  gm__mutex_lock(&list->lock);
  const bool may = promote_one_may(buffer, alone), there = !buffer->moving && !buffer->fell_back;
  gm__mutex_unlock(&list->lock);
  if (there) return PROMOTE_THERE;
  return may ? PROMOTE_MAY : PROMOTE_STAYS;
}

static bool promote_one_seize(gm_buffer *buffer) {
  gm__pool_buffers *list = &buffer->pool->buffers;
  gm__mutex_lock(&list->lock);
  const bool seized = promote_one_may(buffer, false) && gm__buffer_try_seize(buffer);
  gm__mutex_unlock(&list->lock);
  return seized;
}

/* The new place is taken before the buffer is seized. So an evictor that is asked for room may read the buffer. */
bool gm__promote_one(gm_buffer *buffer, bool alone) {
  static const char op[] = "gm_store_get";
  gm__place to;
  const promote_state state = promote_one_state(buffer, alone);
  if (state != PROMOTE_MAY || !promote_has_room(buffer->pool, buffer->bytes)) return state == PROMOTE_THERE;
  if (gm__place_take(buffer, GM_LOCATION_DEVICE, NULL, op, &to, NULL)) return false;
  if (!promote_one_seize(buffer)) {
    gm__place_undo(buffer, &to, NULL);
    return false;
  }
  const bool moved = gm__buffer_move_in(buffer, &to, NULL, op, NULL) == GM_OK && !buffer->fell_back;
  gm__buffer_settle(buffer);
  return moved;
}

/* ---- the buffers of a pool ---- */

static gm_status promote_while_room(gm_pool *pool, const gm_promote_params *params, gm_promote_report *report,
                                    gm_error *err) {
  gm__buffer_search search = {.pool = pool, .back = true, .looks = PROMOTE_LOOKS};
  gm_status status = GM_OK;
  bool moved = true;
  search.wait_ns = params->wait_ns ? params->wait_ns : promote_wait_ns;
  gm__buffer_search_begin(&search);
  const uint64_t most = params->max_bytes ? params->max_bytes : UINT64_MAX;
  for (gm_buffer *buffer; moved && (buffer = gm__buffer_search_next(&search));) {
    const uint64_t bytes = buffer->bytes;
    const bool fits = gm__add_sat(report->moved_bytes, bytes) <= most && promote_has_room(pool, bytes);
    if (fits) status = gm__buffer_go(buffer, GM_LOCATION_DEVICE, params->stream, promote_op, err);
    moved = fits && !status && !buffer->fell_back;
    gm__buffer_settle(buffer);
    if (!moved) break;
    report->moves++;
    report->moved_bytes += bytes;
  }
  gm__buffer_search_end(&search);
  return status;
}

/* No evictor is asked. One could wait for the buffer that is seized, and others would go to and fro. */
static gm_status promote_all(gm_pool *pool, const gm_promote_params *params, gm_promote_report *report, gm_error *err) {
  gm__evict_run none;
  const bool begun = gm__evict_run_begin(&none, pool->device);
  const gm_status status = promote_while_room(pool, params, report, err);
  if (begun) gm__evict_run_end(&none);
  return status;
}

gm_status gm_pool_promote(gm_pool *pool, const gm_promote_params *params, gm_promote_report *out, gm_error *err) {
  GM__UNCANCELLED();
  gm_promote_params asked = {.struct_size = sizeof asked};
  gm_promote_report report = {.struct_size = sizeof report};
  gm_status status = gm__pool_alive(pool, promote_op, err);
  if (!status && params) status = gm__sized_in(&asked, sizeof asked, params, promote_op, "params", err);
  if (!status && out) status = gm__sized_check(out, sizeof *out, promote_op, "out", err);
  if (!status) status = gm__buffer_check_stream(pool, asked.stream, promote_op, "params->stream", err);
  if (status) return status;
  status = promote_all(pool, &asked, &report, err);
  if (out) gm__sized_out(out, &report, sizeof report);
  return status;
}

/* ---- from time to time ---- */

void gm__promote_polled(gm_pool *pool) {
  gm_promote_report report = {.struct_size = sizeof report};
  gm_promote_params params = {.struct_size = sizeof params};
  if (!atomic_load(&pool->buffers.promotes)) return;
  gm__mutex_lock(&pool->buffers.lock);
  params.max_bytes = pool->buffers.promote_bytes;
  params.wait_ns = pool->buffers.promote_wait_ns;
  gm__mutex_unlock(&pool->buffers.lock);
  promote_all(pool, &params, &report, NULL);
}
