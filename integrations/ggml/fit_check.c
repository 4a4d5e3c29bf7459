/* The prediction for this device, beside what a program took of it. The prediction is the plan that `gmem fit
 * --json` prints before anything is loaded: GGML_GM_PLAN is its file. */
#include <ggml-impl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml_gm.h"
#include "gm/fit_check.h"

enum { PLAN_MOST = 1 << 20 };

/* Buffers of the device that live, and the most bytes that each use of them had at once. ggml says what a buffer is for
 * after it has made it, so its uses are summed when a graph runs. */
static struct {
  bool on;
  gm_fit_part predicted;
  uint64_t margin;
  gm_ggml_buffer *first;
  uint64_t weights, cache, compute;
} check;

/* The number behind `key` in the text from `from` up to `end`. */
static bool read_number(const char *from, const char *end, const char *key, uint64_t *out) {
  char quoted[64], *after;
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *at = strstr(from, quoted);
  if (!at || at > end) return false;
  at += strlen(quoted);
  *out = strtoull(at, &after, 10);
  return after != at;
}

/* The first place of the plan is this device: gmem was asked about one. */
static bool read_plan(const char *text) {
  gm_fit_part *part = &check.predicted;
  const char *from = strstr(text, "\"placement\"");
  const char *end = from ? strchr(from, '}') : NULL;
  return end && read_number(from, end, "bytes", &part->bytes) &&
         read_number(from, end, "weight_bytes", &part->weight_bytes) &&
         read_number(from, end, "kv_cache_bytes", &part->kv_bytes) &&
         read_number(from, end, "activation_bytes", &part->compute_bytes) &&
         read_number(from, end, "margin_bytes", &check.margin);
}

bool gm_ggml_check_begin(const char *path) {
  static char text[PLAN_MOST];
  if (!path) return true;
  FILE *file = fopen(path, "r");
  const size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file) fclose(file);
  text[length] = '\0';
  check.on = read_plan(text);
  if (!check.on) GGML_LOG_ERROR("ggml-gm: GGML_GM_PLAN=%s: no plan of gmem fit --json\n", path);
  return check.on;
}

void gm_ggml_check_add(ggml_backend_buffer_t lent, gm_ggml_buffer *buffer) {
  if (!check.on || buffer->place == GM_GGML_FALLBACK || lent->buft != gm_ggml_device_type()) return;
  buffer->lent = lent;
  buffer->next = check.first;
  check.first = buffer;
}

void gm_ggml_check_remove(const gm_ggml_buffer *buffer) {
  for (gm_ggml_buffer **at = &check.first; *at; at = &(*at)->next) {
    if (*at != buffer) continue;
    *at = buffer->next;
    return;
  }
}

static void raise_to(uint64_t *most, uint64_t bytes) {
  if (bytes > *most) *most = bytes;
}

void gm_ggml_check_graph(void) {
  uint64_t weights = 0, cache = 0, compute = 0;
  for (const gm_ggml_buffer *buffer = check.first; buffer; buffer = buffer->next) {
    const enum ggml_backend_buffer_usage usage = buffer->lent->usage;
    const bool is_weights = usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
    *(is_weights ? &weights : usage == GGML_BACKEND_BUFFER_USAGE_COMPUTE ? &compute : &cache) += buffer->bytes;
  }
  raise_to(&check.weights, weights);
  raise_to(&check.cache, cache);
  raise_to(&check.compute, compute);
}

static void print_row(const gm_fit_check_row *row) {
  static const char *const words[] = {"unknown", "equal", "less", "more"};
  fprintf(stderr, "ggml-gm: check: %s: predicted %" PRIu64 ", actual ", row->name, row->predicted_bytes);
  if (row->actual_bytes == GM_UNKNOWN_BYTES) {
    fprintf(stderr, "unknown\n");
  } else {
    fprintf(stderr, "%" PRIu64 ", %s\n", row->actual_bytes, words[row->outcome]);
  }
}

void gm_ggml_check_print(void) {
  gm_stats stats = {.struct_size = sizeof stats};
  gm_fit_check_result result = {.struct_size = sizeof result};
  if (!check.on || gm_pool_stats(gm_ggml_self.pool, &stats) != GM_OK) return;
  const gm_fit_taken taken = {.struct_size = sizeof taken,
                              .weight_bytes = check.weights,
                              .kv_bytes = check.cache,
                              .compute_bytes = check.compute,
                              .total_bytes = stats.peak_reserved_bytes};
  gm_error err = {.status = GM_OK};
  if (gm_fit_check(&check.predicted, check.margin, &taken, &result, &err) != GM_OK) {
    GGML_LOG_ERROR("ggml-gm: GGML_GM_PLAN: %s\n", err.message);
    return;
  }
  for (int i = 0; i < GM_FIT_CHECK_ROWS; i++) print_row(&result.rows[i]);
  fprintf(stderr, "ggml-gm: check: unaccounted %" PRIu64 "; %s\n", result.unaccounted_bytes, result.text);
}
