/* gmem load: a model's tensors into memory of a device. */
#include <fnmatch.h>

#include "gm/load.h"
#include "gm/size.h"
#include "gm/transfer.h"
#include "tools/gmem/command.h"
#include "tools/gmem/load/load_check.h"
#include "tools/gmem/options/args.h"
#include "tools/gmem/output/output.h"
#include "tools/gmem/output/progress.h"
#include "tools/gmem/output/table.h"
#include "tools/gmem/session/record_file.h"
#include "tools/gmem/session/session.h"

enum { LOAD_BACKEND = 0x100, LOAD_DEVICE, LOAD_VERIFY, LOAD_PATH, LOAD_RECORD, LOAD_TENSORS, LOAD_CHECK };

static const char *const load_paths[] = {"auto", "mmap",     "read", "direct",
                                         "gds",  "in-place", NULL}; /* as gm_load_path */

typedef struct load_arguments {
  const char *model;
  session_choice choice;
  gm_load_path path;
  const char *record;  /* NULL: not recorded */
  const char *tensors; /* a pattern of names, as a shell's; NULL: all */
  bool has_device;
  bool verify;
  bool checks; /* what it took, beside what was predicted */
  bool json;
} load_arguments;

static void load_check_arguments(const load_arguments *arguments, const struct argp_state *state) {
  if (!arguments->model) args_error(state, "MODEL is missing");
  if (arguments->has_device && !arguments->choice.backend) args_error(state, "--device needs --backend");
}

static error_t load_parse(int key, char *text, struct argp_state *state) {
  load_arguments *arguments = state->input;
  switch (key) {
    case LOAD_BACKEND: arguments->choice.backend = text; return 0;
    case LOAD_DEVICE:
      arguments->choice.device = args_count(state, "--device", text, 0, UINT16_MAX);
      arguments->has_device = true;
      return 0;
    case LOAD_VERIFY: arguments->verify = true; return 0;
    case LOAD_CHECK: arguments->checks = true; return 0;
    case LOAD_RECORD: arguments->record = text; return 0;
    case LOAD_TENSORS: arguments->tensors = text; return 0;
    case LOAD_PATH: arguments->path = (gm_load_path)args_word(state, "--path", text, load_paths); return 0;
    case 'j': arguments->json = true; return 0;
    case ARGP_KEY_ARG:
      if (arguments->model) args_error(state, "one MODEL at a time, \"%s\" is another", text);
      arguments->model = args_file(state, text);
      return 0;
    case ARGP_KEY_END: load_check_arguments(arguments, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option load_options[] = {
    {"backend", LOAD_BACKEND, "B", 0, "Load to this backend (default: the best device)", 0},
    {"device", LOAD_DEVICE, "I", 0, "The number of the device in its backend (default: 0)", 0},
    {"verify", LOAD_VERIFY, NULL, 0, "Compare everything with the checksum file, or read it back", 0},
    {"check-fit", LOAD_CHECK, NULL, 0, "What was predicted, and what the load took, by part", 0},
    {"tensors", LOAD_TENSORS, "PATTERN", 0, "Load only tensors whose names match, as file names do in a shell", 0},
    {"path", LOAD_PATH, "PATH", 0, "auto, mmap, read, direct, gds or in-place", 0},
    {"record", LOAD_RECORD, "FILE", 0, "Record what the pool does, as a trace (packed: .gz)", 0},
    ARGS_JSON_OPTION,
    {0}};

/* ---- loading ---- */

static bool load_wants(const load_arguments *arguments, const gm_tensor_info *tensor) {
  return !arguments->tensors || fnmatch(arguments->tensors, tensor->name, 0) == 0;
}

static void load_place(void *user, uint64_t index, const gm_tensor_info *tensor, gm_load_place *place) {
  (void)index;
  if (!load_wants(user, tensor)) place->pool = NULL;
}

/* The bytes of the tensors that are wanted. NOT_FOUND: there are none such. */
static gm_status load_bytes(const gm_model *model, const load_arguments *arguments, uint64_t *out, gm_error *err) {
  gm_tensor_info tensor = {.struct_size = sizeof tensor};
  const uint64_t count = gm_model_tensor_count(model);
  uint64_t wanted = 0;
  *out = 0;
  for (uint64_t i = 0; i < count; i++) {
    const gm_status status = gm_model_tensor(model, i, &tensor, err);
    if (status != GM_OK) return status;
    if (!load_wants(arguments, &tensor)) continue;
    wanted++;
    *out += tensor.bytes;
  }
  if (wanted || !arguments->tensors) return GM_OK;
  *err = (gm_error){.status = GM_ERR_NOT_FOUND};
  snprintf(err->message, sizeof err->message, "no tensor of %.200s has a name like \"%.100s\"", arguments->model,
           arguments->tensors);
  return err->status;
}

static bool load_progress(void *user, const gm_load_progress *progress) {
  (void)user;
  progress_show_bytes(progress->verifying ? "verifying" : "loading", progress->done_bytes, progress->total_bytes);
  return true;
}

/* Before anything is loaded: the first tensor would be blamed for it. */
static gm_status load_can_verify(const session *self, const load_arguments *arguments, gm_error *err) {
  if (!arguments->verify || gm_device_get_info(self->device)->api != GM_API_NULL) return GM_OK;
  *err = (gm_error){.status = GM_ERR_NOT_SUPPORTED, .message = "--verify: a null device has no memory to read back"};
  return err->status;
}

/* Reads what went over the device's link. Its rate is measured only where something did. */
typedef struct load_link {
  gm_transfer_totals totals;
  double rate; /* bytes per second; 0: unknown */
} load_link;

static void load_link_read(const session *self, load_link *link) {
  gm_transfer_links links = {.struct_size = sizeof links};
  link->totals = (gm_transfer_totals){.struct_size = sizeof link->totals};
  link->rate = 0;
  if (gm_device_transfer_totals(self->device, &link->totals, NULL) != GM_OK || !link->totals.up_bytes) return;
  if (gm_transfer_measure(self->device, &links, NULL) != GM_OK) return;
  if (gm_device_transfer_totals(self->device, &link->totals, NULL) == GM_OK) link->rate = links.up;
}

static gm_status load_run(session *self, const gm_model *model, load_arguments *arguments, gm_load_result *result,
                          load_check *check, load_link *link, gm_error *err) {
  gm_load_params params = {.struct_size = sizeof params,
                           .path = arguments->path,
                           .verify = arguments->verify,
                           .progress = load_progress,
                           .user = arguments,
                           .place = load_place};
  gm_loaded_model *loaded = NULL;
  record_file file;
  uint64_t bytes = 0;
  gm_status status = load_bytes(model, arguments, &bytes, err);
  if (status == GM_OK) status = session_begin(self, NULL, err);
  if (status == GM_OK) status = session_open(self, &arguments->choice, bytes, err);
  if (status == GM_OK) status = load_can_verify(self, arguments, err);
  if (status == GM_OK) status = gm_pool_create(self->device, NULL, &self->pool, err);
  if (status == GM_OK && arguments->record) {
    status = record_file_begin(&file, self->pool, arguments->record, arguments->model, err);
  }
  if (status == GM_OK && arguments->checks) load_check_begin(check, self, bytes);
  const bool recorded = status == GM_OK && arguments->record;
  if (status == GM_OK) status = gm_model_load(model, self->pool, &params, &loaded, result, err);
  progress_clear();
  if (status == GM_OK && arguments->checks) status = load_check_end(check, self, result, err);
  if (status == GM_OK) load_link_read(self, link);
  gm_loaded_model_release(loaded, NULL);
  return recorded ? record_file_end(&file, self->pool, status, NULL, err) : status;
}

/* ---- what it was ---- */

static double load_rate(const gm_load_result *result) {
  return result->seconds > 0 ? (double)result->bytes / result->seconds : 0;
}

static void load_json_placement(json_writer *out, const gm_device_info *info, const gm_load_result *result) {
  writer_open(out, "placement", '[');
  writer_open(out, NULL, '{');
  writer_text(out, "backend", info->backend);
  writer_u64(out, "device", info->index);
  writer_text(out, "name", info->name);
  writer_u64(out, "tensors", result->tensors);
  writer_u64(out, "bytes", result->bytes);
  writer_close(out);
  writer_close(out);
}

static void load_json_link(json_writer *out, const load_link *link) {
  writer_u64(out, "link_bytes", link->totals.up_bytes);
  if (link->rate > 0) {
    writer_double(out, "link_bytes_per_second", link->rate);
    writer_double(out, "link_utilisation", link->totals.up_utilisation);
    writer_double(out, "link_overhead", link->totals.overhead);
  } else {
    writer_null(out, "link_bytes_per_second");
    writer_null(out, "link_utilisation");
    writer_null(out, "link_overhead");
  }
}

static void load_json(json_writer *out, const gm_device_info *info, const gm_load_result *result,
                      const load_check *check, const load_link *link) {
  writer_open(out, NULL, '{');
  writer_u64(out, "tensors", result->tensors);
  writer_u64(out, "bytes", result->bytes);
  writer_double(out, "seconds", result->seconds);
  writer_double(out, "bytes_per_second", load_rate(result));
  writer_text(out, "path", load_paths[result->path]);
  load_json_placement(out, info, result);
  writer_bool(out, "verified", result->verified);
  writer_double(out, "verify_seconds", result->verify_seconds);
  writer_u64(out, "files_checked", result->summed_files);
  writer_u64(out, "files_unchecked", result->verified ? result->files - result->summed_files : 0);
  writer_u64(out, "fallback_bytes", result->fallback_bytes);
  writer_u64(out, "mapped_bytes", result->mapped_bytes);
  writer_u64(out, "gds_bytes", result->gds_bytes);
  writer_text(out, "why", result->why);
  writer_u64(out, "peak_host_bytes", result->peak_host_bytes);
  writer_u64(out, "driver_allocs", result->driver_allocs);
  writer_u64(out, "left_out", result->left_out);
  load_json_link(out, link);
  writer_bool(out, "simulated", info->simulated);
  if (check->done) load_check_json(out, check);
  writer_close(out);
}

static void load_text_link(table *rows, const load_link *link) {
  char rate[16];
  if (link->rate <= 0) return;
  gm_format_bytes((uint64_t)link->rate, rate, sizeof rate);
  table_row(rows);
  table_cell(rows, "link");
  table_cell(rows, "%.0f %% of %s/s, idle %.0f %% of the time", link->totals.up_utilisation * 100, rate,
             link->totals.overhead * 100);
}

/* Where a path was asked for, and not all went by it. */
static void load_text_why(table *rows, const load_arguments *arguments, const gm_load_result *result) {
  if (arguments->path == GM_LOAD_PATH_AUTO || !result->why[0]) return;
  table_row(rows);
  table_cell(rows, "another path");
  table_cell(rows, "%s", result->why);
}

static void load_text(FILE *file, const load_arguments *arguments, const gm_device_info *info,
                      const gm_load_result *result, const load_link *link) {
  table rows = {.rows = 0};
  char rate[16];
  gm_format_bytes((uint64_t)load_rate(result), rate, sizeof rate);
  fprintf(file, "%s on %s %u (%s)%s\n", arguments->model, info->backend, info->index, info->name,
          info->simulated ? ", simulated" : "");
  table_row(&rows);
  table_cell(&rows, "tensors");
  table_cell(&rows, "%llu", (unsigned long long)result->tensors);
  if (result->left_out) {
    table_row(&rows);
    table_cell(&rows, "left out");
    table_cell(&rows, "%llu", (unsigned long long)result->left_out);
  }
  table_row(&rows);
  table_cell(&rows, "bytes");
  table_bytes(&rows, result->bytes);
  table_row(&rows);
  table_cell(&rows, "loaded in");
  table_cell(&rows, "%.3f s, %s/s, path %s", result->seconds, rate, load_paths[result->path]);
  load_text_why(&rows, arguments, result);
  load_text_link(&rows, link);
  table_row(&rows);
  table_cell(&rows, "verified");
  if (result->verified) {
    table_cell(&rows, "every byte, in %.3f s", result->verify_seconds);
  } else {
    table_cell(&rows, "no (--verify was not given)");
  }
  if (result->summed_files) {
    table_row(&rows);
    table_cell(&rows, "files");
    table_cell(&rows, "%llu as their checksum files say, %llu without one", (unsigned long long)result->summed_files,
               (unsigned long long)(result->files - result->summed_files));
  }
  table_row(&rows);
  table_cell(&rows, "host memory used");
  table_bytes(&rows, result->peak_host_bytes);
  if (result->fallback_bytes) {
    table_row(&rows);
    table_cell(&rows, "not on the device");
    table_bytes(&rows, result->fallback_bytes);
  }
  table_print(&rows, file);
}

static int load_command(output *out, load_arguments *arguments) {
  session self = {.ctx = NULL};
  gm_error err = {.status = GM_OK}, closing = {.status = GM_OK};
  gm_load_result result = {.struct_size = sizeof result};
  load_check check = {.done = false};
  load_link link = {.rate = 0};
  gm_model *model = NULL;
  gm_status status = gm_model_open(NULL, arguments->model, &model, &err);
  if (status == GM_OK) status = load_run(&self, model, arguments, &result, &check, &link, &err);
  gm_model_close(model);
  gm_device_info info = {.struct_size = sizeof info};
  if (self.device) info = *gm_device_get_info(self.device);
  bool had_context = self.ctx != NULL;
  gm_status closed = session_end(&self, &closing);
  if (status != GM_OK) return had_context ? output_fail_typed(out, &err) : output_fail(out, &err);
  if (closed != GM_OK) return output_fail(out, &closing);
  if (out->json) {
    load_json(&out->writer, &info, &result, &check, &link);
  } else {
    load_text(out->file, arguments, &info, &result, &link);
    if (check.done) load_check_print(out->file, &check);
  }
  return GMEM_DONE;
}

int command_load(int argc, char **argv) {
  static const struct argp argp = {
      .options = load_options,
      .parser = load_parse,
      .args_doc = "MODEL",
      .doc =
          "Put every tensor of a safetensors, GGUF or NumPy model (a file, an index of "
          "several, a part of a split one, or their folder) into memory of a device, through a pool.\vExamples:\n  "
          "gmem load "
          "model.safetensors --verify\n  gmem load model.gguf --tensors 'blk.0.*'\n  gmem load model.gguf --backend "
          "vulkan --device 0"};
  load_arguments arguments = {.model = NULL};
  args_parse(&argp, 0, argc, argv, &arguments);
  output out;
  output_begin(&out, argv[0], arguments.json);
  return output_end(&out, load_command(&out, &arguments));
}
