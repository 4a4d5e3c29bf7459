/* gmem replay: a recorded run of allocations, on any device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/config.h"
#include "gm/size.h"
#include "tools/gmem/command.h"
#include "tools/gmem/options/args.h"
#include "tools/gmem/output/output.h"
#include "tools/gmem/output/progress.h"
#include "tools/gmem/output/table.h"
#include "tools/gmem/replay/replay_capacity.h"
#include "tools/gmem/replay/replay_run.h"
#include "tools/gmem/session/record_file.h"
#include "tools/gmem/session/session.h"

enum {
  REPLAY_BACKEND = 0x100,
  REPLAY_DEVICE,
  REPLAY_STRATEGY,
  REPLAY_CAPACITY,
  REPLAY_RUNS,
  REPLAY_MIN_CAPACITY,
  REPLAY_TOUCH,
  REPLAY_THREADS,
  REPLAY_NO_VMM,
  REPLAY_RECORD
};

static const char *const replay_strategies[] = {"auto", "bucket", "best_fit", NULL}; /* as gm_strategy */

typedef struct replay_arguments {
  const char *trace;
  session_choice choice;
  gm_strategy strategy;
  uint64_t capacity; /* 0: not given */
  replay_params params;
  const char *record; /* NULL: not recorded */
  bool has_device;
  bool min_capacity;
  bool no_vmm;
  bool json;
} replay_arguments;

static void replay_check(const replay_arguments *arguments, const struct argp_state *state) {
  if (!arguments->trace) args_error(state, "TRACE is missing");
  if (arguments->has_device && !arguments->choice.backend) args_error(state, "--device needs --backend");
}

static void replay_set_capacity(replay_arguments *arguments, const struct argp_state *state, const char *text) {
  arguments->capacity = args_bytes(state, "--capacity", text);
  if (arguments->capacity == 0) args_error(state, "--capacity: must be above 0");
}

static error_t replay_parse_value(int key, char *text, struct argp_state *state) {
  replay_arguments *arguments = state->input;
  switch (key) {
    case REPLAY_BACKEND: arguments->choice.backend = text; return 0;
    case REPLAY_RECORD: arguments->record = text; return 0;
    case REPLAY_DEVICE:
      arguments->choice.device = args_count(state, "--device", text, 0, UINT16_MAX);
      arguments->has_device = true;
      return 0;
    case REPLAY_STRATEGY:
      arguments->strategy = (gm_strategy)args_word(state, "--strategy", text, replay_strategies);
      return 0;
    case REPLAY_CAPACITY: replay_set_capacity(arguments, state, text); return 0;
    case REPLAY_RUNS: arguments->params.runs = args_count(state, "--runs", text, 1, 1000000); return 0;
    case REPLAY_THREADS:
      arguments->params.threads = args_count(state, "--threads", text, 1, REPLAY_STREAMS_MAX);
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static error_t replay_parse(int key, char *text, struct argp_state *state) {
  replay_arguments *arguments = state->input;
  switch (key) {
    case REPLAY_MIN_CAPACITY: arguments->min_capacity = true; return 0;
    case REPLAY_TOUCH: arguments->params.touch = true; return 0;
    case REPLAY_NO_VMM: arguments->no_vmm = true; return 0;
    case 'j': arguments->json = true; return 0;
    case ARGP_KEY_ARG:
      if (arguments->trace) args_error(state, "one TRACE at a time, \"%s\" is another", text);
      arguments->trace = args_file(state, text);
      return 0;
    case ARGP_KEY_END: replay_check(arguments, state); return 0;
    default: return replay_parse_value(key, text, state);
  }
}

static const struct argp_option replay_options[] = {
    {"backend", REPLAY_BACKEND, "B", 0, "Replay on this backend (default: the best device); null has no memory", 0},
    {"device", REPLAY_DEVICE, "I", 0, "The number of the device in its backend (default: 0)", 0},
    {"strategy", REPLAY_STRATEGY, "S", 0, "auto (by configuration), bucket or best_fit", 0},
    {"capacity", REPLAY_CAPACITY, "N", 0, "Size of the null device (default: 80G); elsewhere a cap of the pool", 0},
    {"runs", REPLAY_RUNS, "N", 0, "Replay so often on the same pool (default: 3); the last run is the warm one", 0},
    {"min-capacity", REPLAY_MIN_CAPACITY, NULL, 0, "Find the smallest capacity that is enough, too", 0},
    {"touch", REPLAY_TOUCH, NULL, 0, "Write every block; that time is not counted", 0},
    {"threads", REPLAY_THREADS, "N", 0, "So many threads replay, each its own copy, on one pool (default: 1)", 0},
    {"no-vmm", REPLAY_NO_VMM, NULL, 0, "Driver allocations only, also where the device maps pages", 0},
    {"record", REPLAY_RECORD, "FILE", 0,
     "Record, as a trace, what the pool does in all runs and in that for p99_ns (packed: .gz)", 0},
    ARGS_JSON_OPTION,
    {0}};

/* ---- replaying ---- */

/* `capacity` 0: none given. */
static gm_status replay_open(session *self, const replay_arguments *arguments, uint64_t capacity, gm_error *err) {
  char options[64] = "";
  bool is_null = arguments->choice.backend && strcmp(arguments->choice.backend, "null") == 0;
  if (is_null && capacity) snprintf(options, sizeof options, "null:capacity=%llu", (unsigned long long)capacity);
  gm_pool_params params = {.struct_size = sizeof params,
                           .strategy = arguments->strategy,
                           .name = "replay",
                           .no_vmm = arguments->no_vmm,
                           .max_bytes = is_null ? 0 : capacity};
  gm_status status = session_begin(self, options, err);
  if (status == GM_OK) status = session_open(self, &arguments->choice, 0, err);
  return status == GM_OK ? gm_pool_create(self->device, &params, &self->pool, err) : status;
}

/* ---- what it was ---- */

typedef struct replay_view {
  const replay_arguments *arguments;
  gm_device_info info;
  gm_strategy strategy; /* never AUTO */
  size_t events;
  uint32_t streams, used_streams, opened_streams; /* of one thread: replay_events.h */
  replay_result result;
  uint64_t min_capacity; /* 0: not asked for, or none found */
  char no_capacity[128]; /* why none was found; "": not asked for, or one was */
  gm_recording recording;
} replay_view;

/* Threads have parts of a pool of their own, whose peaks need not have been at the same time. */
static uint64_t replay_peak_live(const replay_view *view) {
  const bool parted = view->arguments->params.threads > 1 && view->strategy == GM_STRATEGY_BEST_FIT;
  return parted ? GM_UNKNOWN_BYTES : view->result.stats.peak_requested_bytes;
}

static void replay_json(json_writer *out, const replay_view *view) {
  const replay_result *result = &view->result;
  writer_open(out, NULL, '{');
  writer_u64(out, "events", view->events);
  writer_double(out, "ns_per_event", result->ns_per_event);
  writer_double(out, "p99_ns", result->p99_ns);
  writer_bytes(out, "peak_live_bytes", replay_peak_live(view));
  writer_u64(out, "peak_reserved_bytes", result->stats.peak_reserved_bytes);
  writer_u64(out, "driver_allocs_cold", result->driver_allocs_cold);
  writer_u64(out, "driver_allocs_warm", result->driver_allocs_warm);
  writer_u64(out, "local_cache_hits", result->stats.local_cache_hits);
  writer_u64(out, "global_cache_hits", result->stats.global_cache_hits);
  writer_u64(out, "failed", result->failed);
  writer_u64(out, "fallbacks", result->stats.fallbacks);
  if (view->min_capacity) {
    writer_u64(out, "min_capacity_bytes", view->min_capacity);
  } else {
    writer_null(out, "min_capacity_bytes");
  }
  writer_text_or_null(out, "min_capacity_reason", view->no_capacity);
  if (view->arguments->record) {
    writer_u64(out, "recorded_events", view->recording.allocs + view->recording.frees);
  } else {
    writer_null(out, "recorded_events");
  }
  writer_bool(out, "simulated", view->info.simulated);
  writer_text(out, "backend", view->info.backend);
  writer_u64(out, "device", view->info.index);
  writer_text(out, "strategy", replay_strategies[view->strategy]);
  writer_u64(out, "streams", view->streams);
  writer_u64(out, "opened_streams", view->opened_streams);
  writer_u64(out, "threads", view->arguments->params.threads);
  writer_u64(out, "runs", view->arguments->params.runs);
  writer_bool(out, "touched", view->arguments->params.touch);
  writer_close(out);
}

static void replay_text_pair(table *rows, const char *name, uint64_t value) {
  table_row(rows);
  table_cell(rows, "%s", name);
  table_cell(rows, "%llu", (unsigned long long)value);
}

static void replay_text_bytes(table *rows, const char *name, uint64_t bytes) {
  table_row(rows);
  table_cell(rows, "%s", name);
  table_bytes(rows, bytes);
}

static void replay_text_shared(table *rows, const replay_view *view) {
  if (view->opened_streams == view->used_streams) return;
  table_row(rows);
  table_cell(rows, "streams of the device");
  table_cell(rows, "%u for each thread, which %u of the trace share", view->opened_streams, view->used_streams);
}

static void replay_text(FILE *file, const replay_view *view) {
  const replay_result *result = &view->result;
  const replay_params *params = &view->arguments->params;
  table rows = {.rows = 0};
  fprintf(file, "%s on %s %u (%s)%s, strategy %s\n", view->arguments->trace, view->info.backend, view->info.index,
          view->info.name, view->info.simulated ? ", simulated" : "", replay_strategies[view->strategy]);
  table_row(&rows);
  table_cell(&rows, "events");
  table_cell(&rows, "%zu, streams %u, threads %u, runs %u", view->events, view->streams, params->threads, params->runs);
  replay_text_shared(&rows, view);
  table_row(&rows);
  table_cell(&rows, "time per event");
  table_cell(&rows, "%.0f ns, 99 of 100 within %.0f ns", result->ns_per_event, result->p99_ns);
  replay_text_bytes(&rows, "peak live", replay_peak_live(view));
  replay_text_bytes(&rows, "peak reserved", result->stats.peak_reserved_bytes);
  replay_text_pair(&rows, "driver allocations, first run", result->driver_allocs_cold);
  replay_text_pair(&rows, "driver allocations, last run", result->driver_allocs_warm);
  replay_text_pair(&rows, "found no memory", result->failed);
  if (view->min_capacity) replay_text_bytes(&rows, "smallest capacity", view->min_capacity);
  if (view->no_capacity[0]) {
    table_row(&rows);
    table_cell(&rows, "smallest capacity");
    table_cell(&rows, "none: %s", view->no_capacity);
  }
  if (view->arguments->record) {
    replay_text_pair(&rows, "recorded events", view->recording.allocs + view->recording.frees);
  }
  table_print(&rows, file);
}

typedef struct replay_attempt {
  const replay_arguments *arguments;
  const replay_events *events;
} replay_attempt;

/* One run on a device, or a pool, of that size, all of which gm may take. */
static gm_status replay_try(void *user, uint64_t capacity, bool *out_enough, gm_error *err) {
  const replay_attempt *attempt = user;
  replay_params params = attempt->arguments->params;
  replay_result result = {.failed = 0};
  session self = {.ctx = NULL};
  params.runs = 1;
  params.tail = false;
  gm_status status = replay_open(&self, attempt->arguments, capacity, err);
  if (status == GM_OK) status = gm_config_set(self.ctx, "memory_fraction", "1", err);
  if (status == GM_OK) status = gm_config_set(self.ctx, "min_free_bytes", "0", err);
  if (status == GM_OK) status = replay_run(self.pool, attempt->events, &params, &result, err);
  gm_error closing = {.status = GM_OK};
  session_end(&self, &closing);
  *out_enough = result.failed == 0;
  if (status != GM_OK || closing.status == GM_OK) return status;
  *err = closing;
  return closing.status;
}

/* The bytes that a pool can have now if it may take all of the device. A null device has no size: there it is the
 * largest pool that can be. */
static uint64_t replay_room(session *self, const replay_view *view) {
  gm_memory_info memory = {.struct_size = sizeof memory};
  if (strcmp(view->info.backend, "null") == 0) return UINT64_C(1) << 50;
  if (gm_device_memory_info(self->device, &memory, NULL) != GM_OK) return UINT64_MAX;
  if (memory.free_bytes == GM_UNKNOWN_BYTES) return memory.total_bytes;
  return memory.free_bytes;
}

static void replay_say_none(replay_view *view, uint64_t floor, uint64_t room) {
  char needed[16], there[16];
  const bool too_large = floor > room, by_room = room / REPLAY_CAPACITY_TIMES <= floor;
  gm_format_bytes(floor, needed, sizeof needed);
  gm_format_bytes(room, there, sizeof there);
  if (too_large) {
    snprintf(view->no_capacity, sizeof view->no_capacity, "%s are live at once, the device has room for %s", needed,
             there);
  } else if (by_room) {
    snprintf(view->no_capacity, sizeof view->no_capacity, "the %s that the device has room for are not enough", there);
  } else {
    snprintf(view->no_capacity, sizeof view->no_capacity, "%d times what is live at once (%s) is not enough",
             REPLAY_CAPACITY_TIMES, needed);
  }
}

/* The pool that was timed gives way first: on a device with memory it holds what the others look for. */
static gm_status replay_bisect(session *self, const replay_events *events, replay_view *view, gm_error *err) {
  replay_attempt attempt = {view->arguments, events};
  const gm_stats *stats = &view->result.stats;
  const uint64_t floor = events->peak_live_bytes; /* of several threads: of one alone */
  if (floor == 0) {
    snprintf(view->no_capacity, sizeof view->no_capacity, "the trace allocates nothing");
    return GM_OK;
  }
  gm_status status = gm_pool_destroy(self->pool, err);
  if (status != GM_OK) return status;
  self->pool = NULL;
  const uint64_t room = replay_room(self, view);
  status = replay_min_capacity(replay_try, &attempt, floor, stats->peak_reserved_bytes, room, &view->min_capacity, err);
  if (status == GM_OK && view->min_capacity == 0) replay_say_none(view, floor, room);
  return status;
}

/* A recording that was begun is ended, whatever the run came to. */
static gm_status replay_timed(gm_pool *pool, const replay_events *events, replay_view *view, gm_error *err) {
  const char *record = view->arguments->record;
  record_file file;
  gm_status status = record ? record_file_begin(&file, pool, record, view->arguments->trace, err) : GM_OK;
  if (status != GM_OK) return status;
  status = replay_run(pool, events, &view->arguments->params, &view->result, err);
  if (!record) return status;
  view->recording.struct_size = sizeof view->recording;
  return record_file_end(&file, pool, status, &view->recording, err);
}

static gm_status replay_work(session *self, replay_view *view, gm_error *err) {
  replay_events events = {.list = NULL};
  const replay_arguments *arguments = view->arguments;
  progress_show("reading", 0, 1);
  gm_status status = replay_events_read(arguments->trace, REPLAY_STREAMS_MAX / arguments->params.threads, &events, err);
  progress_clear();
  if (status == GM_OK) status = replay_open(self, arguments, arguments->capacity, err);
  if (status == GM_OK) {
    view->events = events.count;
    view->streams = events.streams;
    view->used_streams = events.used;
    view->opened_streams = events.opened;
    view->info = *gm_device_get_info(self->device);
    view->strategy = gm_pool_strategy(self->pool);
    status = replay_timed(self->pool, &events, view, err);
  }
  if (status == GM_OK && arguments->min_capacity) status = replay_bisect(self, &events, view, err);
  replay_events_free(&events);
  return status;
}

static int replay_command(output *out, const replay_arguments *arguments) {
  session self = {.ctx = NULL};
  gm_error err = {.status = GM_OK}, closing = {.status = GM_OK};
  replay_view view = {.arguments = arguments};
  gm_status status = replay_work(&self, &view, &err);
  bool had_context = self.ctx != NULL;
  gm_status closed = session_end(&self, &closing);
  if (status != GM_OK) return had_context ? output_fail_typed(out, &err) : output_fail(out, &err);
  if (closed != GM_OK) return output_fail(out, &closing);
  if (out->json) {
    replay_json(&out->writer, &view);
  } else {
    replay_text(out->file, &view);
  }
  return GMEM_DONE;
}

int command_replay(int argc, char **argv) {
  static const struct argp argp = {
      .options = replay_options,
      .parser = replay_parse,
      .args_doc = "TRACE",
      .doc =
          "Replay a gmtrace file, plain or .gz, on a pool of a device and say how long "
          "it took and what was reserved. Memory is not touched unless asked.\vExamples:\n  gmem replay "
          "run.gmtrace.gz\n  gmem replay run.gmtrace.gz --backend null --capacity 24G --min-capacity"};
  replay_arguments arguments = {.strategy = GM_STRATEGY_AUTO, .params = {.runs = 3, .threads = 1, .tail = true}};
  args_parse(&argp, 0, argc, argv, &arguments);
  output out;
  output_begin(&out, argv[0], arguments.json);
  return output_end(&out, replay_command(&out, &arguments));
}
