/* The answer for people: a verdict, a picture, what would help; with --explain every term. The same as JSON. */
#include <inttypes.h>
#include <string.h>

#include "gm/size.h"
#include "tools/gmem/fit/fit.h"
#include "tools/gmem/fit/fit_kinds.h"
#include "tools/gmem/fit/fit_picture.h"
#include "tools/gmem/fit/fit_standing.h"
#include "tools/gmem/output/json.h"
#include "tools/gmem/output/style.h"
#include "tools/gmem/output/table.h"

static const char *show_bytes(uint64_t bytes, char *text, size_t size) {
  if (bytes == GM_UNKNOWN_BYTES) return "unknown";
  gm_format_bytes(bytes, text, size);
  return text;
}

/* ---- text ---- */

static const char *show_method(const fit_question *self) {
  static const char *const words[] = {"operation by operation", "formula", "interval only"};
  return words[self->estimate.method];
}

/* Where no file holds the weights, the type that was counted with, and who said so. */
static void show_weights(char *text, size_t capacity, const fit_question *self) {
  const gm_dtype asked = self->settings.weight_type, stated = self->config.weight_type;
  if (self->estimate.weights_exact) {
    text[0] = '\0';
  } else if (asked) {
    snprintf(text, capacity, " (from dimensions, weights %s)", gm_dtype_name(asked));
  } else if (stated) {
    snprintf(text, capacity, " (from dimensions, weights %s as config.json says)", gm_dtype_name(stated));
  } else {
    snprintf(text, capacity, " (from dimensions, weights f16 assumed: --dtype sets another type)");
  }
}

static void show_parameters_of(FILE *file, const fit_question *self) {
  if (fit_is_unknown(self, GM_ESTIMATE_WEIGHTS)) {
    fprintf(file, "%s, parameters unknown, ", self->config.architecture);
  } else {
    fprintf(file, "%s, %.2f billion parameters, ", self->config.architecture, (double)self->estimate.parameters / 1e9);
  }
}

static void show_head(FILE *file, const fit_question *self, const fit_sums *sums) {
  char total[24], low[24], high[24], weights[24], cache[24], how[80];
  uint32_t sequences = self->settings.sequences ? self->settings.sequences : 1;
  show_weights(how, sizeof how, self);
  show_parameters_of(file, self);
  fprintf(file, "%s%s\n", show_bytes(sums->model_bytes, weights, sizeof weights), how);
  fprintf(file, "context %" PRIu64 ", %" PRIu32 " sequence%s, cache %s %s\n", self->estimate.context, sequences,
          sequences == 1 ? "" : "s", self->kv_names[0], show_bytes(sums->kv_bytes, cache, sizeof cache));
  fprintf(file, "total %s; process total %s to %s\n", show_bytes(sums->total_bytes, total, sizeof total),
          show_bytes(sums->low_bytes, low, sizeof low), show_bytes(sums->high_bytes, high, sizeof high));
  fit_standing_print(file, self);
  fputc('\n', file);
}

/* The context that fits, and apart from it the one that the model was made for. */
static void show_longest(FILE *file, const fit_question *self) {
  if (!self->max_context_fits || self->config.encoder_only) return; /* an encoder keeps no context */
  fprintf(file, "Longest context that fits: %" PRIu64 "%s", self->max_context_fits,
          self->max_context_fits == FIT_FARTHEST ? " or more" : "");
  if (self->config.context) fprintf(file, " (trained for %" PRIu64 ")", self->config.context);
  fprintf(file, ".\n");
}

static void show_verdict(FILE *file, const fit_question *self) {
  static const style_colour colours[] = {STYLE_RED, STYLE_GREEN, STYLE_YELLOW};
  char text[FIT_VERDICT];
  fit_verdict_text(self, text, sizeof text);
  const int answer = (int)strcspn(text, ":");
  fprintf(file, "%s%.*s%s%s\n", style_begin(file, colours[self->verdict]), answer, text, style_end(file),
          text + answer);
}

/* With the option that asks for it, where it is one of gmem's. */
static void show_change(FILE *file, const fit_question *self, const gm_fit_change *change) {
  fprintf(file, "  %s", change->text);
  if (change->kind == GM_FIT_SMALLER_KV) fprintf(file, " (--kv-type %s)", self->kv_names[change->setting.kv_choice]);
  if (change->kind == GM_FIT_SHORTER_CONTEXT) fprintf(file, " (--ctx %" PRIu64 ")", change->setting.context);
  if (change->kind == GM_FIT_EXPERTS_ON_HOST && !change->plan.host.layer_count) {
    fprintf(file, " (--n-cpu-moe %" PRIu32 ")", change->plan.host_expert_layers);
  }
  fputc('\n', file);
}

static void show_help(FILE *file, const fit_question *self) {
  if (self->estimate.standing == GM_STANDING_UNKNOWN) return;
  if (!self->plan.fits) fprintf(file, "%s.\n", self->plan.reason);
  show_longest(file, self);
  if (self->change_count) fprintf(file, "What would help, one of:\n");
  for (uint32_t i = 0; i < self->change_count; i++) show_change(file, self, &self->changes[i]);
}

static void show_command(FILE *file, const fit_question *self) {
  static char line[FIT_COMMAND];
  if (!fit_command(self, line, sizeof line)) return;
  fprintf(file, "\nWith llama.cpp%s:\n  %s\n", self->plan.fits ? "" : ", as placed above", line);
}

static void show_term(table *rows, const char *what, uint64_t host, uint64_t device, const char *how) {
  table_row(rows);
  table_cell(rows, "%s", what);
  table_cell(rows, "%" PRIu64, host);
  table_cell(rows, "%" PRIu64, device);
  table_cell(rows, "%s", how);
}

static void show_terms(FILE *file, const fit_question *self) {
  const gm_memory_estimate *estimate = &self->estimate;
  table rows = {.rows = 0};
  char cells[TABLE_CELL];
  snprintf(cells, sizeof cells, "%" PRIu64 " cells, %" PRIu64 " of a window, %" PRIu64 " streams", estimate->cells,
           estimate->window_cells, estimate->streams);
  table_row(&rows);
  table_cell(&rows, "bytes");
  table_cell(&rows, "host");
  table_cell(&rows, "device");
  table_cell(&rows, "how");
  const char *weights = estimate->weights_exact ? "tensor by tensor" : "from dimensions";
  show_term(&rows, "weights", estimate->host_weights, estimate->device_weights, weights);
  show_term(&rows, "cache", estimate->host_kv, estimate->device_kv, cells);
  show_term(&rows, "compute", estimate->host_compute.bytes, estimate->device_compute.bytes, show_method(self));
  show_term(&rows, "  at least", estimate->host_compute.low, estimate->device_compute.low, "");
  show_term(&rows, "  at most", estimate->host_compute.high, estimate->device_compute.high, "");
  show_term(&rows, "output", estimate->output, 0, "logits, and embeddings if wanted");
  show_term(&rows, "overhead", 0, self->overhead_bytes, "driver's context and workspaces, of the devices used");
  fputc('\n', file);
  table_print(&rows, file);
}

static void show_place(table *rows, const char *backend, uint32_t index, const gm_fit_part *part,
                       const gm_fit_device *room) {
  uint64_t parts = part->weight_bytes + part->kv_bytes + part->compute_bytes;
  table_row(rows);
  table_cell(rows, "%s %" PRIu32, backend, index);
  table_cell(rows, "%" PRIu32, part->layer_count);
  table_cell(rows, "%" PRIu64, part->weight_bytes);
  table_cell(rows, "%" PRIu64, part->kv_bytes);
  table_cell(rows, "%" PRIu64, part->compute_bytes);
  table_cell(rows, "%" PRIu64, part->bytes - parts);
  table_cell(rows, "%" PRIu64, room->margin_bytes);
  if (part->headroom_bytes == GM_UNKNOWN_BYTES) {
    table_cell(rows, "no limit");
  } else {
    table_cell(rows, "%" PRIu64, part->headroom_bytes);
  }
}

/* Place by place. For the host, memory that lies there in any case is its overhead. */
static void show_places(FILE *file, const fit_question *self) {
  static const char *const heads[] = {"place", "layers", "weights", "cache", "compute", "overhead", "margin", "free"};
  table rows = {.rows = 0};
  table_row(&rows);
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) table_cell(&rows, "%s", heads[i]);
  for (uint32_t i = 0; i < self->device_count; i++) {
    show_place(&rows, self->devices[i].backend, self->devices[i].index, &self->parts[i], &self->room[i]);
  }
  const gm_fit_device host = {.margin_bytes = 0};
  show_place(&rows, "host", 0, &self->plan.host, &host);
  fputc('\n', file);
  table_print(&rows, file);
}

void fit_print(FILE *file, const fit_question *self, bool explains) {
  fit_sums sums = fit_sum(self);
  show_verdict(file, self);
  show_head(file, self, &sums);
  fit_picture(file, self);
  fputc('\n', file);
  show_help(file, self);
  show_command(file, self);
  if (!explains) return;
  show_terms(file, self);
  show_places(file, self);
}

/* ---- JSON ---- */

/* Null where the rules of the part are unknown. */
static void show_json_term(json_writer *out, const fit_question *self, gm_estimate_part_kind part, const char *key,
                           uint64_t bytes) {
  writer_bytes(out, key, fit_is_unknown(self, part) ? GM_UNKNOWN_BYTES : bytes);
}

/* `room`: NULL of the host. Where a part is unknown, so is their sum, and how many layers there is room for. */
static void show_json_part(json_writer *out, const fit_question *self, const char *backend, uint32_t device,
                           const gm_fit_part *part, const gm_fit_device *room, uint64_t free_bytes) {
  const bool known = self->estimate.standing != GM_STANDING_UNKNOWN;
  writer_open(out, NULL, '{');
  writer_text(out, "backend", backend);
  writer_u64(out, "device", device);
  writer_bytes(out, "layers", known ? part->layer_count : GM_UNKNOWN_BYTES);
  writer_bytes(out, "bytes", known ? part->bytes : GM_UNKNOWN_BYTES);
  writer_bytes(out, "headroom_bytes", known ? part->headroom_bytes : GM_UNKNOWN_BYTES);
  writer_bytes(out, "weight_bytes", known ? part->weight_bytes : GM_UNKNOWN_BYTES);
  writer_bytes(out, "kv_cache_bytes", known ? part->kv_bytes : GM_UNKNOWN_BYTES);
  writer_bytes(out, "activation_bytes", known ? part->compute_bytes : GM_UNKNOWN_BYTES);
  writer_bytes(out, "free_bytes", free_bytes);
  writer_bytes(out, "margin_bytes", room ? room->margin_bytes : 0);
  writer_bytes(out, "overhead_bytes", room && part->layer_count ? room->overhead_bytes : 0);
  writer_text_or_null(out, "why", part->why);
  writer_close(out);
}

static void show_json_terms(json_writer *out, const fit_question *self) {
  const gm_memory_estimate *estimate = &self->estimate;
  writer_open(out, "terms", '{');
  show_json_term(out, self, GM_ESTIMATE_WEIGHTS, "host_weight_bytes", estimate->host_weights);
  show_json_term(out, self, GM_ESTIMATE_WEIGHTS, "device_weight_bytes", estimate->device_weights);
  show_json_term(out, self, GM_ESTIMATE_CACHE, "host_kv_cache_bytes", estimate->host_kv);
  show_json_term(out, self, GM_ESTIMATE_CACHE, "device_kv_cache_bytes", estimate->device_kv);
  show_json_term(out, self, GM_ESTIMATE_COMPUTE, "host_compute_bytes", estimate->host_compute.bytes);
  show_json_term(out, self, GM_ESTIMATE_COMPUTE, "host_compute_low_bytes", estimate->host_compute.low);
  show_json_term(out, self, GM_ESTIMATE_COMPUTE, "host_compute_high_bytes", estimate->host_compute.high);
  show_json_term(out, self, GM_ESTIMATE_COMPUTE, "device_compute_bytes", estimate->device_compute.bytes);
  show_json_term(out, self, GM_ESTIMATE_COMPUTE, "device_compute_low_bytes", estimate->device_compute.low);
  show_json_term(out, self, GM_ESTIMATE_COMPUTE, "device_compute_high_bytes", estimate->device_compute.high);
  writer_u64(out, "cells", estimate->cells);
  writer_u64(out, "window_cells", estimate->window_cells);
  writer_u64(out, "streams", estimate->streams);
  writer_u64(out, "micro_batch", estimate->micro_batch);
  writer_close(out);
}

/* NULL: the files hold the weights, each tensor with a type of its own. */
static const char *show_weight_type(const fit_question *self) {
  if (self->estimate.weights_exact) return NULL;
  if (self->settings.weight_type) return gm_dtype_name(self->settings.weight_type);
  return gm_dtype_name(self->config.weight_type ? self->config.weight_type : GM_DTYPE_F16);
}

static void show_json_sums(json_writer *out, const fit_question *self) {
  fit_sums sums = fit_sum(self);
  writer_text(out, "architecture", self->config.architecture);
  writer_text(out, "method", show_method(self));
  writer_bool(out, "weights_exact", self->estimate.weights_exact);
  fit_standing_json(out, self);
  writer_text_or_null(out, "weight_type", show_weight_type(self));
  writer_bool(out, "weight_type_assumed",
              !self->estimate.weights_exact && !self->settings.weight_type && !self->config.weight_type);
  writer_bytes(out, "parameters",
               fit_is_unknown(self, GM_ESTIMATE_WEIGHTS) ? GM_UNKNOWN_BYTES : self->estimate.parameters);
  writer_bytes(out, "model_bytes", sums.model_bytes);
  writer_bytes(out, "tied_bytes", self->estimate.tied_weights);
  writer_bytes(out, "kv_cache_bytes", sums.kv_bytes);
  writer_bytes(out, "activation_bytes", sums.activation_bytes);
  writer_bytes(out, "output_bytes", self->estimate.output);
  writer_bytes(out, "host_bytes", sums.host_bytes);
  writer_bytes(out, "overhead_bytes", self->overhead_bytes);
  writer_bytes(out, "total_bytes", sums.total_bytes);
  writer_bytes(out, "low_bytes", sums.low_bytes);
  writer_bytes(out, "high_bytes", sums.high_bytes);
}

static void show_json_verdict(json_writer *out, const fit_question *self) {
  char text[FIT_VERDICT];
  fit_verdict_text(self, text, sizeof text);
  if (self->verdict == FIT_UNKNOWN) {
    writer_null(out, "fits");
  } else {
    writer_bool(out, "fits", self->verdict == FIT_YES);
  }
  writer_text(out, "verdict", text);
  const bool is_counted = self->estimate.standing != GM_STANDING_UNKNOWN;
  const uint64_t lack = self->verdict == FIT_UNKNOWN ? self->lack_bytes : self->plan.lack_bytes;
  writer_bytes(out, "lack_bytes", is_counted ? lack : GM_UNKNOWN_BYTES);
  writer_text_or_null(out, "reason", self->plan.fits || !is_counted ? NULL : self->plan.reason);
}

static void show_json_beside(json_writer *out, const fit_question *self) {
  writer_open(out, "beside", '[');
  for (uint32_t i = 0; i < self->beside_count; i++) {
    const fit_beside *it = &self->beside[i];
    writer_open(out, NULL, '{');
    writer_text(out, "what", fit_beside_word(it->kind));
    writer_text(out, "file", it->path);
    writer_bytes(out, "device_bytes", it->why[0] ? GM_UNKNOWN_BYTES : it->device_bytes);
    writer_bytes(out, "known_bytes", it->device_bytes);
    writer_bytes(out, "host_bytes", it->host_bytes);
    writer_text_or_null(out, "why", it->why);
    writer_close(out);
  }
  writer_close(out);
}

static void show_json_kinds(json_writer *out, const fit_question *self) {
  fit_kind kinds[FIT_KINDS];
  const uint32_t count = fit_kinds(self, kinds);
  writer_open(out, "kinds", '[');
  for (uint32_t i = 0; i < count; i++) {
    writer_open(out, NULL, '{');
    writer_text(out, "kind", kinds[i].name);
    writer_u64(out, "layers", kinds[i].layers);
    show_json_term(out, self, GM_ESTIMATE_WEIGHTS, "weight_bytes", kinds[i].weight_bytes);
    show_json_term(out, self, GM_ESTIMATE_WEIGHTS, "expert_bytes", kinds[i].expert_bytes);
    show_json_term(out, self, GM_ESTIMATE_CACHE, "kv_cache_bytes", kinds[i].kv_bytes);
    writer_close(out);
  }
  writer_close(out);
}

void fit_json(json_writer *out, const fit_question *self, bool explains) {
  static char line[FIT_COMMAND];
  show_json_sums(out, self);
  writer_u64(out, "context", self->estimate.context);
  show_json_verdict(out, self);
  writer_open(out, "placement", '[');
  for (uint32_t i = 0; i < self->device_count; i++) {
    const gm_fit_device *room = &self->room[i];
    show_json_part(out, self, self->devices[i].backend, self->devices[i].index, &self->parts[i], room,
                   room->free_bytes);
  }
  show_json_part(out, self, "cpu", 0, &self->plan.host, NULL, self->host_free_bytes);
  writer_close(out);
  show_json_kinds(out, self);
  show_json_beside(out, self);
  const bool known = self->estimate.standing != GM_STANDING_UNKNOWN;
  writer_bytes(out, "max_context", known ? self->max_context : GM_UNKNOWN_BYTES);
  writer_bytes(out, "max_context_fits", known ? self->max_context_fits : GM_UNKNOWN_BYTES);
  if (self->config.context) {
    writer_u64(out, "trained_context", self->config.context);
  } else {
    writer_null(out, "trained_context");
  }
  writer_text_or_null(out, "command", fit_command(self, line, sizeof line) ? line : NULL);
  writer_open(out, "changes", '[');
  for (uint32_t i = 0; i < self->change_count; i++) writer_text(out, NULL, self->changes[i].text);
  writer_close(out);
  if (explains) show_json_terms(out, self);
}

/* ---- weights alone ---- */

static const char show_unknown[] = "Unknown: the weights alone are known.";

static uint64_t show_parameters(const fit_question *self) {
  uint64_t stored = 0;
  return gm_model_parameter_count(self->model, &stored, NULL, NULL) == GM_OK ? stored : 0;
}

void fit_print_weights(FILE *file, const fit_question *self) {
  char text[24];
  fprintf(file, "%s\n", show_unknown);
  fprintf(file, "%.2f billion parameters, %s; the rest needs the model's dimensions\n",
          (double)show_parameters(self) / 1e9, show_bytes(gm_model_tensor_bytes(self->model), text, sizeof text));
}

void fit_json_weights(json_writer *out, const fit_question *self) {
  static const char *const unknown[] = {
      "kv_cache_bytes", "activation_bytes", "output_bytes",    "host_bytes", "overhead_bytes",
      "total_bytes",    "low_bytes",        "high_bytes",      "fits",       "lack_bytes",
      "max_context",    "max_context_fits", "trained_context", "command"};
  writer_u64(out, "parameters", show_parameters(self));
  writer_bytes(out, "model_bytes", gm_model_tensor_bytes(self->model));
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) writer_null(out, unknown[i]);
  writer_text(out, "verdict", show_unknown);
  writer_text(out, "standing", "unknown");
  writer_open(out, "standing_of", '{');
  writer_text(out, "weights", "exact");
  writer_text(out, "cache", "unknown");
  writer_text(out, "compute", "unknown");
  writer_close(out);
  writer_open(out, "why", '[');
  writer_text(out, NULL, "the model's dimensions are not known");
  writer_close(out);
  writer_open(out, "placement", '[');
  writer_close(out);
}
