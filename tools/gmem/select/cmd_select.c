/* gmem select: the device on which some bytes fit. */
#include <inttypes.h>

#include "gm/device.h"
#include "gm/size.h"
#include "tools/gmem/command.h"
#include "tools/gmem/options/args.h"
#include "tools/gmem/output/output.h"
#include "tools/gmem/output/table.h"
#include "tools/gmem/session/session.h"

enum { SELECT_BYTES = 0x100, SELECT_PREFER, SELECT_KEEP, SELECT_FRACTION, SELECT_NO_CPU };

typedef struct select_arguments {
  gm_select_params params;
  uint64_t bytes;
  bool has_bytes;
  bool json;
} select_arguments;

static error_t select_parse(int key, char *text, struct argp_state *state) {
  select_arguments *arguments = state->input;
  switch (key) {
    case SELECT_BYTES:
      arguments->bytes = args_bytes(state, "--bytes", text);
      arguments->has_bytes = true;
      return 0;
    case SELECT_PREFER: arguments->params.prefer = text; return 0;
    case SELECT_KEEP:
      arguments->params.keep_free_bytes = args_bytes(state, "--keep-free", text);
      /* The library reads 0 as "by configuration"; who asks for none gets the next best. */
      if (arguments->params.keep_free_bytes == 0) arguments->params.keep_free_bytes = 1;
      return 0;
    case SELECT_FRACTION: arguments->params.memory_fraction = args_fraction(state, "--fraction", text); return 0;
    case SELECT_NO_CPU: arguments->params.refuse_cpu = true; return 0;
    case 'j': arguments->json = true; return 0;
    case ARGP_KEY_ARG: args_error(state, "\"%s\" is not understood", text); return 0;
    case ARGP_KEY_END:
      if (!arguments->has_bytes) args_error(state, "--bytes is missing");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option select_options[] = {
    {"bytes", SELECT_BYTES, "N", 0, "How much has to fit (needed)", 0},
    {"prefer", SELECT_PREFER, "A,B", 0, "Only these backends, in this order", 0},
    {"keep-free", SELECT_KEEP, "N", 0, "Leave at least this much free", 0},
    {"fraction", SELECT_FRACTION, "F", 0, "Use at most this share of a device", 0},
    {"no-cpu", SELECT_NO_CPU, NULL, 0, "Neither the host nor software devices", 0},
    ARGS_JSON_OPTION,
    {0}};

/* ---- JSON ---- */

static void select_json_rejected(json_writer *out, const gm_selection *found) {
  writer_open(out, "rejected", '[');
  uint32_t most = sizeof found->rejected / sizeof *found->rejected;
  for (uint32_t i = 0; i < found->rejected_count && i < most; i++) {
    writer_open(out, NULL, '{');
    writer_text(out, "backend", found->rejected[i].id.backend);
    if (found->rejected[i].device == GM_NO_DEVICE) {
      writer_null(out, "device");
    } else {
      writer_u64(out, "device", found->rejected[i].device);
    }
    writer_text(out, "why", found->rejected[i].why);
    writer_close(out);
  }
  writer_close(out);
  writer_u64(out, "rejected_count", found->rejected_count);
}

static void select_json(json_writer *out, const gm_selection *found, bool is_found) {
  if (is_found) {
    writer_text(out, "backend", found->id.backend);
    writer_u64(out, "device", found->device);
    writer_bytes(out, "free_bytes", found->free_bytes);
    writer_text(out, "free_source", gm_figure_source_name(found->free_source));
    writer_text(out, "free_state", gm_figure_state_name(found->free_state));
    writer_bytes(out, "headroom_bytes", found->headroom_bytes);
  } else {
    writer_null(out, "backend");
    writer_null(out, "device");
    writer_null(out, "free_bytes");
    writer_null(out, "free_source");
    writer_null(out, "free_state");
    writer_null(out, "headroom_bytes");
  }
  select_json_rejected(out, found);
}

/* ---- text ---- */

static void select_text_rejected(FILE *file, const gm_selection *found) {
  table rows = {.rows = 0};
  uint32_t most = sizeof found->rejected / sizeof *found->rejected;
  for (uint32_t i = 0; i < found->rejected_count && i < most; i++) {
    table_row(&rows);
    if (found->rejected[i].device == GM_NO_DEVICE) {
      table_cell(&rows, "%s", found->rejected[i].id.backend);
    } else {
      table_cell(&rows, "%s %" PRIu32, found->rejected[i].id.backend, found->rejected[i].device);
    }
    table_cell(&rows, "%s", found->rejected[i].why);
  }
  if (rows.rows) fprintf(file, "Not taken:\n");
  table_print(&rows, file);
}

static void select_text(FILE *file, const gm_selection *found, bool is_found) {
  if (is_found) {
    table rows = {.rows = 0};
    fprintf(file, "%s %" PRIu32 "\n", found->id.backend, found->device);
    table_row(&rows);
    table_cell(&rows, found->free_state == GM_FIGURE_ESTIMATED ? "free (estimated, %s)" : "free",
               gm_figure_source_name(found->free_source));
    table_bytes(&rows, found->free_bytes);
    table_row(&rows);
    table_cell(&rows, "left after it");
    table_bytes(&rows, found->headroom_bytes);
    table_print(&rows, file);
  }
  select_text_rejected(file, found);
}

/* ---- the command ---- */

static gm_status select_ask(session *self, const select_arguments *arguments, gm_selection *found, gm_error *err) {
  size_t count = 0;
  gm_status status = session_begin(self, NULL, err);
  if (status == GM_OK) status = gm_discover_backends(self->ctx, GM_PROBE_ISOLATED, NULL, 0, &count, err);
  if (status != GM_OK) return status;
  return gm_select_backend_for_bytes(self->ctx, arguments->bytes, &arguments->params, found, err);
}

/* Short: the list of those that were not taken says why. */
static int select_fail(output *out, uint64_t bytes) {
  char asked[24];
  gm_format_bytes(bytes, asked, sizeof asked);
  return output_fail_text(out, "no device can take %s", asked);
}

static int select_print(output *out, const gm_selection *found, uint64_t bytes, gm_status status) {
  const bool is_found = status == GM_OK;
  int code = GMEM_DONE;
  if (!out->json) {
    if (!is_found) code = select_fail(out, bytes);
    select_text(out->file, found, is_found);
    return code;
  }
  writer_open(&out->writer, NULL, '{');
  select_json(&out->writer, found, is_found);
  if (!is_found) code = select_fail(out, bytes);
  writer_close(&out->writer);
  return code;
}

int command_select(int argc, char **argv) {
  static const struct argp argp = {.options = select_options,
                                   .parser = select_parse,
                                   .doc =
                                       "The device on which N bytes fit, what is free on it and what would be left, "
                                       "and why each other device was not taken.\vExamples:\n  gmem select --bytes 2G "
                                       "--no-cpu\n  gmem select --bytes 24GiB --prefer cuda,hip --keep-free 1G"};
  select_arguments arguments = {.params.struct_size = sizeof arguments.params};
  args_parse(&argp, 0, argc, argv, &arguments);
  output out;
  session self = {.ctx = NULL};
  gm_error err = {.status = GM_OK}, closing = {.status = GM_OK};
  gm_selection found = {.struct_size = sizeof found};
  output_begin(&out, argv[0], arguments.json);
  gm_status status = select_ask(&self, &arguments, &found, &err);
  int code;
  if (status == GM_OK || status == GM_ERR_NOT_FOUND) {
    code = select_print(&out, &found, arguments.bytes, status);
  } else {
    code = self.ctx ? output_fail_typed(&out, &err) : output_fail(&out, &err);
  }
  if (session_end(&self, &closing) != GM_OK && code == GMEM_DONE) code = output_fail(&out, &closing);
  return output_end(&out, code);
}
