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
 * another. Invariant: buffers move to lower addresses or out of a segment that is done once, so each run ends. */

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
  gm_compact_report *report;
  uint64_t goal, deadline;
  gm_block plugs[COMPACT_PLUGS];
  size_t plug_count;
  gm_buffer *batch[COMPACT_BATCH]; /* seized, highest address first */
  size_t batch_count;
} compact_run;

static bool compact_may(const compact_run *run, uint64_t bytes) {
  const uint64_t most = run->params->max_bytes;
  return run->report->freed_bytes < run->goal && !gm__deadline_passed(run->deadline) &&
         (!most || gm__add_sat(run->report->moved_bytes, bytes) <= most);
}

static void compact_give_back(compact_run *run) {
  run->report->freed_bytes += gm__heap_trim(&run->pool->heap, 0, UINT64_MAX);
}

static void compact_drop_plugs(compact_run *run) {
  while (run->plug_count) gm__block_free_unused(run->pool, &run->plugs[--run->plug_count], NULL);
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
  while (run->plug_count < COMPACT_PLUGS) {
    gm_block hole;
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
  *moved = compact_may(run, bytes) && compact_find(run, buffer, slide, &to);
  if (!*moved) return GM_OK;
  const gm_status status = gm__buffer_move_in(buffer, &to, run->params->stream, compact_op, err);
  if (status) return status;
  run->report->moves++;
  run->report->moved_bytes += bytes;
  return GM_OK;
}

/* ---- batches ---- */

static bool compact_is_movable(const gm_buffer *buffer) {
  return buffer->relocatable && !buffer->moving && buffer->at.location == GM_LOCATION_DEVICE;
}

/* Puts the buffer into its place in the batch, which keeps those of the highest addresses. REQUIRES: the lock. */
static void compact_insert(compact_run *run, gm_buffer *buffer) {
  size_t at = run->batch_count;
  while (at > 0 && run->batch[at - 1]->at.block.address < buffer->at.block.address) at--;
  if (at == COMPACT_BATCH) return;
  if (run->batch_count < COMPACT_BATCH) run->batch_count++;
  for (size_t i = run->batch_count - 1; i > at; i--) run->batch[i] = run->batch[i - 1];
  run->batch[at] = buffer;
}

/* Seizes buffers of the driver allocation, below the address *below. *below becomes the lowest address of those it
 * looked at. False: there were none. */
static bool compact_seize(compact_run *run, uint64_t memory, uint64_t *below) {
  gm__pool_buffers *list = &run->pool->buffers;
  size_t seized = 0;
  run->batch_count = 0;
  gm__mutex_lock(&list->lock);
  for (gm_buffer *buffer = list->first; buffer; buffer = buffer->next) {
    if (compact_is_movable(buffer) && buffer->at.block.memory == memory && buffer->at.block.address < *below)
      compact_insert(run, buffer);
  }
  const bool any = run->batch_count > 0;
  for (size_t i = 0; i < run->batch_count; i++) {
    *below = run->batch[i]->at.block.address;
    if (gm__buffer_try_seize(run->batch[i])) {
      run->batch[seized++] = run->batch[i];
    } else {
      run->report->stayed++;
    }
  }
  run->batch_count = seized;
  gm__mutex_unlock(&list->lock);
  return any;
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

static int compact_by_memory(const void *one, const void *other) {
  const compact_group *a = one, *b = other;
  if (a->any.memory != b->any.memory) return a->any.memory < b->any.memory ? -1 : 1;
  return a->any.address < b->any.address ? -1 : a->any.address > b->any.address;
}

static uint64_t compact_holes(const compact_group *group) { return gm__sub_sat(group->of.bytes, group->of.in_use); }

/* The emptiest first. */
static int compact_by_use(const void *one, const void *other) {
  const compact_group *a = one, *b = other;
  const double left = a->of.bytes ? (double)a->of.in_use / (double)a->of.bytes : 1;
  const double right = b->of.bytes ? (double)b->of.in_use / (double)b->of.bytes : 1;
  return left < right ? -1 : left > right;
}

/* Reads where the buffers lie, one group for each. Returns their number, and the array's length in *capacity. */
static size_t compact_read(gm_pool *pool, compact_group **out, size_t *capacity) {
  gm__pool_buffers *list = &pool->buffers;
  const gm_services *services = gm__context_services(pool->ctx);
  size_t count = 0, most = atomic_load(&pool->guests);
  *capacity = most;
  *out = gm__alloc_array(services, most ? most : 1, sizeof **out);
  if (!*out) return 0;
  gm__mutex_lock(&list->lock);
  for (const gm_buffer *buffer = list->first; buffer && count < most; buffer = buffer->next) {
    if (!compact_is_movable(buffer)) continue;
    (*out)[count++] = (compact_group){.any = buffer->at.block, .bytes = buffer->at.block.bytes};
  }
  gm__mutex_unlock(&list->lock);
  return count;
}

/* Joins the groups of equal memory, and drops dedicated blocks. */
static size_t compact_join(gm_pool *pool, compact_group *groups, size_t count) {
  size_t left = 0;
  qsort(groups, count, sizeof *groups, compact_by_memory);
  for (size_t i = 0; i < count; i++) {
    if (left && groups[left - 1].any.memory == groups[i].any.memory) {
      groups[left - 1].bytes += groups[i].bytes;
    } else if (gm__heap_occupancy(&pool->heap, &groups[i].any, &groups[i].of)) {
      groups[left++] = groups[i];
    }
  }
  qsort(groups, left, sizeof *groups, compact_by_use);
  return left;
}

/* Moves all buffers out of a segment, if it has no other blocks and the others have the room. */
static gm_status compact_empty(compact_run *run, const compact_group *group, gm_error *err) {
  uint64_t below = UINT64_MAX;
  bool all = true;
  gm_status status = GM_OK;
  const uint64_t pooled = gm__heap_pooled(&run->pool->heap);
  if (group->of.paged || group->of.in_use != group->bytes) return GM_OK;
  if (gm__sub_sat(pooled, compact_holes(group)) < group->bytes || !compact_may(run, 0)) return GM_OK;
  while (!status && all && compact_seize(run, group->any.memory, &below)) {
    status = compact_move_batch(run, false, &all, err);
  }
  compact_drop_plugs(run);
  compact_give_back(run);
  return status;
}

static gm_status compact_slide(compact_run *run, const compact_group *group, gm_error *err) {
  uint64_t below = UINT64_MAX;
  bool all = true;
  gm_status status = GM_OK;
  while (!status && compact_may(run, 0) && compact_seize(run, group->any.memory, &below)) {
    status = compact_move_batch(run, true, &all, err);
    compact_drop_plugs(run);
    gm__heap_trim(&run->pool->heap, UINT64_MAX, UINT64_MAX); /* what was freed becomes holes */
  }
  return status;
}

static gm_status compact_groups(compact_run *run, compact_group *groups, size_t capacity, size_t count, gm_error *err) {
  gm_status status = GM_OK;
  size_t left = compact_join(run->pool, groups, count);
  for (size_t i = 0; i < left && !status; i++) status = compact_empty(run, &groups[i], err);
  gm__release(gm__context_services(run->pool->ctx), groups, (capacity ? capacity : 1) * sizeof *groups);
  if (status) return status;
  count = compact_read(run->pool, &groups, &capacity);
  if (!groups) return GM_OK;
  left = compact_join(run->pool, groups, count);
  for (size_t i = 0; i < left && !status; i++) status = compact_slide(run, &groups[i], err);
  gm__release(gm__context_services(run->pool->ctx), groups, (capacity ? capacity : 1) * sizeof *groups);
  return status;
}

/* ---- the run ---- */

/* Red zones and patterns belong to one place. Marks for AddressSanitizer do not. */
static bool compact_can(const gm_pool *pool) {
  return !pool->heap.provider.captures && (!pool->guard || !gm__guard_writes(pool->guard));
}

static gm_status compact_run_all(compact_run *run, gm_error *err) {
  compact_group *groups;
  size_t capacity;
  compact_give_back(run);
  if (!compact_can(run->pool)) return GM_OK;
  const size_t count = compact_read(run->pool, &groups, &capacity);
  if (!groups) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, compact_op, "no host memory for a list of buffers");
  const gm_status status = compact_groups(run, groups, capacity, count, err);
  compact_give_back(run);
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

gm_status gm__compact(gm_pool *pool, const gm_compact_params *params, uint64_t goal, gm_compact_report *report,
                      gm_error *err) {
  const gm_services *services = gm__context_services(pool->ctx);
  compact_run *run = gm__alloc(services, sizeof *run);
  if (!run) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, compact_op, "no host memory for a compaction");
  gm_status status = GM_ERR_BUSY;
  *report = (gm_compact_report){.struct_size = sizeof *report};
  run->pool = pool;
  run->params = params;
  run->report = report;
  run->goal = goal;
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
  status = gm__compact(pool, &asked, UINT64_MAX, &report, err);
  if (out) gm__sized_out(out, &report, sizeof report);
  return status;
}
