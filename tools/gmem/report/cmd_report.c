/* gmem report: a recording as a file to look at. */
#include <string.h>

#include "tools/gmem/command.h"
#include "tools/gmem/options/args.h"
#include "tools/gmem/output/output.h"
#include "tools/gmem/report/page.h"

enum { REPORT_FROM = 0x100, REPORT_TO, REPORT_FORMAT };

typedef struct report_format {
  const char *name;
  report_write write;
} report_format;

static const report_format report_formats[] = {{"html", report_page_write}};

enum { REPORT_FORMATS = sizeof report_formats / sizeof *report_formats };

typedef struct report_arguments {
  const char *input, *file;
  report_range range;
  const report_format *format;
  bool json;
} report_arguments;

static const report_format *report_find_format(const struct argp_state *state, const char *text) {
  const char *words[REPORT_FORMATS + 1] = {NULL};
  for (size_t i = 0; i < REPORT_FORMATS; i++) words[i] = report_formats[i].name;
  return &report_formats[args_word(state, "--format", text, words)];
}

static void report_check(const report_arguments *arguments, const struct argp_state *state) {
  if (!arguments->input) args_error(state, "INPUT is missing");
  if (!arguments->file) args_error(state, "-o FILE is missing");
}

static error_t report_parse(int key, char *text, struct argp_state *state) {
  report_arguments *arguments = state->input;
  switch (key) {
    case 'o': arguments->file = args_file(state, text); return 0;
    case REPORT_FROM: arguments->range.from = text; return 0;
    case REPORT_TO: arguments->range.to = text; return 0;
    case REPORT_FORMAT: arguments->format = report_find_format(state, text); return 0;
    case 'j': arguments->json = true; return 0;
    case ARGP_KEY_ARG:
      if (arguments->input) args_error(state, "one INPUT at a time, \"%s\" is another", text);
      arguments->input = args_file(state, text);
      return 0;
    case ARGP_KEY_END: report_check(arguments, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static void report_json(json_writer *out, const report_arguments *arguments, const report_events *events) {
  writer_open(out, NULL, '{');
  writer_text(out, "file", arguments->file);
  writer_text(out, "format", arguments->format->name);
  writer_u64(out, "events", events->count - events->carried);
  writer_u64(out, "blocks", events->blocks);
  writer_u64(out, "marks", events->marks);
  writer_u64(out, "peak_live_bytes", events->peak_bytes);
  writer_u64(out, "end_live_bytes", events->end_bytes);
  writer_open(out, "advice", '[');
  writer_close(out);
  writer_close(out);
}

static int report_run(output *out, const report_arguments *arguments) {
  gm_error err = {.status = GM_OK};
  report_events events;
  gm_status status = report_events_read(arguments->input, &arguments->range, &events, &err);
  if (status == GM_OK) {
    status = report_file_write(arguments->file, arguments->input, &events, arguments->format->write, &err);
  }
  if (status == GM_OK && out->json) {
    report_json(&out->writer, arguments, &events);
  } else if (status == GM_OK) {
    fprintf(out->file, "%s: %u events, %u marks\n", arguments->file, events.count - events.carried, events.marks);
  }
  report_events_free(&events);
  return status == GM_OK ? GMEM_DONE : output_fail_typed(out, &err);
}

int command_report(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"output", 'o', "FILE", 0, "The file to write; it replaces an older one once it is complete", 0},
      {"format", REPORT_FORMAT, "F", 0, "html (default): one page for a browser, which needs no network", 0},
      {"from", REPORT_FROM, "PLACE", 0, "Begin at this event (a number from 0) or at the first mark of this label", 0},
      {"to", REPORT_TO, "PLACE", 0, "End before this event or mark", 0},
      ARGS_JSON_OPTION,
      {0}};
  static const struct argp argp = {.options = options,
                                   .parser = report_parse,
                                   .args_doc = "INPUT",
                                   .doc =
                                       "Show where the memory went: a recorded run, a gmtrace file, plain or .gz, as "
                                       "one page.\vExamples:\n  gmem report run.gmtrace.gz -o run.html\n  gmem report "
                                       "run.gmtrace.gz -o step1.html --from step1 --to step2"};
  report_arguments arguments = {.format = &report_formats[0]};
  args_parse(&argp, 0, argc, argv, &arguments);
  output out;
  output_begin(&out, argv[0], arguments.json);
  return output_end(&out, report_run(&out, &arguments));
}
