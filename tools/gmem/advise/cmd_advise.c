/* gmem advise: what to set for a program, from its recorded run. */
#include <stdio.h>
#include <string.h>

#include "tools/gmem/advise/advise_find.h"
#include "tools/gmem/command.h"
#include "tools/gmem/options/args.h"
#include "tools/gmem/output/output.h"
#include "tools/gmem/output/progress.h"
#include "tools/gmem/output/style.h"
#include "tools/gmem/output/table.h"
#include "tools/gmem/replay/replay_run.h"

enum { ADVISE_CAPACITY = 0x100, ADVISE_BACKEND, ADVISE_DEVICE, ADVISE_NO_VMM };

typedef struct advise_arguments {
  const char *trace;
  advise_target target;
  bool has_device;
  bool has_backend;
  bool json;
} advise_arguments;

static void advise_set_capacity(advise_arguments *arguments, const struct argp_state *state, const char *text) {
  arguments->target.capacity = args_bytes(state, "--capacity", text);
  if (arguments->target.capacity == 0) args_error(state, "--capacity: must be above 0");
}

static void advise_check(const advise_arguments *arguments, const struct argp_state *state) {
  if (!arguments->trace) args_error(state, "TRACE is missing");
  if (arguments->has_device && !arguments->has_backend) args_error(state, "--device needs --backend");
}

static error_t advise_parse(int key, char *text, struct argp_state *state) {
  advise_arguments *arguments = state->input;
  switch (key) {
    case ADVISE_CAPACITY: advise_set_capacity(arguments, state, text); return 0;
    case ADVISE_BACKEND:
      arguments->target.choice.backend = text;
      arguments->has_backend = true;
      return 0;
    case ADVISE_DEVICE:
      arguments->target.choice.device = args_count(state, "--device", text, 0, UINT16_MAX);
      arguments->has_device = true;
      return 0;
    case ADVISE_NO_VMM: arguments->target.no_vmm = true; return 0;
    case 'j': arguments->json = true; return 0;
    case ARGP_KEY_ARG:
      if (arguments->trace) args_error(state, "one TRACE at a time, \"%s\" is another", text);
      arguments->trace = args_file(state, text);
      return 0;
    case ARGP_KEY_END: advise_check(arguments, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- as JSON ---- */

/* It counts them like replay: a mark is none. */
static uint64_t advise_events(const gm_trace_profile *profile) { return profile->allocs + profile->frees; }

static void advise_json_profile(json_writer *out, const gm_trace_profile *profile) {
  writer_open(out, "profile", '{');
  writer_u64(out, "events", advise_events(profile));
  writer_u64(out, "allocs", profile->allocs);
  writer_u64(out, "marks", profile->marks);
  writer_u64(out, "total_bytes", profile->total_bytes);
  writer_u64(out, "peak_live_bytes", profile->peak_live_bytes);
  writer_u64(out, "peak_live_blocks", profile->peak_live_blocks);
  writer_u64(out, "end_live_bytes", profile->end_live_bytes);
  writer_u64(out, "end_live_blocks", profile->end_live_blocks);
  writer_u64(out, "distinct_sizes", profile->distinct_sizes);
  writer_u64(out, "repeats", profile->repeats);
  writer_u64(out, "small_allocs", profile->small_allocs);
  writer_u64(out, "brief_allocs", profile->brief_allocs);
  writer_u64(out, "streams", profile->streams);
  writer_u64(out, "moved_frees", profile->moved_frees);
  writer_u64(out, "growth_blocks", profile->growth_blocks);
  writer_u64(out, "growth_bytes", profile->growth_bytes);
  writer_close(out);
}

static void advise_json_result(json_writer *out, const char *key, const advise_result *result, uint64_t peak_live) {
  writer_open(out, key, '{');
  writer_double(out, "hit_rate", gm_stats_hit_rate(&result->stats));
  writer_double(out, "fragmentation", result->holes.ratio);
  writer_double(out, "unused", advise_unused(result, peak_live));
  writer_u64(out, "driver_allocs", result->driver_allocs);
  writer_u64(out, "warm_up_driver_allocs", result->warm_up_allocs);
  writer_u64(out, "peak_reserved_bytes", result->stats.peak_reserved_bytes);
  writer_u64(out, "failed", result->failed);
  writer_close(out);
}

/* `before` and `after`: the replays without the setting and with it, those before it in both. */
static void advise_json_item(json_writer *out, const advise_item *item, uint64_t peak_live) {
  char gain[ADVISE_TEXT], cost[ADVISE_TEXT];
  advise_item_line(item, true, gain, sizeof gain);
  advise_item_line(item, false, cost, sizeof cost);
  writer_open(out, NULL, '{');
  writer_text(out, "what", item->what);
  writer_text(out, "why", item->why);
  writer_text(out, "expected_gain", gain);
  writer_text_or_null(out, "cost", cost);
  if (item->measured) {
    advise_json_result(out, "before", &item->before, peak_live);
    advise_json_result(out, "after", &item->after, peak_live);
  } else {
    writer_null(out, "before");
    writer_null(out, "after");
  }
  writer_text_or_null(out, "setting", item->setting);
  writer_close(out);
}

static void advise_json(json_writer *out, const advise_report *report) {
  writer_open(out, NULL, '{');
  writer_open(out, "advice", '[');
  for (size_t i = 0; i < report->count; i++) {
    advise_json_item(out, &report->items[i], report->profile.peak_live_bytes);
  }
  writer_close(out);
  advise_json_profile(out, &report->profile);
  advise_json_result(out, "before", &report->before, report->profile.peak_live_bytes);
  advise_json_result(out, "after", &report->after, report->profile.peak_live_bytes);
  if (report->least_capacity) {
    writer_u64(out, "least_capacity_bytes", report->least_capacity);
  } else {
    writer_null(out, "least_capacity_bytes");
  }
  writer_text(out, "backend", report->info.backend);
  writer_u64(out, "device", report->info.index);
  writer_u64(out, "opened_streams", report->opened_streams);
  writer_bool(out, "mapped_pages", report->mapped);
  writer_bool(out, "simulated", report->info.simulated);
  writer_close(out);
}

/* ---- as text ---- */

static unsigned advise_percent(uint64_t part, uint64_t whole) {
  return whole ? (unsigned)((double)part * 100 / (double)whole + 0.5) : 0;
}

static void advise_text_profile(FILE *file, const char *trace, const gm_trace_profile *profile) {
  table rows = {.rows = 0};
  uint64_t allocs = profile->allocs;
  fprintf(file, "%s: %llu events, %llu marks, streams %llu\n", trace, (unsigned long long)advise_events(profile),
          (unsigned long long)profile->marks, (unsigned long long)profile->streams);
  table_row(&rows);
  table_cell(&rows, "allocations");
  table_cell(&rows, "%llu of %llu sizes, %u %% repeat a size, %u %% of at most 1 MiB", (unsigned long long)allocs,
             (unsigned long long)profile->distinct_sizes, advise_percent(profile->repeats, allocs),
             advise_percent(profile->small_allocs, allocs));
  table_row(&rows);
  table_cell(&rows, "lifetimes");
  table_cell(&rows, "%u %% are freed within %d events, %llu blocks never, %u %% on another stream",
             advise_percent(profile->brief_allocs, allocs), GM_TRACE_BRIEF_EVENTS,
             (unsigned long long)profile->end_live_blocks, advise_percent(profile->moved_frees, allocs));
  table_row(&rows);
  table_cell(&rows, "peak live");
  table_bytes(&rows, profile->peak_live_bytes);
  table_print(&rows, file);
}

static void advise_text_result(table *rows, const char *name, const advise_result *result) {
  table_row(rows);
  table_cell(rows, "%s", name);
  table_bytes(rows, result->stats.peak_reserved_bytes);
  table_cell(rows, "%llu driver allocations", (unsigned long long)result->driver_allocs);
  table_cell(rows, "%llu while warming up", (unsigned long long)result->warm_up_allocs);
  table_cell(rows, "%llu found no memory", (unsigned long long)result->failed);
}

/* The advice holds for a device like this one. */
static void advise_text_device(FILE *file, const advise_report *report) {
  const gm_device_info *info = &report->info;
  fprintf(file, "\nReplayed on %s %u ", info->backend, info->index);
  if (strcmp(info->backend, "null") == 0) {
    fprintf(file, "without memory (simulated)");
  } else {
    fprintf(file, "(%s)%s", info->name, info->simulated ? ", simulated" : "");
  }
  fprintf(file, ", %s mapped pages", report->mapped ? "with" : "without");
  if (report->times > 1) fprintf(file, ", %u times each", report->times);
  if (report->opened_streams < report->used_streams) {
    fprintf(file, ", on %u streams, which %u of the trace share", report->opened_streams, report->used_streams);
  }
  fprintf(file, "; peak reserved:\n");
}

/* The figures that get better, or those that get worse: before, and after. */
static void advise_text_changes(FILE *file, const advise_item *item, bool gains) {
  const char *word = gains ? "gain" : "cost";
  const style_colour colour = gains ? STYLE_GREEN : STYLE_YELLOW;
  if (gains && item->note[0]) {
    fprintf(file, "  %s%-4s%s  %s\n", style_begin(file, colour), word, style_end(file), item->note);
    word = "";
  }
  for (size_t i = 0; i < item->change_count; i++) {
    const advise_change *change = &item->changes[i];
    if (change->is_gain != gains) continue;
    fprintf(file, "  %s%-4s%s  %-26s  %9s → %s\n", style_begin(file, colour), word, style_end(file), change->what,
            change->before, change->after);
    word = "";
  }
}

static void advise_text(FILE *file, const char *trace, const advise_report *report) {
  table rows = {.rows = 0};
  advise_text_profile(file, trace, &report->profile);
  advise_text_device(file, report);
  advise_text_result(&rows, "by default", &report->before);
  advise_text_result(&rows, "as advised", &report->after);
  table_print(&rows, file);
  if (report->count == 0) fprintf(file, "\nNothing to advise.\n");
  for (size_t i = 0; i < report->count; i++) {
    const advise_item *item = &report->items[i];
    fprintf(file, "\n%s: %s\n", item->what, item->why);
    if (item->setting[0]) fprintf(file, "  set   %s\n", item->setting);
    advise_text_changes(file, item, true);
    advise_text_changes(file, item, false);
  }
}

/* ---- the command ---- */

static gm_status advise_work(const advise_arguments *arguments, advise_report *report, gm_error *err) {
  replay_events events = {.list = NULL};
  progress_show("reading", 0, 1);
  gm_status status = gm_trace_profile_read(NULL, arguments->trace, &report->profile, err);
  if (status == GM_OK) status = replay_events_read(arguments->trace, REPLAY_STREAMS_MAX, &events, err);
  report->used_streams = events.used;
  report->opened_streams = events.opened;
  if (status == GM_OK) status = advise_find(&events, &arguments->target, report, err);
  progress_clear();
  replay_events_free(&events);
  return status;
}

static int advise_command(output *out, const advise_arguments *arguments) {
  advise_report report = {.profile = {.struct_size = sizeof report.profile},
                          .info = {.struct_size = sizeof report.info}};
  gm_error err = {.status = GM_OK};
  if (advise_work(arguments, &report, &err) != GM_OK) {
    return arguments->has_backend ? output_fail_typed(out, &err) : output_fail(out, &err);
  }
  if (out->json) {
    advise_json(&out->writer, &report);
  } else {
    advise_text(out->file, arguments->trace, &report);
  }
  return GMEM_DONE;
}

int command_advise(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"capacity", ADVISE_CAPACITY, "N", 0, "Size of the null device (default: 80G); elsewhere a cap of the pool", 0},
      {"backend", ADVISE_BACKEND, "B", 0, "Replay on this backend (default: null, which has no memory)", 0},
      {"device", ADVISE_DEVICE, "I", 0, "The number of the device in its backend (default: 0)", 0},
      {"no-vmm", ADVISE_NO_VMM, NULL, 0, "For a device that does not map pages: driver allocations only", 0},
      ARGS_JSON_OPTION,
      {0}};
  static const struct argp argp = {.options = options,
                                   .parser = advise_parse,
                                   .args_doc = "TRACE",
                                   .doc =
                                       "Say what to set for a program, from its recorded run, a gmtrace file, plain "
                                       "or .gz. What each setting gains is measured by replaying the run with it, "
                                       "on addresses without memory unless --backend names a device; the advice "
                                       "is for such a device.\vExamples:\n  gmem advise run.gmtrace.gz\n  gmem advise "
                                       "run.gmtrace.gz --backend vulkan"};
  advise_arguments arguments = {.target = {.choice = {.backend = "null"}}};
  args_parse(&argp, 0, argc, argv, &arguments);
  output out;
  output_begin(&out, argv[0], arguments.json);
  return output_end(&out, advise_command(&out, &arguments));
}
