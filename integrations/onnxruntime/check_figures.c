#include "check_figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WAYS = 3, ROUNDS = 9, RUNS = 12, LARGEST = 16 };

/* Processor time is counted, since the machine may be busy. A session with one thread computes in the caller's. */
static double seconds(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Batches of 1 to LARGEST, in the order that a seeded generator gives. */
static bool run_some(const check_session *session, unsigned seed, double *least) {
  const double begin = seconds();
  for (unsigned i = 0; i < RUNS; i++) {
    size_t count;
    seed = seed * 1664525u + 1013904223u;
    float *output = check_run(session, 1 + (seed >> 16) % LARGEST, i, &count);
    if (!output) return false;
    free(output);
  }
  const double time = (seconds() - begin) / RUNS;
  if (*least == 0 || time < *least) *least = time;
  return true;
}

static void print_row(const char *name, long long calls, long long bytes, double time) {
  printf("  %-22s", name);
  calls < 0 ? printf("%14s", "-") : printf("%14lld", calls);
  bytes < 0 ? printf("%12s", "-") : printf("%12.1f", (double)bytes / (1 << 20));
  printf("%12.2f\n", time * 1e3);
}

/* The rounds of the three take turns, so that a busy moment of the machine meets all of them. Each has the same
 * batches.
 */
static bool run_all(const check_session sessions[WAYS], double times[WAYS]) {
  for (unsigned i = 0; i < ROUNDS * WAYS; i++)
    if (!run_some(&sessions[i % WAYS], 7, &times[i % WAYS])) return false;
  return true;
}

bool check_figures_print(const check_ort *on, const check_model *model, gm_pool *pool) {
  static const char *const names[WAYS] = {"its arena", "no arena", "gm"};
  const check_choice ways[WAYS] = {{.threads = 1}, {.no_arena = true}, {.env_allocators = true}};
  check_session sessions[WAYS] = {{NULL, NULL, NULL}};
  double times[WAYS] = {0};
  bool right = true;
  (void)gm_pool_trim(pool, 0);
  gm_stats before = {.struct_size = sizeof before}, after = before;
  (void)gm_pool_stats(pool, &before);
  for (unsigned i = 0; i < WAYS && right; i++) right = check_session_open(&sessions[i], on, model, &ways[i]);
  right = right && run_all(sessions, times);
  (void)gm_pool_stats(pool, &after);
  if (right) {
    printf("  %-22s%14s%12s%12s\n", model->name, "driver calls", "MiB held", "CPU ms/run");
    const long long extended = check_figure(&sessions[0], "NumArenaExtensions");
    const long long reserved = check_figure(&sessions[0], "NumReserves");
    print_row(names[0], extended < 0 ? -1 : extended + reserved, check_figure(&sessions[0], "TotalAllocated"),
              times[0]);
    print_row(names[1], -1, -1, times[1]);
    print_row(names[2], (long long)(after.driver_allocs - before.driver_allocs), (long long)after.reserved_bytes,
              times[2]);
  }
  for (unsigned i = 0; i < WAYS; i++) check_session_close(&sessions[i]);
  return right;
}
