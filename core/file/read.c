/* Invariants: a slot is free, or under way with one worker, or arrived (in the queue), or with the caller. The cursor
 * is the first byte that no piece has. Rows do not change. After a failure, and after a cancel, no piece is begun. */
#include "core/file/read.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/mapping.h"
#include "core/base/saturate.h"
#include "core/base/thread.h"
#include "core/file/read_pace.h"
#include "core/file/read_piece.h"

typedef struct read_slot {
  gm__read_piece piece; /* the first member */
  bool taken;
  struct read_slot *next; /* in the queue */
} read_slot;

typedef struct read_worker {
  gm__read *read;
  gm__thread thread;
  unsigned char *bounce;
} read_worker;

struct gm__read {
  const gm_services *services;
  gm__read_row *rows; /* without empty ones, in the order of reading */
  uint64_t row_room, row_count;
  uint64_t piece_bytes;
  gm__read_params params;
  uint32_t workers; /* threads that were started */
  atomic_bool cancelled;
  gm__mutex lock; /* guards the members below */
  gm__cond freed, arrived;
  uint64_t row, skip; /* the cursor */
  uint32_t under_way;
  gm__read_pace pace;
  read_slot *first, **end;
  gm_status status; /* the first failure */
  gm_error failure;
  uint64_t failed_range;
  gm__read_figures figures;
  read_slot slots[GM__READ_FLIGHT];
  read_worker each[GM__READ_FLIGHT];
};

/* ---- the plan ---- */

/* The next piece of a range of runs. REQUIRES: read lock */
static void read_plan_runs(gm__read *read, gm__read_piece *piece) {
  const gm__read_range *range = &read->rows[read->row].range;
  piece->count = 1;
  piece->run_bytes = gm__read_range_part(range, read->piece_bytes, read->skip, &piece->bytes);
  read->skip += piece->run_bytes;
  if (read->skip < range->bytes) return;
  read->skip = 0;
  read->row++;
}

/* Whether a row belongs to the piece that begins with `first` at `at` and reaches to `end` so far. */
static bool read_joins(const gm__read_row *first, const gm__read_row *row, uint64_t at, uint64_t end, uint64_t limit) {
  const gm__read_range *a = &first->range, *b = &row->range;
  if (b->file != a->file || b->room != a->room || !b->to != !a->to || b->run || a->far || b->far) return false;
  if (b->to && (a->bytes > GM__READ_SMALL || b->bytes > GM__READ_SMALL))
    return false; /* each straight into its place */
  return b->at >= at && b->at < limit && b->at <= end + GM__READ_GAP;
}

/* The next piece, in `piece`; the cursor moves behind it. REQUIRES: read lock, and rows at the cursor */
static void read_plan(gm__read *read, gm__read_piece *piece) {
  const gm__read_row *first = &read->rows[read->row];
  const uint64_t at = gm__read_range_at(&first->range, read->skip);
  const uint64_t limit = (at / read->piece_bytes + 1) * read->piece_bytes;
  uint64_t end = at;
  *piece = (gm__read_piece){.file = first->range.file, .at = at, .first = read->row, .skip = read->skip};
  if (first->range.run) {
    read_plan_runs(read, piece);
    return;
  }
  do {
    const gm__read_range *range = &read->rows[read->row].range;
    const uint64_t range_end = range->at + range->bytes, until = range_end < limit ? range_end : limit;
    piece->count++;
    if (until > end) end = until;
    read->skip = until < range_end ? until - range->at : 0;
    read->row += read->skip == 0;
  } while (!read->skip && read->row < read->row_count && read_joins(first, &read->rows[read->row], at, end, limit));
  piece->bytes = end - at;
}

static bool read_is_over(const gm__read *read) {
  return read->row == read->row_count || read->status != GM_OK || atomic_load(&read->cancelled);
}

/* A slot with the next piece. NULL: there is none to begin, or not now. REQUIRES: read lock */
static read_slot *read_claim(gm__read *read) {
  const uint64_t row = read->row, skip = read->skip;
  if (read_is_over(read)) return NULL;
  for (uint32_t i = 0; i < GM__READ_FLIGHT; i++) {
    read_slot *slot = &read->slots[i];
    if (slot->taken) continue;
    read_plan(read, &slot->piece);
    if (!gm__read_pace_allows(&read->pace, slot->piece.bytes)) {
      read->row = row;
      read->skip = skip;
      return NULL;
    }
    gm__read_pace_claim(&read->pace, slot->piece.bytes);
    slot->taken = true;
    read->under_way++;
    return slot;
  }
  return NULL;
}

/* ---- one piece ---- */

static bool read_stops(gm__read *read) {
  gm__mutex_lock(&read->lock);
  const bool stops = read->status != GM_OK || atomic_load(&read->cancelled);
  gm__mutex_unlock(&read->lock);
  return stops;
}

static const gm__read_room *read_room(const gm__read *read, const gm__read_piece *piece) {
  const gm__read_range *range = &read->rows[piece->first].range;
  const bool stays = piece->file->mapping && !range->run; /* the mapping has the bytes side by side */
  return range->to || stays ? NULL : range->room;
}

static gm_status read_take(gm__read *read, gm__read_piece *piece, gm_error *err) {
  const gm__read_room *room = read_room(read, piece);
  if (!room) return GM_OK;
  gm_status status = GM_ERR_TIMEOUT;
  while (status == GM_ERR_TIMEOUT && !read_stops(read)) status = room->take(room->user, &piece->memory, err);
  if (status == GM_ERR_TIMEOUT) status = gm__fail(err, GM_ERR_CANCELLED, "read", "the read was cancelled");
  return status;
}

static void read_give(gm__read *read, gm__read_piece *piece) {
  const gm__read_room *room = read_room(read, piece);
  if (room && piece->memory.host) room->give(room->user, &piece->memory);
  piece->memory = (gm__read_memory){0};
}

/* The range with a byte of a piece; else the last one that begins before. */
static uint64_t read_range_at(const gm__read *read, const gm__read_piece *piece, uint64_t at) {
  uint64_t found = piece->first;
  for (uint64_t i = 1; i < piece->count && read->rows[piece->first + i].range.at <= at; i++) found = piece->first + i;
  return read->rows[found].number;
}

/* REQUIRES: read lock */
static void read_count(gm__read *read, const gm__read_run *run) {
  gm__read_figures *figures = &read->figures;
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < run->piece->count; i++) bytes += gm__read_row_part(read->rows, run->piece, i).bytes;
  bytes -= run->piece->far_bytes;
  figures->reads++;
  figures->far_bytes += run->piece->far_bytes;
  figures->direct_failures += run->direct_failures;
  if (run->piece->way == GM_WAY_CACHE) figures->cached_bytes += bytes;
  if (run->piece->way == GM_WAY_DIRECT) figures->direct_bytes += bytes;
  if (run->piece->way == GM_WAY_MAP) figures->mapped_bytes += bytes;
}

/* The slot arrives, or the read fails. REQUIRES: read lock */
static void read_settle(gm__read *read, read_slot *slot, const gm__read_run *run, gm_status status,
                        const gm_error *err) {
  read->under_way--;
  if (status == GM_OK) {
    read_count(read, run);
    slot->next = NULL;
    *read->end = slot;
    read->end = &slot->next;
  } else if (read->status == GM_OK) {
    read->status = status;
    read->failure = *err;
    read->failed_range = read_range_at(read, run->piece, run->failed_at);
  }
  gm__cond_broadcast(&read->arrived);
  if (read_is_over(read)) gm__cond_broadcast(&read->freed);
}

/* The disk has the piece. REQUIRES: its memory */
static gm_status read_at_disk(gm__read *read, gm__read_run *run, gm_error *err) {
  gm__mutex_lock(&read->lock);
  const uint64_t began = gm__now_ns();
  gm__read_pace_begin(&read->pace, began);
  gm__mutex_unlock(&read->lock);
  const gm_status status = gm__read_run_piece(run, err);
  gm__mutex_lock(&read->lock);
  gm__read_pace_end(&read->pace, run->piece->bytes, began, gm__now_ns());
  gm__cond_signal(&read->freed);
  gm__mutex_unlock(&read->lock);
  return status;
}

/* REQUIRES: read lock, which is given away meanwhile */
static void read_work_one(read_worker *worker, read_slot *slot) {
  gm__read *read = worker->read;
  gm_error err = {.status = GM_OK};
  gm__read_run run = {.rows = read->rows,
                      .piece = &slot->piece,
                      .bounce = worker->bounce,
                      .piece_bytes = read->piece_bytes,
                      .failed_at = slot->piece.at};
  gm__mutex_unlock(&read->lock);
  gm_status status = read_take(read, &slot->piece, &err);
  const bool taken = status == GM_OK;
  if (taken) status = read_at_disk(read, &run, &err);
  if (status == GM_OK && read->params.seen) read->params.seen(read->params.user, read, &slot->piece);
  if (status != GM_OK) read_give(read, &slot->piece);
  gm__mutex_lock(&read->lock);
  if (!worker->bounce && run.bounce) read->figures.host_bytes += read->piece_bytes;
  worker->bounce = run.bounce;
  if (!taken) gm__read_pace_drop(&read->pace, slot->piece.bytes);
  read_settle(read, slot, &run, status, &err);
}

static void read_work(void *arg) {
  read_worker *worker = arg;
  gm__read *read = worker->read;
  gm__mutex_lock(&read->lock);
  while (!read_is_over(read)) {
    read_slot *slot = read_claim(read);
    if (slot) {
      read_work_one(worker, slot);
    } else {
      gm__cond_wait(&read->freed, &read->lock);
    }
  }
  gm__mutex_unlock(&read->lock);
}

/* ---- the caller's side ---- */

static read_slot *read_pop(gm__read *read) {
  read_slot *slot = read->first;
  if (!slot) return NULL;
  read->first = slot->next;
  if (!read->first) read->end = &read->first;
  return slot;
}

/* Memory of pieces that nobody will get. REQUIRES: read lock, which is given away meanwhile; nothing under way */
static void read_drop(gm__read *read) {
  read_slot *slot = NULL;
  while ((slot = read_pop(read)) != NULL) {
    gm__mutex_unlock(&read->lock);
    read_give(read, &slot->piece);
    gm__mutex_lock(&read->lock);
  }
}

/* Whether the caller has its answer, in `status` and `out`. REQUIRES: read lock */
static bool read_answer(gm__read *read, gm__read_piece **out, gm_status *status, gm_error *err) {
  if (atomic_load(&read->cancelled) && read->status == GM_OK) {
    read->status = gm__fail(&read->failure, GM_ERR_CANCELLED, "read", "the read was cancelled");
  }
  if (read->status == GM_OK) {
    read_slot *slot = read_pop(read);
    *out = slot ? &slot->piece : NULL;
    *status = GM_OK;
    return slot || (read->row == read->row_count && !read->under_way);
  }
  if (read->under_way) return false;
  read_drop(read);
  if (err) *err = read->failure;
  *status = read->status;
  return true;
}

gm_status gm__read_next(gm__read *read, uint64_t timeout_ns, gm__read_piece **out, gm_error *err) {
  const uint64_t deadline = gm__deadline_after(timeout_ns);
  gm_status status = GM_OK;
  *out = NULL;
  gm__mutex_lock(&read->lock);
  while (!read_answer(read, out, &status, err)) {
    read_slot *slot = read->workers ? NULL : read_claim(read);
    if (slot) {
      read_work_one(&read->each[0], slot);
    } else if (!gm__cond_wait_until(&read->arrived, &read->lock, deadline) && !read->first) {
      status = gm__fail(err, GM_ERR_TIMEOUT, "read", "no piece has arrived in time");
      break;
    }
  }
  gm__mutex_unlock(&read->lock);
  return status;
}

gm__read_part gm__read_part_of(const gm__read *read, const gm__read_piece *piece, uint64_t index) {
  return gm__read_row_part(read->rows, piece, index);
}

const unsigned char *gm__read_part_data(const gm__read *read, const gm__read_piece *piece, uint64_t index) {
  const gm__read_range *range = &read->rows[piece->first + index].range;
  const gm__read_part part = gm__read_row_part(read->rows, piece, index);
  if (range->to) return range->to + part.from;
  return range->run ? piece->data : piece->data + (range->at + part.from - piece->at);
}

void gm__read_done(gm__read *read, gm__read_piece *piece) {
  gm__mutex_lock(&read->lock);
  ((read_slot *)piece)->taken = false;
  gm__cond_signal(&read->freed);
  gm__mutex_unlock(&read->lock);
}

uint64_t gm__read_failed_range(const gm__read *read) { return read->failed_range; }

void gm__read_cancel(gm__read *read) {
  gm__mutex_lock(&read->lock);
  atomic_store(&read->cancelled, true);
  gm__cond_broadcast(&read->freed);
  gm__cond_broadcast(&read->arrived);
  gm__mutex_unlock(&read->lock);
}

void gm__read_get_figures(gm__read *read, gm__read_figures *out) {
  gm__mutex_lock(&read->lock);
  *out = read->figures;
  gm__mutex_unlock(&read->lock);
}

/* ---- begin and end ---- */

static int read_by_place(const void *a, const void *b) {
  const gm__read_row *x = a, *y = b;
  if (x->range.order != y->range.order) return x->range.order < y->range.order ? -1 : 1;
  if (x->range.at != y->range.at) return x->range.at < y->range.at ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

/* The bytes of the file from the first byte of a range to its last one. */
static uint64_t read_extent(const gm__read_range *range) {
  if (!range->run) return range->bytes;
  return gm__add_sat(gm__mul_sat(range->bytes / range->run - 1, range->step), range->run);
}

static gm_status read_check(const gm__read_range *ranges, uint64_t count, gm_error *err) {
  if (count > UINT32_MAX) return gm__bad_argument(err, "read", "%llu ranges are too many", (unsigned long long)count);
  for (uint64_t i = 0; i < count; i++) {
    const gm_file *file = ranges[i].file;
    if (!ranges[i].bytes) continue;
    const uint64_t size = file->input.bytes, extent = read_extent(&ranges[i]);
    if (ranges[i].at <= size && extent <= size - ranges[i].at) continue;
    return gm__fail(err, GM_ERR_IO, "read", "%.300s: has %llu bytes, %llu bytes at %llu end behind it", file->path,
                    (unsigned long long)size, (unsigned long long)extent, (unsigned long long)ranges[i].at);
  }
  return GM_OK;
}

static gm_status read_make(const gm__read_range *ranges, uint64_t count, const gm_services *services, gm__read **out,
                           gm_error *err) {
  gm__read *read = gm__alloc(services, sizeof *read);
  gm__read_row *rows = read && count ? gm__alloc_array(services, (size_t)count, sizeof *rows) : NULL;
  if (!read || (count && !rows)) {
    gm__release(services, read, sizeof *read);
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "read", "no host memory for a plan of %llu ranges",
                    (unsigned long long)count);
  }
  read->services = services;
  read->rows = rows;
  read->row_room = count;
  for (uint64_t i = 0; i < count; i++) {
    if (ranges[i].bytes) rows[read->row_count++] = (gm__read_row){.range = ranges[i], .number = i};
  }
  if (rows) qsort(rows, (size_t)read->row_count, sizeof *rows, read_by_place);
  read->end = &read->first;
  read->figures.host_bytes = sizeof *read + count * sizeof *rows;
  gm__mutex_init(&read->lock, GM__RANK_LEAF);
  gm__cond_init(&read->freed);
  gm__cond_init(&read->arrived);
  *out = read;
  return GM_OK;
}

static uint64_t read_piece_bytes(uint64_t wanted) {
  if (!wanted || wanted > GM__READ_PIECE) return GM__READ_PIECE;
  return wanted < GM__INPUT_BLOCK ? GM__INPUT_BLOCK : wanted / GM__INPUT_BLOCK * GM__INPUT_BLOCK;
}

gm_status gm__read_start(const gm__read_range *ranges, uint64_t count, const gm__read_params *params, gm__read **out,
                         gm_error *err) {
  const gm_services *services = params->services ? params->services : gm__default_services();
  gm_status status = read_check(ranges, count, err);
  if (status == GM_OK) status = read_make(ranges, count, services, out, err);
  if (status != GM_OK) return status;
  gm__read *read = *out;
  const uint32_t wanted = params->workers < GM__READ_FLIGHT ? params->workers : GM__READ_FLIGHT;
  read->params = *params;
  read->piece_bytes = read_piece_bytes(params->piece_bytes);
  for (uint32_t i = 0; i < GM__READ_FLIGHT; i++) read->each[i].read = read;
  while (read->row_count && read->workers < wanted) {
    read_worker *worker = &read->each[read->workers];
    if (gm__thread_create(&worker->thread, "gm-read", read_work, worker, NULL) != GM_OK) break;
    read->workers++;
  }
  return GM_OK;
}

void gm__read_stop(gm__read *read) {
  gm__read_cancel(read);
  for (uint32_t i = 0; i < read->workers; i++) gm__thread_join(&read->each[i].thread);
  read->workers = 0;
}

/* The bytes of a row behind `from` have not arrived. */
static void read_reaches(const gm__read_row *row, uint64_t from, uint64_t *by_range) {
  if (row->range.run) from -= from % row->range.run;
  if (from < by_range[row->number]) by_range[row->number] = from;
}

void gm__read_reached(const gm__read *read, uint64_t *by_range) {
  for (uint64_t i = 0; i < read->row_count; i++) {
    const gm__read_row *row = &read->rows[i];
    by_range[row->number] = row->range.bytes;
    if (i >= read->row) read_reaches(row, i == read->row ? read->skip : 0, by_range);
  }
  for (uint32_t i = 0; i < GM__READ_FLIGHT; i++) {
    const gm__read_piece *piece = &read->slots[i].piece;
    for (uint64_t j = 0; j < piece->count && read->slots[i].taken; j++) {
      read_reaches(&read->rows[piece->first + j], j ? 0 : piece->skip, by_range);
    }
  }
}

void gm__read_end(gm__read *read) {
  if (!read) return;
  gm__read_stop(read);
  gm__mutex_lock(&read->lock);
  read_drop(read);
  gm__mutex_unlock(&read->lock);
  for (uint32_t i = 0; i < GM__READ_FLIGHT; i++) {
    if (read->each[i].bounce) gm__mapping_release(read->each[i].bounce, (size_t)read->piece_bytes);
  }
  gm__cond_destroy(&read->arrived);
  gm__cond_destroy(&read->freed);
  gm__mutex_destroy(&read->lock);
  const gm_services *services = read->services;
  gm__release(services, read->rows, (size_t)read->row_room * sizeof *read->rows);
  gm__release(services, read, sizeof *read);
}
