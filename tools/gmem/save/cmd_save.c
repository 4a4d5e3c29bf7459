/* gmem save: a model in one new file, of the same format or of another. */
#include "gm/save.h"
#include "gm/size.h"
#include "tools/gmem/command.h"
#include "tools/gmem/options/args.h"
#include "tools/gmem/output/output.h"
#include "tools/gmem/output/progress.h"
#include "tools/gmem/output/table.h"

typedef struct save_arguments {
  const char *model, *file;
  bool checksums;
  bool json;
} save_arguments;

enum { SAVE_CHECKSUMS = 0x100 };

static error_t save_parse(int key, char *text, struct argp_state *state) {
  save_arguments *arguments = state->input;
  switch (key) {
    case SAVE_CHECKSUMS: arguments->checksums = true; return 0;
    case 'j': arguments->json = true; return 0;
    case ARGP_KEY_ARG:
      if (arguments->file) args_error(state, "a MODEL and a FILE, \"%s\" is one more", text);
      *(arguments->model ? &arguments->file : &arguments->model) = args_file(state, text);
      return 0;
    case ARGP_KEY_END:
      if (!arguments->file) args_error(state, "%s is missing", arguments->model ? "FILE" : "MODEL");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option save_options[] = {
    {"checksums", SAVE_CHECKSUMS, NULL, 0, "Write FILE.gmsum, too, for gmem load --verify", 0}, ARGS_JSON_OPTION, {0}};

static bool save_progress(void *user, const gm_save_progress *progress) {
  (void)user;
  progress_show_bytes("saving", progress->done_bytes, progress->total_bytes);
  return true;
}

static gm_status save_run(const save_arguments *arguments, gm_save_result *result, gm_error *err) {
  const gm_save_params params = {
      .struct_size = sizeof params, .checksums = arguments->checksums, .progress = save_progress};
  gm_model *model = NULL;
  gm_status status = gm_model_open(NULL, arguments->model, &model, err);
  if (status == GM_OK) status = gm_model_save(model, NULL, arguments->file, &params, result, err);
  progress_clear();
  gm_model_close(model);
  return status;
}

static double save_rate(const gm_save_result *result) {
  return result->seconds > 0 ? (double)result->file_bytes / result->seconds : 0;
}

/* The share of the time in which the disk had data to write. */
static double save_utilisation(const gm_save_result *result) {
  return result->seconds > 0 ? result->write_seconds / result->seconds : 0;
}

static void save_json(json_writer *out, const gm_save_result *result) {
  writer_open(out, NULL, '{');
  writer_u64(out, "tensors", result->tensors);
  writer_u64(out, "bytes", result->bytes);
  writer_u64(out, "file_bytes", result->file_bytes);
  writer_u64(out, "direct_bytes", result->direct_bytes);
  writer_text(out, "why_not_direct", result->why);
  writer_u64(out, "values", result->values);
  writer_u64(out, "values_left_out", result->values_left_out);
  writer_u64(out, "peak_host_bytes", result->peak_host_bytes);
  writer_double(out, "seconds", result->seconds);
  writer_double(out, "bytes_per_second", save_rate(result));
  writer_double(out, "write_seconds", result->write_seconds);
  writer_double(out, "write_utilisation", save_utilisation(result));
  writer_close(out);
}

static void save_text(FILE *file, const char *path, const gm_save_result *result) {
  table rows = {.rows = 0};
  char rate[16];
  gm_format_bytes((uint64_t)save_rate(result), rate, sizeof rate);
  fprintf(file, "%s\n", path);
  table_row(&rows);
  table_cell(&rows, "tensors");
  table_cell(&rows, "%llu", (unsigned long long)result->tensors);
  table_row(&rows);
  table_cell(&rows, "bytes");
  table_bytes(&rows, result->file_bytes);
  table_row(&rows);
  table_cell(&rows, "saved in");
  table_cell(&rows, "%.3f s, %s/s", result->seconds, rate);
  table_row(&rows);
  table_cell(&rows, "disk");
  table_cell(&rows, "writes %.0f %% of the time", save_utilisation(result) * 100);
  table_row(&rows);
  table_cell(&rows, "past the cache");
  table_bytes(&rows, result->direct_bytes);
  if (result->why[0]) table_cell(&rows, "%s", result->why);
  table_row(&rows);
  table_cell(&rows, "values");
  table_cell(&rows, "%llu", (unsigned long long)result->values);
  if (result->values_left_out) {
    table_row(&rows);
    table_cell(&rows, "values left out");
    table_cell(&rows, "%llu, which the format cannot hold", (unsigned long long)result->values_left_out);
  }
  table_print(&rows, file);
}

static int save_command(output *out, const save_arguments *arguments) {
  gm_error err = {.status = GM_OK};
  gm_save_result result = {.struct_size = sizeof result};
  if (save_run(arguments, &result, &err) != GM_OK) return output_fail(out, &err);
  if (out->json) {
    save_json(&out->writer, &result);
  } else {
    save_text(out->file, arguments->file, &result);
  }
  return GMEM_DONE;
}

int command_save(int argc, char **argv) {
  static const struct argp argp = {
      .options = save_options,
      .parser = save_parse,
      .args_doc = "MODEL FILE",
      .doc =
          "Save a model (a file, an index of several, a part of a split one, or their folder) to one new file. The end "
          "of its name says the format: .gguf, .npz, .npy, else safetensors. Nothing is quantised. FILE is the "
          "earlier file until the new one is whole and on the disk.\vExamples:\n  gmem save "
          "model.safetensors.index.json one.safetensors\n  gmem save model-00001-of-00005.gguf whole.gguf"};
  save_arguments arguments = {.model = NULL};
  args_parse(&argp, 0, argc, argv, &arguments);
  output out;
  output_begin(&out, argv[0], arguments.json);
  return output_end(&out, save_command(&out, &arguments));
}
