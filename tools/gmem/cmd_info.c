/* gmem info: discovery and summary (F3, F4, F9, F10). */
#include <inttypes.h>
#include <stdlib.h>

#include "gm/report.h"
#include "gm/size.h"
#include "tools/gmem/args.h"
#include "tools/gmem/command.h"
#include "tools/gmem/info_json.h"
#include "tools/gmem/output.h"
#include "tools/gmem/session.h"

typedef struct info_arguments {
  gm_probe_level level;
  bool json;
} info_arguments;

static error_t info_parse(int key, char *text, struct argp_state *state) {
  static const char *const levels[] = {"passive", "active", "isolated", NULL}; /* in the order of gm_probe_level */
  info_arguments *arguments = state->input;
  switch (key) {
    case 'l': arguments->level = (gm_probe_level)args_word(state, "--level", text, levels); return 0;
    case 'j': arguments->json = true; return 0;
    case ARGP_KEY_ARG: args_error(state, "\"%s\" is not understood", text); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option info_options[] = {
    {"level", 'l', "LEVEL", 0, "passive: files only; active: load the drivers; isolated (default): in a helper process",
     0},
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
  if (count > 0) view->backends->struct_size = sizeof *view->backends;
  return gm_discover_backends(ctx, level, view->backends, count, &count, err);
}

static gm_status info_devices(gm_context *ctx, info_view *view, gm_error *err) {
  size_t count = 0;
  gm_status status = gm_discover_devices(ctx, NULL, 0, &count, err);
  if (status != GM_OK) return status;
  view->devices = calloc(count ? count : 1, sizeof *view->devices);
  if (!view->devices) return info_no_memory(err);
  if (count > 0) view->devices->struct_size = sizeof *view->devices;
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

static void info_print_host(FILE *file, const gm_host_info *host) {
  fprintf(file, "Host: %s, %" PRIu32 " cores, ", host->cpu_name[0] ? host->cpu_name : "processor unknown", host->cores);
  info_print_bytes(file, "", host->total_bytes, ", ");
  info_print_bytes(file, host->free_state == GM_FIGURE_ESTIMATED ? "~" : "", host->free_bytes, " free (");
  fprintf(file, "%s)", host->limit_source);
  info_print_bytes(file, ", pages of ", host->page_bytes, "");
  if (host->node_count > 1) fprintf(file, ", %" PRIu32 " memory nodes", host->node_count);
  if (host->stall_some.valid) {
    fprintf(file, ", memory pressure %" PRIu32 ".%02" PRIu32 " %%", host->stall_some.avg10_centi / 100,
            host->stall_some.avg10_centi % 100);
  }
  fputc('\n', file);
}

static gm_status info_print_text(gm_context *ctx, gm_probe_level level, FILE *file, gm_error *err) {
  gm_host_info host = {.struct_size = sizeof host};
  gm_status status = gm_host_info_read(NULL, &host, err);
  if (status == GM_OK) status = gm_print_summary(ctx, level, file, err);
  if (status == GM_OK) info_print_host(file, &host);
  return status;
}

int command_info(int argc, char **argv) {
  static const struct argp argp = {.options = info_options,
                                   .parser = info_parse,
                                   .doc =
                                       "Backends and why those that are missing are, devices, how much of their memory "
                                       "is really free, which one gm would take."};
  info_arguments arguments = {.level = GM_PROBE_ISOLATED};
  args_parse(&argp, 0, argc, argv, &arguments);
  output out;
  session self = {.ctx = NULL};
  gm_error err = {.status = GM_OK};
  output_begin(&out, argv[0], arguments.json);
  gm_status status = session_begin(&self, NULL, &err);
  if (status == GM_OK) {
    status = out.json ? info_print_json(self.ctx, arguments.level, &out.writer, &err)
                      : info_print_text(self.ctx, arguments.level, out.file, &err);
  }
  int code = status == GM_OK ? GMEM_DONE : output_fail(&out, &err);
  gm_context_destroy(self.ctx, NULL);
  return output_end(&out, code);
}
