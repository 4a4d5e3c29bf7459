#include "tools/gmem/bench/bench_transfer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gm/size.h"
#include "gm/transfer.h"
#include "tools/gmem/output/progress.h"
#include "tools/gmem/output/table.h"

enum { SMALL_COUNT = 1000, SMALL_BYTES = 400, SMALL_STEP = 1000, WAYS = 2, CASES = 8 };

/* The device's memory and the host's, one for each way: both go at a time. */
typedef struct transfer_bench {
  const transfer_plan *plan;
  session *self;
  bench_rows *rows;
  gm_transfer_links links;
  unsigned char *host[WAYS];
  gm_block block[WAYS];
  gm_stream *streams[WAYS]; /* NULL: gm makes none on this device */
  uint64_t bytes;
  int cases;
} transfer_bench;

typedef struct transfer_turn {
  double seconds;
  gm_transfer_stats stats; /* of the last transfer */
} transfer_turn;

static double bench_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static gm_copy bench_copy(const transfer_bench *b, int down, uint64_t at, uint64_t bytes) {
  const gm_end device = {.pool = b->self->pool, .block = &b->block[down], .offset = at};
  const gm_end host = {.host = b->host[down], .offset = at};
  return (gm_copy){
      .struct_size = sizeof(gm_copy), .to = down ? host : device, .from = down ? device : host, .bytes = bytes};
}

/* ---- one turn ---- */

/* Starts a transfer for each way that is asked for, and waits for all. */
static gm_status turn_large(const transfer_bench *b, const bool ways[WAYS], transfer_turn *out, gm_error *err) {
  gm_transfer *transfers[WAYS] = {NULL};
  const double begun = bench_now();
  gm_status status = GM_OK;
  out->stats = (gm_transfer_stats){.struct_size = sizeof out->stats};
  for (int i = 0; i < WAYS && status == GM_OK; i++) {
    const gm_copy copy = bench_copy(b, i, 0, b->bytes);
    const gm_transfer_params params = {.struct_size = sizeof params, .stream = b->streams[i]};
    if (ways[i]) status = gm_transfer_start(b->self->device, &copy, 1, &params, &transfers[i], err);
  }
  for (int i = 0; i < WAYS && status == GM_OK; i++) {
    if (ways[i]) status = gm_transfer_wait(transfers[i], UINT64_MAX, &out->stats, err);
  }
  out->seconds = bench_now() - begun;
  for (int i = 0; i < WAYS; i++) gm_transfer_release(transfers[i], NULL);
  return status;
}

static gm_status turn_small(const transfer_bench *b, transfer_turn *out, gm_error *err) {
  static gm_copy copies[SMALL_COUNT];
  gm_transfer *transfer = NULL;
  for (uint64_t i = 0; i < SMALL_COUNT; i++) copies[i] = bench_copy(b, 0, i * SMALL_STEP, SMALL_BYTES);
  const double begun = bench_now();
  out->stats = (gm_transfer_stats){.struct_size = sizeof out->stats};
  gm_status status = gm_transfer_start(b->self->device, copies, SMALL_COUNT, NULL, &transfer, err);
  if (status == GM_OK) status = gm_transfer_wait(transfer, UINT64_MAX, &out->stats, err);
  out->seconds = bench_now() - begun;
  gm_transfer_release(transfer, NULL);
  return status;
}

/* Without a transfer. Each copy waits, or the host waits once at the end. */
static gm_status turn_apart(const transfer_bench *b, bool waits, transfer_turn *out, gm_error *err) {
  gm_stream *stream = waits ? NULL : b->streams[0];
  gm_point point = {0};
  gm_status status = waits || stream ? GM_OK : GM_ERR_NOT_SUPPORTED;
  const double begun = bench_now();
  for (uint64_t i = 0; i < SMALL_COUNT && status == GM_OK; i++) {
    gm_point_release(b->self->device, &point);
    point = (gm_point){0};
    status = gm_block_write(b->self->pool, &b->block[0], i * SMALL_STEP, b->host[0] + i * SMALL_STEP, SMALL_BYTES,
                            stream, stream ? &point : NULL, err);
  }
  if (status == GM_OK && stream) status = gm_stream_sync(stream, err);
  gm_point_release(b->self->device, &point);
  out->seconds = bench_now() - begun;
  return status;
}

typedef enum turn_kind { TURN_UP, TURN_DOWN, TURN_BOTH, TURN_SMALL, TURN_EACH_WAITS, TURN_ONE_WAIT } turn_kind;

static gm_status turn_run(const transfer_bench *b, turn_kind kind, transfer_turn *out, gm_error *err) {
  const bool ways[WAYS] = {kind == TURN_UP || kind == TURN_BOTH, kind == TURN_DOWN || kind == TURN_BOTH};
  if (kind <= TURN_BOTH) return turn_large(b, ways, out, err);
  return kind == TURN_SMALL ? turn_small(b, out, err) : turn_apart(b, kind == TURN_EACH_WAITS, out, err);
}

/* The fastest turn. NOT_SUPPORTED is no failure: its time is unknown. */
static gm_status turn_best(const transfer_bench *b, turn_kind kind, transfer_turn *best, gm_error *err) {
  transfer_turn turn;
  *best = (transfer_turn){.seconds = (double)NAN};
  for (uint32_t i = 0; i <= b->plan->runs; i++) { /* the first one makes the slots */
    const gm_status status = turn_run(b, kind, &turn, err);
    if (status == GM_ERR_NOT_SUPPORTED) return GM_OK;
    if (status != GM_OK) return status;
    if (i && !(best->seconds <= turn.seconds)) *best = turn;
  }
  return GM_OK;
}

/* ---- rows ---- */

static gm_status row_add(transfer_bench *b, const bench_row *row, gm_error *err) {
  progress_show("case", (uint64_t)++b->cases, CASES);
  if (bench_rows_add(b->rows, row)) return GM_OK;
  *err = (gm_error){.status = GM_ERR_OUT_OF_HOST_MEMORY, .message = "no host memory for the figures"};
  return err->status;
}

static bench_row row_of(const char *name, const char *unit, const char *peer) {
  bench_row row = {.value = (double)NAN,
                   .peer_value = (double)NAN,
                   .utilisation = (double)NAN,
                   .overhead = (double)NAN,
                   .overlap = (double)NAN,
                   .useful = (double)NAN};
  snprintf(row.group, sizeof row.group, "transfer");
  snprintf(row.name, sizeof row.name, "%s", name);
  snprintf(row.unit, sizeof row.unit, "%s", unit);
  snprintf(row.peer, sizeof row.peer, "%s", peer);
  return row;
}

/* Bytes per second, beside what the link can do. */
static gm_status row_large(transfer_bench *b, turn_kind kind, const char *memory, bool possible, gm_error *err) {
  static const char *const names[] = {"up", "down", "both ways"};
  char name[64];
  transfer_turn best = {.seconds = (double)NAN};
  const double up = (double)b->bytes / b->links.up, down = (double)b->bytes / b->links.down;
  const double needed = kind == TURN_UP ? up : kind == TURN_DOWN ? down : fmax(up, down);
  const double moved = (double)b->bytes * (kind == TURN_BOTH ? 2 : 1);
  snprintf(name, sizeof name, "%s, %s", names[kind], memory);
  bench_row row = row_of(name, "GB/s", "link");
  gm_status status = possible ? turn_best(b, kind, &best, err) : GM_OK;
  if (status != GM_OK) return status;
  row.value = moved / best.seconds * 1e-9;
  row.peer_value = moved / needed * 1e-9;
  row.utilisation = needed / best.seconds;
  row.useful = isnan(best.seconds) ? (double)NAN : moved;
  if (!isnan(best.seconds) && kind != TURN_BOTH) row.overhead = best.stats.overhead;
  if (kind == TURN_BOTH) row.overlap = fmax(0, fmin(1, (up + down - best.seconds) / fmin(up, down)));
  if (isnan(best.seconds)) row.overlap = (double)NAN;
  return row_add(b, &row, err);
}

static gm_status row_small(transfer_bench *b, turn_kind peer, const char *peer_name, gm_error *err) {
  transfer_turn best, other;
  char name[64];
  snprintf(name, sizeof name, "%d x %d B up", SMALL_COUNT, SMALL_BYTES);
  bench_row row = row_of(name, "us", peer_name);
  gm_status status = turn_best(b, TURN_SMALL, &best, err);
  if (status == GM_OK) status = turn_best(b, peer, &other, err);
  if (status != GM_OK) return status;
  row.value = best.seconds * 1e6;
  row.peer_value = other.seconds * 1e6;
  row.utilisation = SMALL_COUNT * SMALL_BYTES / b->links.up / best.seconds;
  row.overhead = best.stats.overhead;
  row.useful = (double)best.stats.useful_bytes;
  return row_add(b, &row, err);
}

static bool bench_pin(const transfer_bench *b) {
  for (int i = 0; i < WAYS; i++) {
    if (gm_host_register(b->self->device, b->host[i], b->bytes, NULL) == GM_OK) continue;
    if (i) (void)gm_host_unregister(b->self->device, b->host[0], NULL);
    return false;
  }
  return true;
}

static gm_status bench_cases(transfer_bench *b, gm_error *err) {
  gm_status status = GM_OK;
  for (int kind = TURN_UP; kind <= TURN_BOTH && status == GM_OK; kind++) {
    status = row_large(b, (turn_kind)kind, "pageable", kind != TURN_BOTH || b->streams[1], err);
  }
  const bool pinned = status == GM_OK && bench_pin(b);
  for (int kind = TURN_UP; kind <= TURN_BOTH && status == GM_OK; kind++) {
    status = row_large(b, (turn_kind)kind, "pinned", pinned && (kind != TURN_BOTH || b->streams[1]), err);
  }
  for (int i = 0; i < WAYS && pinned; i++) (void)gm_host_unregister(b->self->device, b->host[i], NULL);
  if (status == GM_OK) status = row_small(b, TURN_EACH_WAITS, "each waits", err);
  if (status == GM_OK) status = row_small(b, TURN_ONE_WAIT, "one wait at the end", err);
  progress_clear();
  return status;
}

/* ---- its life ---- */

static gm_status bench_no_block(const transfer_bench *b, gm_acquire answer, gm_error *err) {
  *err = (gm_error){.status = GM_ERR_OUT_OF_DEVICE_MEMORY};
  snprintf(err->message, sizeof err->message, "no block of %llu bytes on the device: %s", (unsigned long long)b->bytes,
           gm_acquire_name(answer));
  return err->status;
}

static gm_status bench_take(transfer_bench *b, gm_error *err) {
  const gm_request request = {.bytes = b->bytes};
  for (int i = 0; i < WAYS; i++) {
    const gm_acquire answer = gm_alloc(b->self->pool, &request, &b->block[i]);
    if (!gm_acquired(answer)) return bench_no_block(b, answer, err);
    b->host[i] = aligned_alloc(4096, b->bytes);
    if (b->host[i]) {
      memset(b->host[i], i + 1, b->bytes);
      continue;
    }
    *err = (gm_error){.status = GM_ERR_OUT_OF_HOST_MEMORY, .message = "no host memory to copy from"};
    return err->status;
  }
  for (int i = 0; i < WAYS; i++) (void)gm_stream_create(b->self->device, &b->streams[i], NULL);
  return GM_OK;
}

static void bench_give(transfer_bench *b) {
  for (int i = 0; i < WAYS; i++) {
    gm_stream_close(b->streams[i], NULL);
    if (b->block[i].bytes) gm_free(b->self->pool, &b->block[i], NULL);
    free(b->host[i]);
  }
}

gm_status bench_transfer_run(const transfer_plan *plan, session *self, bench_rows *rows, gm_error *err) {
  transfer_bench b = {.plan = plan, .self = self, .rows = rows, .links = {.struct_size = sizeof b.links}};
  const uint64_t least = (uint64_t)SMALL_COUNT * SMALL_STEP;
  b.bytes = plan->bytes < least ? least : plan->bytes;
  b.bytes = (b.bytes + 4095) / 4096 * 4096;
  gm_status status = session_begin(self, NULL, err);
  if (status == GM_OK) status = session_open(self, &plan->choice, 2 * b.bytes, err);
  if (status == GM_OK) status = gm_pool_create(self->device, NULL, &self->pool, err);
  if (status == GM_OK) status = gm_transfer_measure_again(self->device, &b.links, err);
  if (status == GM_OK) status = bench_take(&b, err);
  if (status == GM_OK) status = bench_cases(&b, err);
  bench_give(&b);
  return status;
}

static void cell_number(table *rows, const char *format, double value) {
  if (isnan(value)) {
    table_cell(rows, "-");
  } else {
    table_cell(rows, format, value);
  }
}

void bench_transfer_text(const bench_rows *rows, const gm_device_info *info, FILE *file) {
  static const char *const heads[] = {"case", "gm", "unit", "beside", "that", "of the link", "overhead", "overlap"};
  table out = {.rows = 0};
  fprintf(file, "%s %u (%s)%s\n", info->backend, info->index, info->name, info->simulated ? ", simulated" : "");
  table_row(&out);
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) table_cell(&out, "%s", heads[i]);
  for (size_t i = 0; i < rows->count; i++) {
    const bench_row *row = &rows->list[i];
    if (strcmp(row->group, "transfer") != 0) continue;
    table_row(&out);
    table_cell(&out, "%s", row->name);
    cell_number(&out, "%.2f", row->value);
    table_cell(&out, "%s", row->unit);
    table_cell(&out, "%s", row->peer);
    cell_number(&out, "%.2f", row->peer_value);
    cell_number(&out, "%.0f %%", row->utilisation * 100);
    cell_number(&out, "%.0f %%", row->overhead * 100);
    cell_number(&out, "%.0f %%", row->overlap * 100);
  }
  table_print(&out, file);
}
