/* gmem bench: gm's pool through small loops and recorded runs, beside other allocators where there are some. */
#include <glob.h>
#include <stdio.h>

#include "tools/gmem/bench/bench_groups.h"
#include "tools/gmem/bench/bench_transfer.h"
#include "tools/gmem/command.h"
#include "tools/gmem/options/args.h"
#include "tools/gmem/output/output.h"

enum {
  BENCH_OPTION_PEERS = 0x100,
  BENCH_OPTION_PEER,
  BENCH_OPTION_CONFIG,
  BENCH_OPTION_TRACE,
  BENCH_OPTION_RUNS,
  BENCH_OPTION_PASSES,
  BENCH_OPTION_PAIRS,
  BENCH_OPTION_BACKEND,
  BENCH_OPTION_DEVICE,
  BENCH_OPTION_BYTES,
  BENCH_LIST_MOST = BENCH_PEERS
};

typedef struct bench_arguments {
  bench_plan plan;
  transfer_plan transfer;
  bool has_device;
  const char *folder; /* of peers */
  const char *peers[BENCH_LIST_MOST];
  size_t peer_count;
  bool json;
} bench_arguments;

static const uint32_t bench_transfer_bit = UINT32_C(1) << BENCH_GROUP_TRANSFER;

static void bench_add_trace(bench_arguments *arguments, const struct argp_state *state, const char *path) {
  if (arguments->plan.trace_count == BENCH_TRACES) args_error(state, "more than %d traces", BENCH_TRACES);
  arguments->plan.traces[arguments->plan.trace_count++] = path;
}

static error_t bench_parse_value(int key, char *text, struct argp_state *state) {
  bench_arguments *arguments = state->input;
  harness_allocator *subject = &arguments->plan.subject;
  switch (key) {
    case BENCH_OPTION_PEERS: arguments->folder = text; return 0;
    case BENCH_OPTION_PEER:
      if (arguments->peer_count == BENCH_LIST_MOST) args_error(state, "more than %d peers", BENCH_LIST_MOST);
      arguments->peers[arguments->peer_count++] = text;
      return 0;
    case BENCH_OPTION_CONFIG: snprintf(subject->config, sizeof subject->config, "%s", text); return 0;
    case BENCH_OPTION_TRACE: bench_add_trace(arguments, state, text); return 0;
    case BENCH_OPTION_RUNS: arguments->plan.runs = args_count(state, "--runs", text, 1, 100000); return 0;
    case BENCH_OPTION_PASSES: arguments->plan.passes = args_count(state, "--passes", text, 1, 1000); return 0;
    case BENCH_OPTION_BACKEND: arguments->transfer.choice.backend = text; return 0;
    case BENCH_OPTION_DEVICE:
      arguments->transfer.choice.device = args_count(state, "--device", text, 0, UINT16_MAX);
      arguments->has_device = true;
      return 0;
    case BENCH_OPTION_BYTES: arguments->transfer.bytes = args_bytes(state, "--bytes", text); return 0;
    case BENCH_OPTION_PAIRS: arguments->plan.pairs = args_count(state, "--pairs", text, 1, 100000000); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static error_t bench_parse(int key, char *text, struct argp_state *state) {
  bench_arguments *arguments = state->input;
  switch (key) {
    case 'j': arguments->json = true; return 0;
    case ARGP_KEY_ARG: arguments->plan.groups |= 1u << args_word(state, "GROUP", text, bench_group_names); return 0;
    case ARGP_KEY_END:
      if (arguments->plan.groups & bench_transfer_bit && arguments->plan.groups != bench_transfer_bit) {
        args_error(state, "transfer is measured by itself, without other groups");
      }
      if (!arguments->plan.groups) arguments->plan.groups = ~bench_transfer_bit;
      if (arguments->has_device && !arguments->transfer.choice.backend) args_error(state, "--device needs --backend");
      return 0;
    default: return bench_parse_value(key, text, state);
  }
}

static const struct argp_option bench_options[] = {
    {"peers", BENCH_OPTION_PEERS, "DIR", 0, "Beside the allocators that bench/peers/build made there", 0},
    {"peer", BENCH_OPTION_PEER, "LABEL=FILE[:CONFIG]", 0, "Beside this one (bench/peers/README.md)", 0},
    {"config", BENCH_OPTION_CONFIG, "TEXT", 0, "Configuration of gm: best_fit, bucket, novmm, ...", 0},
    {"trace", BENCH_OPTION_TRACE, "FILE", 0, "Replay this trace (default: those in bench/traces)", 0},
    {"runs", BENCH_OPTION_RUNS, "N", 0, "Warm runs, of which the least counts (default: 7)", 0},
    {"passes", BENCH_OPTION_PASSES, "N", 0, "Processes for each case, of which the least counts (default: 1)", 0},
    {"pairs", BENCH_OPTION_PAIRS, "N", 0, "Allocations of each thread in a small loop (default: 200000)", 0},
    {"backend", BENCH_OPTION_BACKEND, "B", 0, "transfer: a device of this backend (default: the best device)", 0},
    {"device", BENCH_OPTION_DEVICE, "I", 0, "transfer: the number of the device in its backend (default: 0)", 0},
    {"bytes", BENCH_OPTION_BYTES, "N", 0, "transfer: of a large copy (default: 64M)", 0},
    ARGS_JSON_OPTION,
    {0}};

/* The traces that were built with this program, when none is named. */
static void bench_find_traces(bench_plan *plan, glob_t *found) {
  char folder[HARNESS_PATH], pattern[HARNESS_PATH + 16];
  if (plan->trace_count > 0 || !harness_beside("traces", folder, sizeof folder)) return;
  snprintf(pattern, sizeof pattern, "%s/*.gmtrace.gz", folder);
  if (glob(pattern, 0, NULL, found) != 0) return;
  for (size_t i = 0; i < found->gl_pathc && i < BENCH_TRACES; i++)
    plan->traces[plan->trace_count++] = found->gl_pathv[i];
}

static gm_status bench_find_peers(const bench_arguments *arguments, bench_peers *peers, gm_error *err) {
  gm_status status = arguments->folder ? bench_peers_read(peers, arguments->folder, err) : GM_OK;
  for (size_t i = 0; i < arguments->peer_count && status == GM_OK; i++) {
    status = bench_peers_add(peers, arguments->peers[i], err);
  }
  return status;
}

/* A peer that cannot start would be a row of unknown values at the end of a long run. */
static gm_status bench_start(const harness_allocator *allocator, gm_error *err) {
  static const char *const arguments[] = {"--micro", "pair", "--runs", "1", "--pairs", "1", NULL};
  harness_figures figures;
  const char *config = allocator->config;
  if (harness_run(allocator, arguments, 0, &figures)) return GM_OK;
  *err = (gm_error){.status = GM_ERR_UNAVAILABLE};
  snprintf(err->message, sizeof err->message, "%s%s%s%s cannot be started: %.300s", allocator->label,
           config[0] ? " with \"" : "", config, config[0] ? "\"" : "", allocator->path);
  return err->status;
}

static gm_status bench_start_all(const bench_plan *plan, gm_error *err) {
  gm_status status = bench_start(&plan->subject, err);
  for (size_t i = 0; i < plan->peers->count && status == GM_OK; i++) {
    status = bench_start(&plan->peers->list[i], err);
  }
  return status;
}

/* ---- transfer ---- */

/* The device's name and the rows, or why there are none. */
static int bench_transfer(output *out, const bench_arguments *arguments) {
  session self = {.ctx = NULL};
  bench_rows rows = {.list = NULL};
  gm_error err = {.status = GM_OK}, closing = {.status = GM_OK};
  transfer_plan plan = arguments->transfer;
  plan.runs = arguments->plan.runs;
  int code = GMEM_DONE;
  gm_status status = bench_transfer_run(&plan, &self, &rows, &err);
  const gm_device_info info = self.device ? *gm_device_get_info(self.device) : (gm_device_info){.index = 0};
  const bool had_context = self.ctx != NULL;
  const gm_status closed = session_end(&self, &closing);
  if (status != GM_OK) {
    code = had_context ? output_fail_typed(out, &err) : output_fail(out, &err);
  } else if (closed != GM_OK) {
    code = output_fail(out, &closing);
  } else if (out->json) {
    writer_open(&out->writer, NULL, '{');
    writer_text(&out->writer, "subject", arguments->plan.subject.label);
    writer_text(&out->writer, "backend", info.backend);
    writer_u64(&out->writer, "device", info.index);
    writer_text(&out->writer, "name", info.name);
    writer_bool(&out->writer, "simulated", info.simulated);
    bench_rows_json(&rows, &out->writer);
    writer_close(&out->writer);
  } else {
    bench_transfer_text(&rows, &info, out->file);
  }
  bench_rows_free(&rows);
  return code;
}

/* ---- allocators ---- */

static int bench_measure(output *out, const bench_plan *plan) {
  bench_rows rows = {.list = NULL};
  gm_error err = {.status = GM_OK};
  int code = GMEM_DONE;
  gm_status status = bench_groups_run(plan, &rows, &err);
  if (out->json) writer_open(&out->writer, NULL, '{');
  if (status != GM_OK) code = output_fail(out, &err);
  if (out->json) {
    writer_text(&out->writer, "subject", plan->subject.label);
    writer_bool(&out->writer, "simulated", true); /* addresses without memory: bookkeeping and packing */
    bench_rows_json(&rows, &out->writer);
    writer_close(&out->writer);
  } else {
    bench_rows_text(&rows, out->file);
  }
  bench_rows_free(&rows);
  return code;
}

static int bench_command(output *out, bench_arguments *arguments) {
  static bench_peers peers;
  gm_error err = {.status = GM_OK};
  glob_t found = {.gl_pathc = 0};
  char program[HARNESS_PATH];
  bench_plan *plan = &arguments->plan;
  if (plan->groups == bench_transfer_bit) return bench_transfer(out, arguments);
  plan->peers = &peers;
  if (!harness_beside("gm_bench", program, sizeof program) ||
      !harness_beside("gm_peer.so", plan->subject.path, sizeof plan->subject.path)) {
    return output_fail_text(out,
                            "gm_bench and gm_peer.so are not beside this program: they are in a build with "
                            "GM_BUILD_BENCH, and not installed");
  }
  if (bench_find_peers(arguments, &peers, &err) != GM_OK) return output_fail_typed(out, &err);
  if (bench_start_all(plan, &err) != GM_OK) return output_fail(out, &err);
  bench_find_traces(plan, &found);
  int code = bench_measure(out, plan);
  globfree(&found);
  return code;
}

int command_bench(int argc, char **argv) {
  static const struct argp argp = {
      .options = bench_options,
      .parser = bench_parse,
      .args_doc = "[GROUP...]",
      .doc =
          "Measure gm's pool, on addresses without memory, beside other allocators in the same run: pair, random, "
          "cross (small loops), trace, latency, unsized, calls, reserved, capacity, novmm (traces), metadata, "
          "tracking, recording. Lower is better, and a ratio below 1 is in gm's favour. By itself, transfer measures "
          "the links of a device beside what they can do; there more GB/s are better.\vExamples:\n"
          "  gmem bench pair\n  gmem bench --peers build/peers --json\n  gmem bench transfer --backend vulkan"};
  static bench_arguments arguments = {.plan = {.subject = {.label = "gm"}, .runs = 7, .passes = 1, .pairs = 200000},
                                      .transfer = {.bytes = 64 << 20}};
  args_parse(&argp, 0, argc, argv, &arguments);
  output out;
  output_begin(&out, argv[0], arguments.json);
  return output_end(&out, bench_command(&out, &arguments));
}
