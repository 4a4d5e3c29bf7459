/* Invariants: in each pass every allocator runs once, one after the other, so that all see the same machine. A case
 * runs once, however many groups read figures from it. */
#include "tools/gmem/bench/bench_groups.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/gmem/output/progress.h"
#include "tools/gmem/replay/replay_capacity.h"

enum {
  GROUP_PAIR,
  GROUP_RANDOM,
  GROUP_CROSS,
  GROUP_TRACE,
  GROUP_LATENCY,
  GROUP_UNSIZED,
  GROUP_CALLS,
  GROUP_RESERVED,
  GROUP_CAPACITY,
  GROUP_NOVMM,
  GROUP_METADATA,
  GROUP_TRACKING,
  GROUP_RECORDING,
  GROUP_TRANSFER = BENCH_GROUP_TRANSFER
};

const char *const bench_group_names[] = {"pair",     "random",   "cross",     "trace",    "latency",
                                         "unsized",  "calls",    "reserved",  "capacity", "novmm",
                                         "metadata", "tracking", "recording", "transfer", NULL};

enum { GROUP_ALLOCATORS = BENCH_PEERS + 1, GROUP_ARGUMENTS = 12, GROUP_NUMBER = 16 };

/* gm first. */
typedef struct group_values {
  double of[GROUP_ALLOCATORS];
} group_values;

typedef struct group_figures {
  harness_figures of[GROUP_ALLOCATORS];
} group_figures;

typedef struct group_work {
  const bench_plan *plan;
  bench_rows *rows;
  group_figures figures; /* of the case at hand */
  bool no_memory, measured;
} group_work;

static const harness_allocator *group_allocator(const bench_plan *plan, size_t number) {
  return number == 0 ? &plan->subject : &plan->peers->list[number - 1];
}

static bool group_asked(const bench_plan *plan, unsigned group) { return plan->groups >> group & 1; }

/* ---- rows ---- */

/* gm's value beside each peer's; one row alone where there is no peer. */
static void group_add(group_work *work, unsigned group, const char *name, const char *unit,
                      const group_values *values) {
  bench_row row = {.value = values->of[0], .peer_value = (double)NAN};
  size_t peers = work->plan->peers->count;
  snprintf(row.group, sizeof row.group, "%s", bench_group_names[group]);
  snprintf(row.name, sizeof row.name, "%s", name);
  snprintf(row.unit, sizeof row.unit, "%s", unit);
  if (peers == 0) work->no_memory |= !bench_rows_add(work->rows, &row);
  for (size_t i = 0; i < peers; i++) {
    row.peer_value = values->of[i + 1];
    snprintf(row.peer, sizeof row.peer, "%s", work->plan->peers->list[i].label);
    work->no_memory |= !bench_rows_add(work->rows, &row);
  }
}

/* A figure of the case at hand, divided by another of the same allocator if `by` is given; unknown where an allocation
 * failed. */
static group_values group_values_of(const group_work *work, const char *figure, const char *by) {
  group_values values;
  for (size_t i = 0; i <= work->plan->peers->count; i++) {
    const harness_figures *figures = &work->figures.of[i];
    double failed = fmax(harness_figure(figures, "failed"), harness_figure(figures, "warm_failed"));
    double value = harness_figure(figures, figure) / (by ? harness_figure(figures, by) : 1);
    values.of[i] = failed > 0 ? (double)NAN : value;
  }
  return values;
}

static void group_add_figure(group_work *work, unsigned group, const char *name, const char *unit, const char *figure) {
  group_values values = group_values_of(work, figure, NULL);
  group_add(work, group, name, unit, &values);
}

/* Over all traces: unknown when one is, or is 0. */
static void group_add_mean(group_work *work, unsigned group, const char *name, const char *unit,
                           const group_values *list) {
  group_values means;
  size_t count = work->plan->trace_count;
  if (count == 0) return;
  for (size_t i = 0; i <= work->plan->peers->count; i++) {
    double sum = 0;
    for (size_t trace = 0; trace < count; trace++) sum += log(list[trace].of[i]);
    means.of[i] = isfinite(sum) ? exp(sum / (double)count) : (double)NAN;
  }
  group_add(work, group, name, unit, &means);
}

/* ---- running ---- */

static void group_measure_one(group_work *work, size_t number, const char *const *arguments) {
  harness_figures figures;
  if (!harness_run(group_allocator(work->plan, number), arguments, 0, &figures)) return;
  harness_merge(&work->figures.of[number], &figures);
  work->measured |= number == 0;
}

/* `traces`: not the allocators without a device. */
static void group_measure(group_work *work, const char *const *arguments, bool traces) {
  work->figures = (group_figures){.of = {{.count = 0}}};
  for (uint32_t pass = 0; pass < work->plan->passes; pass++) {
    for (size_t i = 0; i <= work->plan->peers->count; i++) {
      if (!traces || !group_allocator(work->plan, i)->loops_only) group_measure_one(work, i, arguments);
    }
  }
}

/* ---- micro ---- */

static void group_micro_case(group_work *work, unsigned group, unsigned threads, const char *what) {
  char number[3][GROUP_NUMBER], name[96];
  snprintf(number[0], GROUP_NUMBER, "%u", threads);
  snprintf(number[1], GROUP_NUMBER, "%u", work->plan->runs);
  snprintf(number[2], GROUP_NUMBER, "%u", work->plan->pairs);
  const char *const arguments[] = {
      "--micro", bench_group_names[group], "--threads", number[0], "--runs", number[1], "--pairs", number[2], NULL};
  group_measure(work, arguments, false);
  snprintf(name, sizeof name, "%s, %u thread%s", what, threads, threads > 1 ? "s" : "");
  group_add_figure(work, group, name, "ns/event", "ns_per_event");
  if (group != GROUP_PAIR || threads > 1) return;
  group_add_figure(work, group, "1 MiB, allocation, p50", "ns", "alloc_p50");
  group_add_figure(work, group, "1 MiB, allocation, p99", "ns", "alloc_p99");
  group_add_figure(work, group, "1 MiB, free, p50", "ns", "free_p50");
  group_add_figure(work, group, "1 MiB, free, p99", "ns", "free_p99");
}

static void group_micro(group_work *work) {
  for (unsigned threads = 1; threads <= 4; threads *= 2) {
    if (group_asked(work->plan, GROUP_PAIR)) group_micro_case(work, GROUP_PAIR, threads, "1 MiB");
  }
  for (unsigned threads = 1; threads <= 4; threads *= 2) {
    if (group_asked(work->plan, GROUP_RANDOM)) {
      group_micro_case(work, GROUP_RANDOM, threads, "4 KiB to 64 MiB, 1000 live");
    }
  }
  if (group_asked(work->plan, GROUP_CROSS)) group_micro_case(work, GROUP_CROSS, 2, "1 MiB, freed by the other");
}

/* ---- traces ---- */

/* One figure of every trace: a row each and their mean. */
typedef struct group_column {
  unsigned group;
  const char *what, *unit, *figure, *by;
} group_column;

static const group_column group_columns[] = {{GROUP_TRACE, "warm", "ns/event", "warm_ns", NULL},
                                             {GROUP_LATENCY, "allocation, p50", "ns", "alloc_p50", NULL},
                                             {GROUP_LATENCY, "allocation, p99", "ns", "alloc_p99", NULL},
                                             {GROUP_LATENCY, "free, p50", "ns", "free_p50", NULL},
                                             {GROUP_LATENCY, "free, p99", "ns", "free_p99", NULL},
                                             {GROUP_CALLS, "cold", "calls", "calls_cold", NULL},
                                             {GROUP_CALLS, "warm", "calls", "calls_warm", NULL},
                                             {GROUP_RESERVED, "cold", "peak live", "reserved_cold", "peak_live"},
                                             {GROUP_RESERVED, "all runs", "peak live", "reserved_peak", "peak_live"}};

enum { GROUP_COLUMNS = sizeof group_columns / sizeof *group_columns };

/* "resnet50_train" of "bench/traces/resnet50_train.gmtrace.gz". */
static void group_trace_name(const char *path, char *out, size_t capacity) {
  const char *slash = strrchr(path, '/');
  snprintf(out, capacity, "%s", slash ? slash + 1 : path);
  char *end = strstr(out, ".gmtrace");
  if (end) *end = '\0';
}

static void group_name(char *out, size_t capacity, const char *trace, const char *what) {
  char short_name[64];
  group_trace_name(trace, short_name, sizeof short_name);
  snprintf(out, capacity, "%s, %s", short_name, what);
}

static void group_trace(group_work *work, size_t trace, group_values (*columns)[BENCH_TRACES]) {
  char runs[GROUP_NUMBER], name[96];
  snprintf(runs, sizeof runs, "%u", work->plan->runs);
  const char *const arguments[] = {"--trace", work->plan->traces[trace], "--runs", runs, NULL};
  progress_show("trace", trace, work->plan->trace_count);
  group_measure(work, arguments, true);
  for (size_t i = 0; i < GROUP_COLUMNS; i++) {
    const group_column *column = &group_columns[i];
    columns[i][trace] = group_values_of(work, column->figure, column->by);
    group_name(name, sizeof name, work->plan->traces[trace], column->what);
    if (group_asked(work->plan, column->group)) {
      group_add(work, column->group, name, column->unit, &columns[i][trace]);
    }
  }
}

static void group_traces(group_work *work) {
  group_values(*columns)[BENCH_TRACES] = calloc(GROUP_COLUMNS, sizeof *columns);
  char name[96];
  work->no_memory |= !columns;
  for (size_t trace = 0; columns && trace < work->plan->trace_count; trace++) group_trace(work, trace, columns);
  for (size_t i = 0; columns && i < GROUP_COLUMNS; i++) {
    snprintf(name, sizeof name, "geometric mean, %s", group_columns[i].what);
    if (!group_asked(work->plan, group_columns[i].group)) continue;
    group_add_mean(work, group_columns[i].group, name, group_columns[i].unit, columns[i]);
  }
  free(columns);
}

/* ---- capacity ---- */

typedef struct group_attempt {
  const harness_allocator *allocator;
  const char *trace;
} group_attempt;

static gm_status group_try(void *user, uint64_t capacity, bool *out_enough, gm_error *err) {
  const group_attempt *attempt = user;
  const char *const arguments[] = {"--trace", attempt->trace, "--once", NULL};
  harness_figures figures;
  (void)err; /* what cannot start on so small a device has not enough */
  uint64_t mib = (capacity + (1 << 20) - 1) >> 20;
  *out_enough = harness_run(attempt->allocator, arguments, mib, &figures) && harness_figure(&figures, "failed") == 0;
  return GM_OK;
}

/* The smallest capacity over the most that is alive; unknown for an allocator without a device. */
static double group_least(const harness_allocator *allocator, const char *trace) {
  const char *const arguments[] = {"--trace", trace, "--once", NULL};
  group_attempt attempt = {allocator, trace};
  harness_figures figures;
  gm_error err = {.status = GM_OK};
  uint64_t least = 0;
  if (allocator->loops_only || !harness_run(allocator, arguments, 0, &figures) ||
      isnan(harness_figure(&figures, "calls_cold"))) {
    return (double)NAN;
  }
  double live = harness_figure(&figures, "peak_live"), reserved = harness_figure(&figures, "reserved_cold");
  replay_min_capacity(group_try, &attempt, (uint64_t)live, (uint64_t)reserved, UINT64_MAX, &least, &err);
  return least ? (double)(((least + (1 << 20) - 1) >> 20) << 20) / live : (double)NAN;
}

/* Peers once, gm once for each of the two groups. */
static void group_capacity_trace(group_work *work, size_t trace, group_values *lists[2]) {
  harness_allocator without = work->plan->subject;
  const char *path = work->plan->traces[trace];
  size_t used = strlen(without.config);
  snprintf(without.config + used, sizeof without.config - used, "%snovmm", used ? "," : "");
  for (size_t i = 1; i <= work->plan->peers->count; i++) {
    lists[0][trace].of[i] = lists[1][trace].of[i] = group_least(group_allocator(work->plan, i), path);
  }
  for (unsigned group = GROUP_CAPACITY; group <= GROUP_NOVMM; group++) {
    char name[96];
    group_values *values = &lists[group - GROUP_CAPACITY][trace];
    if (!group_asked(work->plan, group)) continue;
    values->of[0] = group_least(group == GROUP_NOVMM ? &without : &work->plan->subject, path);
    work->measured |= isfinite(values->of[0]);
    group_name(name, sizeof name, path, group == GROUP_NOVMM ? "without VMM" : "smallest");
    group_add(work, group, name, "peak live", values);
  }
}

static void group_capacities(group_work *work) {
  group_values *lists[2] = {calloc(BENCH_TRACES, sizeof *lists[0]), calloc(BENCH_TRACES, sizeof *lists[0])};
  bool ready = lists[0] && lists[1];
  work->no_memory |= !ready;
  for (size_t trace = 0; ready && trace < work->plan->trace_count; trace++) group_capacity_trace(work, trace, lists);
  for (unsigned group = GROUP_CAPACITY; ready && group <= GROUP_NOVMM; group++) {
    if (!group_asked(work->plan, group)) continue;
    group_add_mean(work, group, "geometric mean", "peak live", lists[group - GROUP_CAPACITY]);
  }
  free(lists[0]);
  free(lists[1]);
}

/* ---- gm alone ---- */

static void group_own(group_work *work, unsigned group, const char *name, const char *unit, const char *figure,
                      const char *base, const char *base_label) {
  char runs[GROUP_NUMBER], pairs[GROUP_NUMBER];
  snprintf(runs, sizeof runs, "%u", work->plan->runs);
  snprintf(pairs, sizeof pairs, "%u", work->plan->pairs);
  const char *const arguments[] = {"--own", bench_group_names[group], "--runs", runs, "--pairs", pairs, NULL};
  const harness_allocator none = {.path = ""};
  harness_figures figures;
  if (!group_asked(work->plan, group) || !harness_run(&none, arguments, 0, &figures)) return;
  bench_row row = {.value = harness_figure(&figures, figure),
                   .peer_value = base ? harness_figure(&figures, base) : (double)NAN};
  snprintf(row.group, sizeof row.group, "%s", bench_group_names[group]);
  snprintf(row.name, sizeof row.name, "%s", name);
  snprintf(row.unit, sizeof row.unit, "%s", unit);
  snprintf(row.peer, sizeof row.peer, "%s", base_label);
  work->no_memory |= !bench_rows_add(work->rows, &row);
  work->measured = true;
}

/* In group_unsized the subject frees by pointer alone; its one peer is the same with sizes. */
static void group_unsized_plan(const bench_plan *plan, bench_plan *out, bench_peers *out_sized) {
  *out = *plan;
  out_sized->count = 1;
  out_sized->list[0] = plan->subject;
  snprintf(out_sized->list[0].label, sizeof out_sized->list[0].label, "gm, sized");
  size_t used = strlen(plan->subject.config);
  snprintf(out->subject.config + used, sizeof out->subject.config - used, "%sunsized", used ? "," : "");
  out->peers = out_sized;
}

static void group_unsized(group_work *work) {
  static bench_peers sized;
  bench_plan plan;
  group_unsized_plan(work->plan, &plan, &sized);
  group_work mine = {.plan = &plan, .rows = work->rows};
  group_values list[BENCH_TRACES];
  char runs[GROUP_NUMBER], name[96];
  snprintf(runs, sizeof runs, "%u", plan.runs);
  for (size_t trace = 0; trace < plan.trace_count; trace++) {
    const char *const arguments[] = {"--trace", plan.traces[trace], "--runs", runs, NULL};
    group_measure(&mine, arguments, true);
    list[trace] = group_values_of(&mine, "warm_ns", NULL);
    group_name(name, sizeof name, plan.traces[trace], "warm");
    group_add(&mine, GROUP_UNSIZED, name, "ns/event", &list[trace]);
  }
  group_add_mean(&mine, GROUP_UNSIZED, "geometric mean, warm", "ns/event", list);
  work->no_memory |= mine.no_memory;
  work->measured |= mine.measured;
}

gm_status bench_groups_run(const bench_plan *plan, bench_rows *rows, gm_error *err) {
  group_work *work = calloc(1, sizeof *work);
  gm_status status = work ? GM_OK : GM_ERR_OUT_OF_HOST_MEMORY;
  const uint32_t of_traces = 1u << GROUP_TRACE | 1u << GROUP_LATENCY | 1u << GROUP_CALLS | 1u << GROUP_RESERVED;
  if (work) {
    *work = (group_work){.plan = plan, .rows = rows};
    group_micro(work);
    if (plan->groups & of_traces) group_traces(work);
    if (group_asked(plan, GROUP_UNSIZED)) group_unsized(work);
    if (plan->groups & (1u << GROUP_CAPACITY | 1u << GROUP_NOVMM)) group_capacities(work);
    group_own(work, GROUP_METADATA, "host memory", "B/block", "bytes_per_block", NULL, "");
    group_own(work, GROUP_TRACKING, "1 MiB, 1000 live", "ns/event", "tracked_ns", "plain_ns", "gm, not tracking");
    group_own(work, GROUP_RECORDING, "1 MiB, 1000 live", "ns/event", "recorded_ns", "plain_ns", "gm, not recording");
    if (!work->measured) status = GM_ERR_UNAVAILABLE;
    if (work->no_memory) status = GM_ERR_OUT_OF_HOST_MEMORY;
  }
  progress_clear();
  free(work);
  if (status == GM_OK) return GM_OK;
  err->status = status;
  snprintf(err->message, sizeof err->message, "%s",
           status == GM_ERR_UNAVAILABLE ? "gm could not be measured in any case" : gm_status_text(status));
  return status;
}
