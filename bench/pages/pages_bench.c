/* gm_pages_bench: nanoseconds of calls of a page set, beside cells that are scanned.
 *
 *   gm_pages_bench [--pages N] [--rounds N] [--runs N]
 *   gm_pages_bench --requests FILE      how many sequences of a trace fit (requests.h)
 *
 * Each figure is the lowest of short samples, of which there are runs (7) times rounds (2000). In used order a set of N
 * pages (1000000) is taken whole, and given back in a random order. For the longest call, the runs repeat the same
 * calls. Each counts at its lowest, by the time of the thread. */
#include <gm/pages_all.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cells.h"
#include "requests.h"

enum { BATCH = 1024, FORK = 256, CELLS = 131072, CELLS_LIVE = 31, TOKENS = 4096 };

static uint32_t rounds = 2000, runs = 7, most = 1000000;

static uint64_t now_ns(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static void need(gm_status status, const gm_error *err) {
  if (!status) return;
  fprintf(stderr, "%s: %s\n", err->op, err->message);
  exit(1);
}

typedef struct scene {
  gm_pages *pages;
  uint32_t owner, other;
  gm_page taken[BATCH];
  gm_page_key keys[FORK];
  gm_error err;
} scene;

static void scene_open(scene *s, gm_context *ctx, uint32_t pages) {
  const gm_pages_params params = {.struct_size = sizeof params, .max_pages = pages};
  need(gm_pages_create(ctx, &params, &s->pages, &s->err), &s->err);
  need(gm_page_owner_open(s->pages, "sequence", &s->owner, &s->err), &s->err);
  need(gm_page_owner_open(s->pages, "other", &s->other, &s->err), &s->err);
}

static void scene_close(scene *s) {
  need(gm_page_owner_close(s->pages, s->owner, &s->err), &s->err);
  need(gm_page_owner_close(s->pages, s->other, &s->err), &s->err);
  need(gm_pages_destroy(s->pages, &s->err), &s->err);
}

/* Nanoseconds of one round, at the lowest: each sample is so short that other programs miss most of them. */
static double lowest(void (*round)(scene *s, uint32_t count), scene *s, uint32_t count) {
  const uint32_t each = BATCH / count;
  double best = 1e30;
  for (uint64_t sample = 0; sample < (uint64_t)rounds * runs; sample++) {
    const uint64_t start = now_ns();
    for (uint32_t i = 0; i < each; i++) round(s, count);
    const double ns = (double)(now_ns() - start) / each;
    if (ns < best) best = ns;
  }
  return best;
}

static void take_release(scene *s, uint32_t count) {
  need(gm_pages_take(s->pages, s->owner, count, 0, s->taken, NULL), &s->err);
  need(gm_pages_release(s->pages, s->owner, s->taken, count, NULL), &s->err);
}

static double share_ns, drop_ns; /* of one page, at the lowest */

/* Shares what the first owner holds, and releases it: each is measured for itself. */
static void share_release(scene *s, uint32_t count) {
  const uint64_t start = now_ns();
  need(gm_pages_share(s->pages, s->other, s->taken, count, NULL), &s->err);
  const uint64_t middle = now_ns();
  need(gm_pages_release(s->pages, s->other, s->taken, count, NULL), &s->err);
  const double share = (double)(middle - start) / count, drop = (double)(now_ns() - middle) / count;
  if (share < share_ns) share_ns = share;
  if (drop < drop_ns) drop_ns = drop;
}

static double fork_us, remove_us;

static void fork_remove(scene *s, uint32_t count) {
  (void)count;
  uint32_t child;
  need(gm_page_owner_open(s->pages, "child", &child, &s->err), &s->err);
  const uint64_t start = now_ns();
  need(gm_pages_fork(s->pages, s->owner, child, NULL), &s->err);
  const uint64_t middle = now_ns();
  need(gm_page_owner_close(s->pages, child, NULL), &s->err);
  const double forked = (double)(middle - start) / 1e3, gone = (double)(now_ns() - middle) / 1e3;
  if (forked < fork_us) fork_us = forked;
  if (gone < remove_us) remove_us = gone;
}

static double find_us;

static void find_release(scene *s, uint32_t count) {
  uint32_t found;
  const uint64_t start = now_ns();
  need(gm_pages_find(s->pages, s->other, s->keys, count, s->taken, &found, NULL), &s->err);
  const double us = (double)(now_ns() - start) / 1e3;
  if (found != count) exit(1);
  if (us < find_us) find_us = us;
  need(gm_pages_release(s->pages, s->other, s->taken, found, NULL), &s->err);
}

/* ---- cases ---- */

static void bench_take(gm_context *ctx, uint32_t pages) {
  scene s;
  scene_open(&s, ctx, pages);
  for (uint32_t count = 1; count <= BATCH; count *= count == 1 ? 64 : 16)
    printf("take + release, a page, batches of %4u: %8.1f ns\n", count, lowest(take_release, &s, count) / count);
  scene_close(&s);
}

static void bench_holds(gm_context *ctx, uint32_t pages) {
  scene s;
  scene_open(&s, ctx, pages);
  need(gm_pages_take(s.pages, s.owner, FORK, 0, s.taken, &s.err), &s.err);
  share_ns = drop_ns = fork_us = remove_us = 1e30;
  lowest(share_release, &s, FORK);
  printf("share, a page, batches of %d:          %8.1f ns\n", FORK, share_ns);
  printf("release of a shared page:              %8.1f ns\n", drop_ns);
  lowest(fork_remove, &s, FORK);
  printf("fork of %d tokens in pages of 16:     %8.2f us\n", TOKENS, fork_us);
  printf("removal of the fork:                   %8.2f us\n", remove_us);
  scene_close(&s);
}

static void bench_find(gm_context *ctx, uint32_t pages) {
  scene s;
  scene_open(&s, ctx, pages);
  need(gm_pages_take(s.pages, s.owner, FORK, 0, s.taken, &s.err), &s.err);
  for (uint32_t i = 0; i < FORK; i++) {
    s.keys[i] = (gm_page_key){i * UINT64_C(0x9e3779b97f4a7c15), i + UINT64_C(1)};
    need(gm_pages_set_key(s.pages, s.owner, s.taken[i], s.keys[i], 0, NULL, &s.err), &s.err);
  }
  find_us = 1e30;
  lowest(find_release, &s, FORK);
  printf("prefix of %d keys, held:              %8.2f us\n", FORK, find_us);
  need(gm_pages_release(s.pages, s.owner, s.taken, FORK, &s.err), &s.err);
  find_us = 1e30;
  lowest(find_release, &s, FORK);
  printf("prefix of %d keys, idle:              %8.2f us\n", FORK, find_us);
  scene_close(&s);
}

/* ---- the longest call ---- */

enum { STEP = 64 };

/* The time of this thread alone: other programs that interrupt it are not in it. */
static uint64_t own_ns(void) {
  struct timespec at;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* The lowest time of each call in turn, over all runs of the same calls. */
static uint32_t *call_ns, call_count;

static void call_ends(uint64_t start) {
  const uint32_t ns = (uint32_t)(own_ns() - start);
  if (!call_ns[call_count] || ns < call_ns[call_count]) call_ns[call_count] = ns;
  call_count++;
}

/* A shuffled list of the set's pages. */
static gm_page *shuffled(uint32_t pages) {
  gm_page *list = malloc(pages * sizeof *list);
  uint64_t state = 1;
  for (uint32_t i = 0; list && i < pages; i++) list[i] = i;
  for (uint32_t i = pages; list && i > 1; i--) {
    state = state * UINT64_C(6364136223846793005) + 1;
    const uint32_t other = (uint32_t)((state >> 33) % i);
    const gm_page page = list[i - 1];
    list[i - 1] = list[other];
    list[other] = page;
  }
  return list;
}

/* All pages come, are shared, and go in the order of the list. */
static void used_order(scene *s, const gm_page *order, uint32_t pages) {
  for (uint32_t i = 0; i < pages; i += STEP) {
    const uint64_t start = own_ns();
    need(gm_pages_take(s->pages, s->owner, STEP, 0, s->taken, NULL), &s->err);
    call_ends(start);
    const uint64_t next = own_ns();
    need(gm_pages_share(s->pages, s->other, s->taken, STEP, NULL), &s->err);
    call_ends(next);
  }
  for (uint32_t i = 0; i < pages; i += STEP) {
    const uint64_t start = own_ns();
    need(gm_pages_release(s->pages, s->owner, order + i, STEP, &s->err), &s->err);
    call_ends(start);
    const uint64_t next = own_ns();
    need(gm_pages_release(s->pages, s->other, order + i, STEP, &s->err), &s->err);
    call_ends(next);
  }
}

/* Without clocks in between, and without shares. */
static double used_order_ns(scene *s, const gm_page *order, uint32_t pages) {
  const uint64_t start = own_ns();
  for (uint32_t i = 0; i < pages; i += STEP) need(gm_pages_take(s->pages, s->owner, STEP, 0, s->taken, NULL), &s->err);
  for (uint32_t i = 0; i < pages; i += STEP)
    need(gm_pages_release(s->pages, s->owner, order + i, STEP, &s->err), &s->err);
  return (double)(own_ns() - start) / pages;
}

static void bench_used(gm_context *ctx, const gm_page *order, uint32_t pages) {
  scene s;
  double best = 1e30;
  scene_open(&s, ctx, pages);
  for (uint32_t run = 0; run < runs; run++) {
    const double ns = used_order_ns(&s, order, pages);
    if (ns < best) best = ns;
  }
  printf("\n%u pages in used order, batches of %d\n", pages, STEP);
  printf("take + release, a page:                %8.1f ns\n", best);
  scene_close(&s);
}

static void bench_longest(gm_context *ctx, const gm_page *order, uint32_t pages) {
  enum { TURNS = 2, CALLS = 4 };
  uint32_t longest = 0;
  call_ns = calloc((size_t)TURNS * CALLS * pages / STEP, sizeof *call_ns);
  if (!call_ns) exit(1);
  for (uint32_t run = 0; run < runs; run++) {
    scene s;
    scene_open(&s, ctx, pages);
    call_count = 0;
    for (int turn = 0; turn < TURNS; turn++) used_order(&s, order, pages);
    scene_close(&s);
  }
  for (uint32_t i = 0; i < call_count; i++) longest = call_ns[i] > longest ? call_ns[i] : longest;
  printf("longest call of %u, shares too:     %8.1f us\n", call_count, longest / 1e3);
  free(call_ns);
}

static void bench_many(gm_context *ctx, uint32_t pages) {
  pages = (pages + STEP - 1) / STEP * STEP;
  gm_page *order = shuffled(pages);
  if (!order) exit(1);
  bench_used(ctx, order, pages);
  bench_longest(ctx, order, pages);
  free(order);
}

/* ---- cells ---- */

static void bench_cells(void) {
  cells c;
  double forked = 1e30, gone = 1e30, taken = 1e30;
  if (!cells_open(&c, CELLS)) exit(1);
  for (uint32_t i = 0; i < CELLS_LIVE; i++) cells_take(&c, i, TOKENS);
  for (uint32_t run = 0; run < runs; run++) {
    const uint64_t start = now_ns();
    cells_fork(&c, 0, CELLS_LIVE);
    const uint64_t middle = now_ns();
    cells_remove(&c, CELLS_LIVE);
    const uint64_t end = now_ns();
    cells_take(&c, CELLS_LIVE, TOKENS);
    const uint64_t last = now_ns();
    cells_remove(&c, CELLS_LIVE);
    if ((double)(middle - start) < forked) forked = (double)(middle - start);
    if ((double)(end - middle) < gone) gone = (double)(end - middle);
    if ((double)(last - end) < taken) taken = (double)(last - end);
  }
  printf("cells: fork of %d tokens:             %8.2f us\n", TOKENS, forked / 1e3);
  printf("cells: removal of the fork:            %8.2f us\n", gone / 1e3);
  printf("cells: take, a token:                  %8.1f ns\n", taken / TOKENS);
  cells_close(&c);
}

static uint32_t number_of(const char *text) {
  char *end;
  const unsigned long number = strtoul(text, &end, 10);
  if (*end || !number || number > GM_PAGES_MOST) {
    fprintf(stderr, "usage: gm_pages_bench [--pages N] [--rounds N] [--runs N]\n");
    exit(2);
  }
  return (uint32_t)number;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "--requests") == 0) return requests_play(argv[2]);
  for (int i = 1; i < argc; i += 2) {
    const uint32_t number = number_of(i + 1 < argc ? argv[i + 1] : "");
    *(strcmp(argv[i], "--pages") == 0 ? &most : strcmp(argv[i], "--rounds") == 0 ? &rounds : &runs) = number;
  }
  gm_error err;
  gm_context *ctx;
  const uint32_t pages = most < 20000 ? most : 20000;
  need(gm_context_create(NULL, &ctx, &err), &err);
  printf("%u pages\n", pages);
  bench_take(ctx, pages);
  bench_holds(ctx, pages);
  bench_find(ctx, pages);
  bench_many(ctx, most);
  printf("\n%d cells of a token, %d sequences of %d\n", CELLS, CELLS_LIVE, TOKENS);
  bench_cells();
  need(gm_context_destroy(ctx, &err), &err);
  return 0;
}
