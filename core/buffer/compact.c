#include "core/buffer/compact.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/buffer/hold.h"
#include "core/buffer/move.h"
#include "core/guard/guard.h"
#include "core/heap/occupancy.h"
#include "core/pool/free.h"

/* Two ways. First segments are emptied, the emptiest first: each buffer moves into a hole of another segment. Then
 * buffers slide to lower addresses within what is left, and within mapped pages.
 *
 * A hole comes from the pool as every block does, by GM_POOLED_ONLY, so gm takes no new memory. The pool chooses the
 * hole. One that does not serve is kept as a plug until the segment or the batch is done, so that the next one is
 * another. Invariant: buffers move to lower addresses or out of a segment that is done once, so each run ends.
 *
 * A run takes the same few steps for each buffer and hole that it looks at, however many buffers there are. */

enum { COMPACT_BATCH = 16, COMPACT_PLUGS = 4096 };

static const char compact_op[] = "gm_pool_compact";

/* Where relocatable buffers lie: one driver allocation, or one range of addresses. */
typedef struct compact_group {
  gm_block any;   /* one of their blocks */
  uint64_t bytes; /* of all of them */
  gm__occupancy of;
} compact_group;

typedef struct compact_run {
  gm_pool *pool;
  const gm_compact_params *params;
  const gm__compact_aim *aim;
  gm_compact_report *report;
  uint64_t deadline, tries;
  gm_block plugs[COMPACT_PLUGS];
  size_t plug_count;
  gm_buffer *batch[COMPACT_BATCH]; /* seized, highest address first */
  size_t batch_count;
} compact_run;

/* The bytes that may still move. */
static uint64_t compact_left(const compact_run *run) {
  const uint64_t most = run->params->max_bytes;
  return most ? gm__sub_sat(most, run->report->moved_bytes) : UINT64_MAX;
}

static bool compact_may(const compact_run *run, uint64_t bytes) {
  return run->report->freed_bytes < run->aim->goal && run->tries < run->aim->tries && bytes <= compact_left(run) &&
         !gm__deadline_passed(run->deadline);
}

static void compact_give_back(compact_run *run) {
  if (run->aim->keep == UINT64_MAX) return;
  run->report->freed_bytes += gm__heap_trim(&run->pool->heap, run->aim->keep, UINT64_MAX);
}

static void compact_drop_plugs(compact_run *run) {
  while (run->plug_count) gm__block_free_unused(run->pool, &run->plugs[--run->plug_count], NULL);
  gm__heap_trim(&run->pool->heap, UINT64_MAX, UINT64_MAX); /* what was freed becomes holes */
}

/* ---- one buffer ---- */

/* Does the hole serve? With `slide` it lies lower, else in another segment. */
static bool compact_is_better(const gm_buffer *buffer, const gm_block *hole, bool slide) {
  const bool same = hole->memory == buffer->at.block.memory;
  return slide ? same && hole->address < buffer->at.block.address : !same;
}

/* A hole for the buffer. False: the pool has none. */
static bool compact_find(compact_run *run, const gm_buffer *buffer, bool slide, gm__place *out) {
  gm_request request = buffer->wanted;
  request.flags = (request.flags & ~(uint32_t)(GM_ZERO | GM_COMMIT)) | GM_POOLED_ONLY;
  request.stream = NULL;
  while (run->plug_count < COMPACT_PLUGS && compact_may(run, buffer->bytes)) {
    gm_block hole;
    run->tries++;
    const gm_acquire answer = gm_alloc(run->pool, &request, &hole);
    if (!gm_acquired(answer)) return false;
    if (gm__place_served(answer) && compact_is_better(buffer, &hole, slide)) {
      gm__place_of_block(buffer, &hole, out);
      if (out->location == GM_LOCATION_DEVICE) return true;
    }
    run->plugs[run->plug_count++] = hole;
  }
  return false;
}

static gm_status compact_move(compact_run *run, gm_buffer *buffer, bool slide, bool *moved, gm_error *err) {
  gm__place to;
  const uint64_t bytes = buffer->bytes;
  *moved = compact_find(run, buffer, slide, &to);
  if (!*moved) return GM_OK;
  const gm_status status = gm__buffer_move_in(buffer, &to, run->params->stream, compact_op, err);
  if (status) return status;
  run->report->moves++;
  run->report->moved_bytes += bytes;
  run->tries = 0;
  return GM_OK;
}

/* ---- batches ---- */

/* Seizes buffers of the driver allocation, below the address *below. *below becomes the lowest address of those it
 * looked at. False: there were none. */
static bool compact_seize(compact_run *run, uint64_t memory, uint64_t *below) {
  gm__pool_buffers *list = &run->pool->buffers;
  const uint64_t left = compact_left(run);
  size_t looked = 0;
  run->batch_count = 0;
  gm__mutex_lock(&list->lock);
  for (gm_buffer *buffer; looked < COMPACT_BATCH; looked++) {
    buffer = gm__layout_below(list->layout, memory, *below, left);
    if (!buffer) break;
    *below = buffer->at.block.address;
    if (gm__buffer_try_seize(buffer)) {
      run->batch[run->batch_count++] = buffer;
    } else {
      run->report->stayed++;
    }
  }
  gm__mutex_unlock(&list->lock);
  run->tries += looked;
  return looked > 0;
}

/* Moves the buffers of the batch, and settles all of them. *all: each was moved. */
static gm_status compact_move_batch(compact_run *run, bool slide, bool *all, gm_error *err) {
  gm_status status = GM_OK;
  for (size_t i = 0; i < run->batch_count; i++) {
    bool moved = false;
    if (!status && (slide || *all)) status = compact_move(run, run->batch[i], slide, &moved, err);
    *all = *all && moved;
    gm__buffer_settle(run->batch[i]);
  }
  return status;
}

/* ---- groups ---- */

/* The emptiest first, as far as relocatable buffers fill them. */
static int compact_by_use(const void *one, const void *other) {
  const compact_group *a = one, *b = other;
  const double left = a->of.bytes ? (double)a->bytes / (double)a->of.bytes : 1;
  const double right = b->of.bytes ? (double)b->bytes / (double)b->of.bytes : 1;
  return left < right ? -1 : left > right;
}

/* Reads up to `most` places where buffers lie. Returns how many there are. */
static size_t compact_read(gm_pool *pool, compact_group *groups, size_t most) {
  gm__pool_buffers *list = &pool->buffers;
  size_t count = 0;
  gm__mutex_lock(&list->lock);
  for (gm_buffer *any = NULL; (any = gm__layout_next_memory(list->layout, any ? any->at.block.memory : 0)); count++) {
    if (!groups || count >= most) continue;
    const gm_block *block = &any->at.block;
    groups[count] = (compact_group){.any = *block, .bytes = gm__layout_bytes(list->layout, block->memory)};
  }
  gm__mutex_unlock(&list->lock);
  return count;
}

/* Drops dedicated blocks and mapped pages, and sorts the rest. */
static size_t compact_segments(gm_pool *pool, compact_group *groups, size_t count) {
  size_t left = 0;
  for (size_t i = 0; i < count; i++) {
    compact_group *group = &groups[i];
    if (gm__heap_occupancy(&pool->heap, &group->any, &group->of) && !group->of.paged) groups[left++] = *group;
  }
  qsort(groups, left, sizeof *groups, compact_by_use);
  return left;
}

/* Moves all buffers out of a segment, if it has no other blocks and the others have the room. */
static gm_status compact_empty(compact_run *run, const compact_group *group, gm_error *err) {
  uint64_t below = UINT64_MAX;
  bool all = true;
  gm_status status = GM_OK;
  gm__heap *heap = &run->pool->heap;
  if (!compact_may(run, 0) || gm__heap_segment_in_use(heap, &group->any) != group->bytes) return GM_OK;
  const uint64_t holes = gm__sub_sat(group->of.bytes, group->bytes);
  if (gm__sub_sat(gm__heap_pooled(heap), holes) < group->bytes) return GM_OK;
  while (!status && all && compact_seize(run, group->any.memory, &below)) {
    status = compact_move_batch(run, false, &all, err);
  }
  compact_drop_plugs(run);
  compact_give_back(run);
  return status;
}

static gm_status compact_empty_all(compact_run *run, gm_error *err) {
  const gm_services *services = gm__context_services(run->pool->ctx);
  const size_t most = compact_read(run->pool, NULL, 0);
  if (!most) return GM_OK;
  compact_group *groups = gm__alloc_array(services, most, sizeof *groups);
  gm_status status = GM_OK;
  if (!groups) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, compact_op, "no host memory for a list of segments");
  const size_t count = compact_read(run->pool, groups, most);
  const size_t left = compact_segments(run->pool, groups, count < most ? count : most);
  for (size_t i = 0; i < left && !status; i++) status = compact_empty(run, &groups[i], err);
  gm__release(services, groups, most * sizeof *groups);
  return status;
}

/* ---- sliding ---- */

/* Is there anything below that address to slide? Dedicated blocks are alone where they lie. */
static bool compact_slides(compact_run *run, uint64_t memory, uint64_t below) {
  gm__pool_buffers *list = &run->pool->buffers;
  gm__occupancy of;
  gm_block block;
  gm__mutex_lock(&list->lock);
  const gm_buffer *buffer = gm__layout_below(list->layout, memory, below, UINT64_MAX);
  if (buffer) block = buffer->at.block;
  gm__mutex_unlock(&list->lock);
  run->tries++;
  return buffer && gm__heap_occupancy(&run->pool->heap, &block, &of);
}

static gm_status compact_slide(compact_run *run, uint64_t memory, uint64_t *below, gm_error *err) {
  bool all = true;
  gm_status status = GM_OK;
  if (!compact_slides(run, memory, *below)) return GM_OK;
  while (!status && compact_may(run, 0) && compact_seize(run, memory, below)) {
    status = compact_move_batch(run, true, &all, err);
    if (run->plug_count > COMPACT_PLUGS / 2) compact_drop_plugs(run);
  }
  compact_drop_plugs(run);
  return status;
}

/* The next place is the one behind `memory`. */
static void compact_slide_next(compact_run *run, uint64_t memory) {
  gm__pool_buffers *list = &run->pool->buffers;
  gm__mutex_lock(&list->lock);
  const gm_buffer *any = gm__layout_next_memory(list->layout, memory);
  list->compact_memory = any ? any->at.block.memory : 0;
  list->compact_below = UINT64_MAX;
  gm__mutex_unlock(&list->lock);
}

/* Slides from where the last run ended to the last place, or to a bound. Only the thread that compacts reads that. */
static gm_status compact_slide_on(compact_run *run, gm_error *err) {
  gm__pool_buffers *list = &run->pool->buffers;
  gm_status status = GM_OK;
  while (!status && list->compact_memory && compact_may(run, 0)) {
    status = compact_slide(run, list->compact_memory, &list->compact_below, err);
    if (!status && compact_may(run, 0)) compact_slide_next(run, list->compact_memory);
  }
  return status;
}

static gm_status compact_slide_all(compact_run *run, gm_error *err) {
  const gm_status status = compact_slide_on(run, err);
  if (status || run->pool->buffers.compact_memory) return status;
  compact_slide_next(run, 0);
  return compact_slide_on(run, err);
}

/* ---- the run ---- */

/* Red zones and patterns belong to one place. Marks for AddressSanitizer do not. */
static bool compact_can(const gm_pool *pool) {
  return !pool->heap.provider.captures && pool->heap.strategy != GM_STRATEGY_BUCKET &&
         (!pool->guard || !gm__guard_writes(pool->guard));
}

static gm_status compact_run_all(compact_run *run, gm_error *err) {
  compact_give_back(run);
  if (!compact_can(run->pool)) return GM_OK;
  gm_status status = compact_empty_all(run, err);
  if (!status) status = compact_slide_all(run, err);
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
  if (!run) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, compact_op, "no host memory for a compaction");
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
    gm__fail(err, GM_ERR_BUSY, 0, compact_op, "another thread compacts pool \"%s\"", pool->heap.provider.name);
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
  const gm__compact_aim aim = {.goal = UINT64_MAX, .tries = bounded ? GM__COMPACT_TRIES : UINT64_MAX};
  status = gm__compact(pool, &asked, &aim, &report, err);
  if (out) gm__sized_out(out, &report, sizeof report);
  return status;
}
