#include "core/buffer/compact.h"

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/buffer/compact_survey.h"
#include "core/buffer/hold.h"
#include "core/buffer/move.h"
#include "core/guard/guard.h"
#include "core/pool/alloc.h"

/* A run looks at the pool, makes a plan (compact_plan.h), and carries it out move by move. Each buffer moves at most
 * once. A run with a bound does so for a part of the pool after the other, until one has no moves. */

static const char compact_op[] = "gm_pool_compact";

typedef struct compact_run {
  gm_pool *pool;
  const gm_compact_params *params;
  const gm__compact_aim *aim;
  gm_compact_report *report;
  uint64_t deadline;
  gm__plan plan;
  bool ended; /* by a bound */
} compact_run;

/* The bytes that may still move. */
static uint64_t compact_left(const compact_run *run) {
  const uint64_t most = run->params->max_bytes;
  return most ? gm__sub_sat(most, run->report->moved_bytes) : UINT64_MAX;
}

static bool compact_may(compact_run *run, uint64_t bytes) {
  run->ended |=
      run->report->freed_bytes >= run->aim->goal || bytes > compact_left(run) || gm__deadline_passed(run->deadline);
  return !run->ended;
}

static void compact_give_back(compact_run *run) {
  run->report->freed_bytes += gm__heap_trim(&run->pool->heap, run->aim->keep, UINT64_MAX);
}

/* ---- moves ---- */

/* The buffer of the piece, seized. NULL: it is no longer there, or somebody holds it. */
static gm_buffer *compact_seize(compact_run *run, const gm__plan_piece *piece) {
  gm__pool_buffers *list = &run->pool->buffers;
  const uint64_t memory = run->plan.places[piece->place].memory;
  gm__mutex_lock(&list->lock);
  gm_buffer *buffer = gm__layout_at(list->layout, memory, piece->address);
  if (buffer && !gm__buffer_try_seize(buffer)) {
    run->report->stayed++;
    buffer = NULL;
  }
  gm__mutex_unlock(&list->lock);
  return buffer;
}

/* A place where the plan wants it, behind the chunk `left`. False: something else is there now. */
static bool compact_take(compact_run *run, const gm_buffer *buffer, const gm__plan_piece *piece, uint32_t left,
                         gm__place *out) {
  const gm__target target = {run->plan.places[piece->to_place].memory, piece->to, left};
  gm_request request = buffer->wanted;
  gm_block block;
  request.flags &= ~(uint32_t)(GM_ZERO | GM_COMMIT);
  if (!gm__place_served(gm__pool_alloc_at(run->pool, &request, &target, &block))) return false;
  gm__place_of_block(buffer, &block, out);
  if (out->location == GM_LOCATION_DEVICE) return true;
  gm__place_undo(buffer, out, NULL);
  return false;
}

/* *left: the chunk that the piece's room follows; where the piece went there, the piece's. */
static gm_status compact_move(compact_run *run, gm__plan_piece *piece, uint32_t *left, gm_error *err) {
  gm__place to;
  gm_buffer *buffer = compact_seize(run, piece);
  if (!buffer) return GM_OK;
  const uint64_t bytes = buffer->bytes;
  gm_status status = GM_OK;
  if (compact_take(run, buffer, piece, *left, &to)) {
    const uint32_t number = gm__pieces_chunk(&to.block);
    status = gm__buffer_move_in(buffer, &to, run->params->stream, compact_op, err);
    if (!status) *left = number;
    if (!status) run->report->moves++;
    if (!status) run->report->moved_bytes += bytes;
  }
  gm__buffer_settle(buffer);
  return status;
}

/* A piece has left its place for another one. */
static void compact_leave(compact_run *run, const gm__plan_piece *piece) {
  gm__plan_place *place = &run->plan.places[piece->place];
  if (piece->place == piece->to_place || --place->leaving) return;
  compact_give_back(run);
}

/* Moves what goes to the place, in the plan's order. */
static gm_status compact_fill(compact_run *run, const gm__plan_place *place, gm_error *err) {
  gm_status status = GM_OK;
  uint32_t left = place->edge;
  for (uint32_t i = 0; i < place->count && !status; i++) {
    gm__plan_piece *piece = &run->plan.pieces[place->first + i];
    if (!gm__plan_is_move(piece)) {
      left = piece->chunk;
      continue;
    }
    if (!compact_may(run, piece->bytes)) break;
    status = compact_move(run, piece, &left, err);
    if (!status) compact_leave(run, piece);
  }
  return status;
}

/* Places that take buffers of others come first, because that frees memory. */
static gm_status compact_carry_out(compact_run *run, gm_error *err) {
  gm_status status = GM_OK;
  for (int receives = 1; receives >= 0; receives--) {
    for (size_t i = 0; i < run->plan.place_count && !status; i++) {
      const gm__plan_place *place = &run->plan.places[i];
      if (place->receives == (receives == 1)) status = compact_fill(run, place, err);
    }
  }
  return status;
}

/* ---- the run ---- */

/* Red zones and patterns belong to one place. Marks for AddressSanitizer do not. */
static bool compact_can(const gm_pool *pool) {
  return !pool->heap.provider.captures && !pool->heap.arenas.whole && (!pool->guard || !gm__guard_writes(pool->guard));
}

/* Looks, plans and moves. The next look begins behind this one, unless a bound ended it. */
static gm_status compact_part(compact_run *run, gm_error *err) {
  gm__pool_buffers *list = &run->pool->buffers;
  const uint64_t most = run->params->max_bytes;
  gm__compact_survey survey = {.pool = run->pool,
                               .plan = &run->plan,
                               .most_bytes = most ? most : UINT64_MAX,
                               .looks = run->aim->looks,
                               .memory = list->compact_memory,
                               .address = list->compact_address};
  const uint64_t goal = gm__sub_sat(run->aim->goal, run->report->freed_bytes);
  gm_status status = GM_OK;
  run->plan = (gm__plan){.services = gm__context_services(run->pool->ctx)};
  if (!gm__compact_survey_read(&survey) || !gm__plan_make(&run->plan, goal)) {
    status = gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, compact_op, "no host memory for a plan");
  }
  run->report->stayed += survey.stayed;
  if (!status) status = compact_carry_out(run, err);
  gm__plan_clear(&run->plan);
  if (status || run->ended) return status;
  list->compact_memory = survey.memory;
  list->compact_address = survey.address;
  return GM_OK;
}

static bool compact_has_buffers(gm_pool *pool) {
  gm__mutex_lock(&pool->buffers.lock);
  const bool has = pool->buffers.layout != NULL;
  gm__mutex_unlock(&pool->buffers.lock);
  return has;
}

static gm_status compact_run_all(compact_run *run, gm_error *err) {
  gm_status status = GM_OK;
  uint64_t moves;
  compact_give_back(run);
  if (!compact_can(run->pool) || !compact_has_buffers(run->pool)) return GM_OK;
  do {
    moves = run->report->moves;
    if (compact_may(run, 0)) status = compact_part(run, err);
  } while (!status && !run->ended && run->aim->looks != SIZE_MAX && run->report->moves > moves);
  if (!status) compact_give_back(run);
  return status;
}

/* True: this thread may compact the pool; then compact_end follows. */
static bool compact_begin(gm_pool *pool) {
  gm__mutex_lock(&pool->buffers.lock);
  const bool free = !pool->buffers.compacting;
  pool->buffers.compacting = true;
  gm__mutex_unlock(&pool->buffers.lock);
  return free;
}

static void compact_end(gm_pool *pool) {
  gm__mutex_lock(&pool->buffers.lock);
  pool->buffers.compacting = false;
  gm__mutex_unlock(&pool->buffers.lock);
}

gm_status gm__compact(gm_pool *pool, const gm_compact_params *params, const gm__compact_aim *aim,
                      gm_compact_report *report, gm_error *err) {
  const gm_services *services = gm__context_services(pool->ctx);
  compact_run *run = gm__alloc(services, sizeof *run);
  if (!run) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, compact_op, "no host memory for a compaction");
  gm_status status = GM_ERR_BUSY;
  *report = (gm_compact_report){.struct_size = sizeof *report};
  run->pool = pool;
  run->params = params;
  run->report = report;
  run->aim = aim;
  run->deadline = gm__deadline_after(params->max_ns ? params->max_ns : GM__NEVER);
  if (compact_begin(pool)) {
    status = compact_run_all(run, err);
    compact_end(pool);
  } else {
    gm__fail(err, GM_ERR_BUSY, compact_op, "another thread compacts pool \"%s\"", pool->heap.provider.name);
  }
  gm__release(services, run, sizeof *run);
  return status;
}

gm_status gm_pool_compact(gm_pool *pool, const gm_compact_params *params, gm_compact_report *out, gm_error *err) {
  GM__UNCANCELLED();
  gm_compact_params asked = {.struct_size = sizeof asked};
  gm_compact_report report = {.struct_size = sizeof report};
  gm_status status = gm__pool_alive(pool, compact_op, err);
  if (!status && params) status = gm__sized_in(&asked, sizeof asked, params, compact_op, "params", err);
  if (!status && out) status = gm__sized_check(out, sizeof *out, compact_op, "out", err);
  if (!status) status = gm__buffer_check_stream(pool, asked.stream, compact_op, "params->stream", err);
  if (status) return status;
  const bool bounded = asked.max_bytes || asked.max_ns;
  const gm__compact_aim aim = {.goal = UINT64_MAX, .looks = bounded ? GM__COMPACT_LOOKS : SIZE_MAX};
  status = gm__compact(pool, &asked, &aim, &report, err);
  if (out) gm__sized_out(out, &report, sizeof report);
  return status;
}
