/* gmem info: discovery and summary. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gm/report.h"
#include "gm/size.h"
#include "tools/gmem/command.h"
#include "tools/gmem/info/info_json.h"
#include "tools/gmem/options/args.h"
#include "tools/gmem/output/output.h"
#include "tools/gmem/output/style.h"
#include "tools/gmem/session/session.h"

enum { INFO_BACKEND = 0x100, INFO_WATCH_SECONDS = 2, INFO_WATCH_MOST = 86400 };

typedef struct info_arguments {
  gm_probe_level level;
  const char *backend; /* NULL: every one */
  uint32_t watch;      /* seconds between two pages; 0: one page */
  bool all;
  bool json;
} info_arguments;

static error_t info_parse(int key, char *text, struct argp_state *state) {
  static const char *const levels[] = {"passive", "active", "isolated", NULL}; /* in the order of gm_probe_level */
  info_arguments *arguments = state->input;
  switch (key) {
    case 'l': arguments->level = (gm_probe_level)args_word(state, "--level", text, levels); return 0;
    case INFO_BACKEND: arguments->backend = text; return 0;
    case 'w':
      arguments->watch = text ? args_count(state, "--watch", text, 1, INFO_WATCH_MOST) : INFO_WATCH_SECONDS;
      return 0;
    case 'a':
    case 'v': arguments->all = true; return 0;
    case 'j': arguments->json = true; return 0;
    case ARGP_KEY_ARG: /* "--watch 5" */
      if (!arguments->watch) args_error(state, "\"%s\" is not understood", text);
      arguments->watch = args_count(state, "--watch", text, 1, INFO_WATCH_MOST);
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option info_options[] = {
    {"level", 'l', "LEVEL", 0, "passive: files only; active: load the drivers; isolated (default): in a helper process",
     0},
    {"backend", INFO_BACKEND, "B", 0, "This backend only", 0},
    {"all", 'a', NULL, 0, "Every backend, each with what is missing: also null, which has no memory", 0},
    {"verbose", 'v', NULL, OPTION_ALIAS, NULL, 0},
    {"watch", 'w', "SECONDS", OPTION_ARG_OPTIONAL,
     "Again every SECONDS (2), until it is interrupted; with --json one line each", 0},
    ARGS_JSON_OPTION,
    {0}};

/* ---- what is there ---- */

static gm_status info_no_memory(gm_error *err) {
  *err = (gm_error){.status = GM_ERR_OUT_OF_HOST_MEMORY, .message = "no host memory for a list of devices"};
  return err->status;
}

static gm_status info_backends(gm_context *ctx, gm_probe_level level, info_view *view, gm_error *err) {
  size_t count = 0;
  gm_status status = gm_discover_backends(ctx, level, NULL, 0, &count, err);
  if (status != GM_OK) return status;
  view->backends = calloc(count ? count : 1, sizeof *view->backends);
  if (!view->backends) return info_no_memory(err);
  view->backend_count = count;
  view->backends->struct_size = sizeof *view->backends;
  return gm_discover_backends(ctx, level, view->backends, count, &count, err);
}

static gm_status info_devices(gm_context *ctx, info_view *view, gm_error *err) {
  size_t count = 0;
  gm_status status = gm_discover_devices(ctx, NULL, 0, &count, err);
  if (status != GM_OK) return status;
  view->devices = calloc(count ? count : 1, sizeof *view->devices);
  if (!view->devices) return info_no_memory(err);
  view->devices->struct_size = sizeof *view->devices;
  status = gm_discover_devices(ctx, view->devices, count, &view->device_count, err);
  if (status != GM_OK) return status;
  if (view->device_count > count) view->device_count = count;
  view->best.struct_size = sizeof view->best;
  status = gm_best_backend(ctx, &view->best, err);
  view->has_best = status == GM_OK;
  return status == GM_ERR_NOT_FOUND ? GM_OK : status;
}

static gm_status info_ask(gm_context *ctx, gm_probe_level level, info_view *view, gm_error *err) {
  view->host.struct_size = sizeof view->host;
  gm_status status = gm_host_info_read(NULL, &view->host, err);
  if (status == GM_OK) status = info_backends(ctx, level, view, err);
  if (status == GM_OK && level != GM_PROBE_PASSIVE) status = info_devices(ctx, view, err);
  return status;
}

static gm_status info_print_json(gm_context *ctx, gm_probe_level level, json_writer *out, gm_error *err) {
  info_view view = {.backends = NULL};
  gm_status status = info_ask(ctx, level, &view, err);
  if (status == GM_OK) {
    writer_open(out, NULL, '{');
    info_json(out, &view);
    writer_close(out);
  }
  free(view.backends);
  free(view.devices);
  return status;
}

/* ---- text ---- */

static void info_print_bytes(FILE *file, const char *before, uint64_t bytes, const char *behind) {
  char text[24] = "unknown";
  if (bytes != GM_UNKNOWN_BYTES) gm_format_bytes(bytes, text, sizeof text);
  fprintf(file, "%s%s%s", before, text, behind);
}

/* The bound of the free figure, in words; the kernel's own figure needs none. */
static void info_print_limit(FILE *file, const gm_host_info *host) {
  const char *source = host->limit_source;
  if (strcmp(source, "numa") == 0) {
    fprintf(file, " (bounded by NUMA nodes)");
  } else if (strncmp(source, "cgroup", 6) == 0) {
    fprintf(file, " (bounded by %s)", source);
  }
}

static void info_print_host(FILE *file, const gm_host_info *host) {
  fprintf(file, "Host: %s, %" PRIu32 " cores, ", host->cpu_name[0] ? host->cpu_name : "processor unknown", host->cores);
  info_print_bytes(file, "", host->total_bytes, ", ");
  info_print_bytes(file, host->free_state == GM_FIGURE_ESTIMATED ? "~" : "", host->free_bytes, " free");
  info_print_limit(file, host);
  info_print_bytes(file, ", pages of ", host->page_bytes, "");
  if (host->node_count > 1) fprintf(file, ", %" PRIu32 " memory nodes", host->node_count);
  if (host->stall_some.valid) {
    fprintf(file, ", memory pressure %" PRIu32 ".%02" PRIu32 " %%", host->stall_some.avg10_centi / 100,
            host->stall_some.avg10_centi % 100);
  }
  fputc('\n', file);
}

typedef struct info_page {
  FILE *file;
  bool all;
} info_page;

/* One line. The mark that it begins with gets its colour; the line of drivers that are missing says how to learn more.
 */
static void info_put(void *user, const char *text, size_t bytes) {
  static const char found[] = "\u2713", missing[] = "\u2717", none[] = "\u2717 no ";
  const info_page *page = user;
  FILE *file = page->file;
  const size_t mark = sizeof found - 1;
  const bool is_found = bytes > mark && memcmp(text, found, mark) == 0;
  const bool is_missing = bytes > mark && memcmp(text, missing, mark) == 0;
  const bool is_list = !page->all && bytes >= sizeof none && memcmp(text, none, sizeof none - 1) == 0;
  if (is_found || is_missing) {
    fprintf(file, "%s%.*s%s", style_begin(file, is_found ? STYLE_GREEN : STYLE_RED), (int)mark, text, style_end(file));
    text += mark;
    bytes -= mark;
  }
  fprintf(file, "%.*s%s", (int)bytes - 1, text, is_list ? " (--verbose says what each needs)\n" : "\n");
}

static gm_status info_print_text(gm_context *ctx, const info_arguments *arguments, FILE *file, gm_error *err) {
  gm_host_info host = {.struct_size = sizeof host};
  info_page page = {file, arguments->all};
  gm_status status = gm_host_info_read(NULL, &host, err);
  if (status != GM_OK) return status;
  status = arguments->all ? gm_summary(ctx, arguments->level, info_put, &page, err)
                          : gm_summary_brief(ctx, arguments->level, info_put, &page, err);
  if (status == GM_OK) info_print_host(file, &host);
  return status;
}

/* ---- the command ---- */

static int info_once(output *out, const info_arguments *arguments) {
  session self = {.ctx = NULL};
  gm_error err = {.status = GM_OK};
  gm_status status =
      arguments->backend ? session_begin_only(&self, arguments->backend, &err) : session_begin(&self, NULL, &err);
  if (status == GM_OK) {
    status = out->json ? info_print_json(self.ctx, arguments->level, &out->writer, &err)
                       : info_print_text(self.ctx, arguments, out->file, &err);
  }
  int code = GMEM_DONE;
  if (status != GM_OK) code = self.ctx ? output_fail_typed(out, &err) : output_fail(out, &err);
  gm_context_destroy(self.ctx, NULL);
  return code;
}

/* Page after page, each on a cleared screen where that can be done, until a signal or a failure ends it. */
static int info_watch(output *out, const info_arguments *arguments) {
  const struct timespec pause = {.tv_sec = arguments->watch};
  const bool clears = !out->json && style_is_terminal(out->file);
  int code = GMEM_DONE;
  out->writer.one_line = true;
  while (code == GMEM_DONE && !ferror(out->file)) {
    if (clears) fputs("\033[H\033[J", out->file);
    code = info_once(out, arguments);
    fflush(out->file);
    if (code == GMEM_DONE) nanosleep(&pause, NULL);
  }
  return code;
}

int command_info(int argc, char **argv) {
  static const struct argp argp = {.options = info_options,
                                   .parser = info_parse,
                                   .doc =
                                       "Backends and why those that are missing are, devices, how much of their memory "
                                       "is really free, which one gm would take.\vExamples:\n"
                                       "  gmem info\n  gmem info --watch=5\n  gmem info --verbose --backend cuda"};
  info_arguments arguments = {.level = GM_PROBE_ISOLATED};
  args_parse(&argp, 0, argc, argv, &arguments);
  output out;
  output_begin(&out, argv[0], arguments.json);
  return output_end(&out, arguments.watch ? info_watch(&out, &arguments) : info_once(&out, &arguments));
}
