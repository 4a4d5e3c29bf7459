#include "bench/card/card_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/card/card_row.h"
#include "bench/gpu/gpu_facts.h"
#include "bench/measure/ticks.h"

#define ROW_NS UINT64_C(12000000000) /* after so long a row begins no further round */
enum { ROUNDS_MOST = 99 };

typedef struct rows_figure {
  double ns[ROUNDS_MOST], ratio[ROUNDS_MOST];
  uint64_t failed, taken_bytes, calls;
} rows_figure;

static int rows_compare(const void *one, const void *other) {
  const double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

static double rows_median(double *values, unsigned count) {
  qsort(values, count, sizeof *values, rows_compare);
  return values[count / 2];
}

static void rows_once(card *self, const card_row *row, const card_peer *peer, card_run *run, unsigned round,
                      rows_figure *figure) {
  run->peer = peer;
  run->free_bytes = card_driver_free_bytes(&self->driver);
  card_row_run(row, run);
  const uint64_t after = card_driver_free_bytes(&self->driver);
  const uint64_t taken = run->free_bytes > after ? run->free_bytes - after : 0;
  if (peer->tidy) peer->tidy(peer);
  figure->ns[round] = run->calls ? (double)run->ns / (double)run->calls : 0;
  figure->ratio[round] = run->ns ? (double)run->first_ns / (double)run->ns : 0;
  figure->failed += run->failed;
  figure->calls += run->calls;
  if (taken > figure->taken_bytes) figure->taken_bytes = taken;
}

static void rows_write(FILE *out, const card_row *row, const card_peer *peer, rows_figure *figure, unsigned rounds) {
  const double median = rows_median(figure->ns, rounds); /* sorts */
  fprintf(out, "{\"peer\": \"%s\", \"ns\": %.1f, \"least_ns\": %.1f, \"most_ns\": %.1f", peer->name, median,
          figure->ns[0], figure->ns[rounds - 1]);
  if (row == &card_rows[CARD_ROWS - 1])
    fprintf(out, ", \"first_over_later\": %.2f", rows_median(figure->ratio, rounds));
  fprintf(out, ", \"calls\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"kept_bytes\": %" PRIu64 "}", figure->calls,
          figure->failed, figure->taken_bytes);
}

/* Each round begins with another allocator. */
static void rows_row(card *self, const card_row *row, card_run *run, unsigned rounds, FILE *out) {
  rows_figure *figures = calloc(CARD_PEERS, sizeof *figures);
  if (!figures) return;
  const uint64_t begin = ticks_ns();
  unsigned done = 0;
  for (; done < rounds && (done == 0 || ticks_ns() - begin < ROW_NS); done++) {
    for (size_t i = 0; i < self->peer_count; i++) {
      const size_t which = (done + i) % self->peer_count;
      rows_once(self, row, &self->peers[which], run, done, &figures[which]);
    }
  }
  fprintf(out, "{\"name\": \"%s\", \"what\": \"%s\", \"rounds\": %u, \"peers\": [", row->name, row->what, done);
  for (size_t i = 0; i < self->peer_count; i++) {
    fputs(i ? ", " : "", out);
    rows_write(out, row, &self->peers[i], &figures[i], done);
  }
  fputs("]}", out);
  free(figures);
}

static void rows_all(card *self, const bench_events *trace, unsigned rounds, FILE *out) {
  const size_t slots = trace->slots > CARD_SLOTS ? trace->slots : CARD_SLOTS;
  card_run run = {.trace = trace, .slots = slots};
  run.blocks = calloc(slots, sizeof *run.blocks);
  run.bytes = calloc(slots, sizeof *run.bytes);
  fputs("{\"device\": {", out);
  gpu_facts_device(out, self->device);
  fprintf(out, "},\n  \"unit\": \"ns per call\", \"rows\": [");
  for (int i = 0; run.blocks && run.bytes && i < CARD_ROWS; i++) {
    fputs(i ? ",\n    " : "\n    ", out);
    rows_row(self, &card_rows[i], &run, rounds, out);
  }
  fputs("]}\n", out);
  free(run.blocks);
  free(run.bytes);
}

int gm_card_rows(const gm_card_torch *torch, const char *traces, unsigned rounds, int descriptor) {
  char path[4096];
  card self;
  bench_events trace = {.count = 0};
  if (rounds < 1 || rounds > ROUNDS_MOST) rounds = 1;
  snprintf(path, sizeof path, "%s/multistream_gpt2_bert_3s.gmtrace", traces);
  const char *why = card_open(&self, torch);
  int result = why ? 77 : bench_events_read(path, &trace) == 0 ? 0 : 1;
  const int copy = result ? -1 : dup(descriptor);
  FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
  if (out) rows_all(&self, &trace, rounds, out);
  if (!result && (!out || fclose(out) != 0)) result = 1;
  if (why) fprintf(stderr, "gm_card_rows: %s\n", why);
  bench_events_free(&trace);
  card_close(&self);
  return result;
}
