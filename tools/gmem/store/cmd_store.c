/* gmem store: what the file of a disk tier holds, and whether it is whole. */
#include <stdlib.h>

#include "gm/size.h"
#include "tools/gmem/command.h"
#include "tools/gmem/options/args.h"
#include "tools/gmem/output/output.h"
#include "tools/gmem/output/progress.h"
#include "tools/gmem/output/table.h"
#include "tools/gmem/session/session.h"
#include "tools/gmem/store/tier_file.h"

typedef enum store_action { STORE_NONE = -1, STORE_LS, STORE_STAT, STORE_CHECK } store_action;

static const char *const store_actions[] = {"ls", "stat", "check", NULL}; /* as store_action */

typedef struct store_arguments {
  store_action action;
  const char *path;
  bool json;
} store_arguments;

static error_t store_parse(int key, char *text, struct argp_state *state) {
  store_arguments *arguments = state->input;
  switch (key) {
    case 'j': arguments->json = true; return 0;
    case ARGP_KEY_ARG:
      if (arguments->path) args_error(state, "one FILE at a time, \"%s\" is another", text);
      if (arguments->action == STORE_NONE) {
        arguments->action = (store_action)args_word(state, "ACTION", text, store_actions);
      } else {
        arguments->path = args_file(state, text);
      }
      return 0;
    case ARGP_KEY_END:
      if (arguments->action == STORE_NONE) args_error(state, "ls, stat or check is missing");
      if (!arguments->path) args_error(state, "FILE is missing");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- what all actions say ---- */

static void store_json_key(json_writer *out, const tier_key *key) {
  char *text = tier_key_text(key);
  writer_text_or_null(out, "key", text);
  writer_u64(out, "bytes", key->value_bytes);
  free(text);
}

static void store_line(FILE *file, const char *left, const tier_key *key) {
  char *text = tier_key_text(key);
  fprintf(file, "  %10s  %s\n", left, text ? text : "(no memory for the key)");
  free(text);
}

static void store_stat_json(json_writer *out, const char *path, const gm_tier_stats *stats) {
  writer_text(out, "file", path);
  writer_u64(out, "values", stats->values);
  writer_u64(out, "value_bytes", stats->value_bytes);
  writer_u64(out, "stored_bytes", stats->stored_bytes);
}

/* ---- ls ---- */

/* Bytes as they were put, bytes in the file and the codec. */
static void store_ls_line(FILE *out, const tier_file *file, const tier_key *key) {
  char size[24], stored[24] = "damaged", left[80];
  gm_tier_value_info info;
  const bool whole = tier_file_describe(file, key, &info) == GM_OK;
  gm_format_bytes(key->value_bytes, size, sizeof size);
  if (whole) gm_format_bytes(info.stored_bytes, stored, sizeof stored);
  snprintf(left, sizeof left, "%10s  %10s  %-4s", size, stored, whole ? tier_codec_name(info.codec) : "");
  store_line(out, left, key);
}

static void store_ls_json(json_writer *out, const tier_file *file, const tier_key *key) {
  gm_tier_value_info info;
  const bool whole = tier_file_describe(file, key, &info) == GM_OK;
  writer_open(out, NULL, '{');
  store_json_key(out, key);
  if (whole) writer_u64(out, "stored_bytes", info.stored_bytes);
  if (!whole) writer_null(out, "stored_bytes");
  writer_text_or_null(out, "codec", whole ? tier_codec_name(info.codec) : NULL);
  writer_close(out);
}

static int store_ls(output *out, const char *path, tier_file *file) {
  for (size_t i = 0; i < file->count && !out->json; i++) store_ls_line(out->file, file, &file->keys[i]);
  if (!out->json) return GMEM_DONE;
  writer_open(&out->writer, NULL, '{');
  writer_text(&out->writer, "file", path);
  writer_open(&out->writer, "values", '[');
  for (size_t i = 0; i < file->count; i++) store_ls_json(&out->writer, file, &file->keys[i]);
  writer_close(&out->writer);
  writer_close(&out->writer);
  return GMEM_DONE;
}

/* ---- stat ---- */

static int store_stat(output *out, const char *path, tier_file *file) {
  if (out->json) {
    writer_open(&out->writer, NULL, '{');
    store_stat_json(&out->writer, path, &file->stats);
    writer_u64(&out->writer, "damaged", file->stats.damaged);
    writer_close(&out->writer);
    return GMEM_DONE;
  }
  table rows = {.rows = 0};
  table_row(&rows);
  table_cell(&rows, "values");
  table_cell(&rows, "%llu", (unsigned long long)file->stats.values);
  table_row(&rows);
  table_cell(&rows, "their bytes");
  table_bytes(&rows, file->stats.value_bytes);
  table_row(&rows);
  table_cell(&rows, "the file");
  table_bytes(&rows, file->stats.stored_bytes);
  table_row(&rows);
  table_cell(&rows, "damaged places");
  table_cell(&rows, "%llu (check reads the values, too)", (unsigned long long)file->stats.damaged);
  table_print(&rows, out->file);
  return GMEM_DONE;
}

/* ---- check ---- */

typedef struct store_verdict {
  uint64_t whole, bad, read_bytes;
  uint64_t places; /* in the file that hold no whole record, so their keys are not known */
} store_verdict;

static void store_show_bad(output *out, const tier_key *key, const gm_error *err) {
  progress_clear();
  if (!out->json) {
    store_line(out->file, err->status == GM_ERR_DAMAGED ? "damaged" : "unread", key);
    return;
  }
  writer_open(&out->writer, NULL, '{');
  store_json_key(&out->writer, key);
  writer_text(&out->writer, "why", err->message);
  writer_close(&out->writer);
}

/* Reads every value, and shows those that could not be read. */
static store_verdict store_verify(output *out, tier_file *file) {
  store_verdict verdict = {.whole = 0};
  gm_tier_stats after = {.struct_size = sizeof after};
  uint64_t damaged = 0; /* values: the tier counts them, too */
  for (size_t i = 0; i < file->count; i++) {
    gm_error err = {.status = GM_OK};
    progress_show_bytes("checking", verdict.read_bytes, file->stats.value_bytes);
    const gm_status status = tier_file_check(file, &file->keys[i], &verdict.read_bytes, &err);
    if (status == GM_OK) {
      verdict.whole++;
    } else {
      verdict.bad++;
      damaged += status == GM_ERR_DAMAGED;
      store_show_bad(out, &file->keys[i], &err);
    }
  }
  progress_clear();
  if (gm_tier_get_stats(file->tier, &after, NULL) == GM_OK) verdict.places = after.damaged - damaged;
  return verdict;
}

static int store_judge(output *out, const store_verdict *verdict) {
  if (!verdict->bad && !verdict->places) return GMEM_DONE;
  return output_fail_text(out, "damaged or not readable: %llu of %llu values, and %llu places without a key",
                          (unsigned long long)verdict->bad, (unsigned long long)(verdict->whole + verdict->bad),
                          (unsigned long long)verdict->places);
}

static int store_check(output *out, const char *path, tier_file *file) {
  char size[24];
  if (!out->json) {
    const store_verdict verdict = store_verify(out, file);
    gm_format_bytes(verdict.read_bytes, size, sizeof size);
    fprintf(out->file, "whole: %llu of %llu values, %s were read\n", (unsigned long long)verdict.whole,
            (unsigned long long)(verdict.whole + verdict.bad), size);
    return store_judge(out, &verdict);
  }
  writer_open(&out->writer, NULL, '{');
  store_stat_json(&out->writer, path, &file->stats);
  writer_open(&out->writer, "damaged", '[');
  const store_verdict verdict = store_verify(out, file);
  writer_close(&out->writer);
  writer_u64(&out->writer, "whole", verdict.whole);
  writer_u64(&out->writer, "damaged_places", verdict.places);
  writer_u64(&out->writer, "read_bytes", verdict.read_bytes);
  const int code = store_judge(out, &verdict);
  writer_close(&out->writer);
  return code;
}

/* ---- the command ---- */

static int store_command(output *out, const store_arguments *arguments) {
  static int (*const run[])(output *, const char *, tier_file *) = {store_ls, store_stat, store_check};
  session self = {.ctx = NULL};
  tier_file file = {.tier = NULL};
  gm_error err = {.status = GM_OK}, closing = {.status = GM_OK};
  gm_status status = session_begin(&self, NULL, &err);
  if (status == GM_OK) status = tier_file_open(&file, self.ctx, arguments->path, &err);
  int code = status == GM_OK ? run[arguments->action](out, arguments->path, &file) : output_fail(out, &err);
  if (tier_file_close(&file, &closing) != GM_OK && code == GMEM_DONE) code = output_fail(out, &closing);
  if (session_end(&self, &closing) != GM_OK && code == GMEM_DONE) code = output_fail(out, &closing);
  return code;
}

int command_store(int argc, char **argv) {
  static const struct argp_option options[] = {ARGS_JSON_OPTION, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = store_parse,
      .args_doc = "ls|stat|check FILE",
      .doc =
          "What the file of a disk tier, such as a store's lowest tier, holds: ls lists keys, their bytes, the bytes "
          "that they take in the file, and how they are packed; stat sums "
          "them up, check reads every value and says what is damaged. The file is not changed, and nobody may "
          "write it meanwhile.\vExamples:\n  gmem store ls kv.gmtier\n  gmem store check kv.gmtier --json"};
  store_arguments arguments = {.action = STORE_NONE};
  args_parse(&argp, 0, argc, argv, &arguments);
  output out;
  output_begin(&out, argv[0], arguments.json);
  return output_end(&out, store_command(&out, &arguments));
}
