#include "tools/gmem/load/load_check.h"

#include "gm/size.h"
#include "tools/gmem/output/table.h"

/* gmem fit leaves as much free on a device. */
static const uint64_t load_check_margin = UINT64_C(256) << 20;

static uint64_t check_free(const session *with) {
  gm_memory_info info = {.struct_size = sizeof info};
  if (gm_device_get_info(with->device)->unified) return GM_UNKNOWN_BYTES;
  return gm_device_memory_info(with->device, &info, NULL) == GM_OK ? info.free_bytes : GM_UNKNOWN_BYTES;
}

void load_check_begin(load_check *self, const session *with, uint64_t bytes) {
  *self = (load_check){.done = true,
                       .predicted = {.weight_bytes = bytes, .bytes = bytes},
                       .free_before = check_free(with),
                       .free_after = GM_UNKNOWN_BYTES,
                       .result = {.struct_size = sizeof self->result}};
}

/* The driver's figure, where it has one; else what the pool took from it. */
static uint64_t check_total(const load_check *self) {
  const bool is_told = self->free_before != GM_UNKNOWN_BYTES && self->free_after != GM_UNKNOWN_BYTES;
  if (!is_told) return self->reserved_bytes;
  return self->free_before > self->free_after ? self->free_before - self->free_after : 0;
}

gm_status load_check_end(load_check *self, const session *with, const gm_load_result *loaded, gm_error *err) {
  gm_stats stats = {.struct_size = sizeof stats};
  const gm_status status = gm_pool_stats(with->pool, &stats);
  if (status != GM_OK) return status;
  self->free_after = check_free(with);
  self->reserved_bytes = stats.reserved_bytes;
  const gm_fit_taken taken = {.struct_size = sizeof taken,
                              .weight_bytes = loaded->bytes - loaded->fallback_bytes,
                              .total_bytes = check_total(self)};
  return gm_fit_check(&self->predicted, load_check_margin, &taken, &self->result, err);
}

static const char *check_word(gm_fit_outcome outcome) {
  static const char *const words[] = {"unknown", "equal", "less", "more"};
  return words[outcome];
}

/* Parts that the load of weights alone does not have are left out. */
static bool check_is_shown(const gm_fit_check_row *row) { return row->predicted_bytes || row->actual_bytes; }

void load_check_print(FILE *file, const load_check *self) {
  table rows = {.rows = 0};
  table_row(&rows);
  table_cell(&rows, "part");
  table_cell(&rows, "predicted");
  table_cell(&rows, "actual");
  table_cell(&rows, "outcome");
  for (int i = 0; i < GM_FIT_CHECK_ROWS; i++) {
    const gm_fit_check_row *row = &self->result.rows[i];
    if (!check_is_shown(row)) continue;
    table_row(&rows);
    table_cell(&rows, "%s", row->name);
    table_bytes(&rows, row->predicted_bytes);
    table_bytes(&rows, row->actual_bytes);
    table_cell(&rows, "%s", check_word(row->outcome));
  }
  table_row(&rows);
  table_cell(&rows, "unaccounted");
  table_cell(&rows, "-");
  table_bytes(&rows, self->result.unaccounted_bytes);
  fprintf(file, "\nCheck: %s.\n", self->result.text);
  table_print(&rows, file);
}

void load_check_json(json_writer *out, const load_check *self) {
  writer_open(out, "fit_check", '{');
  writer_text(out, "text", self->result.text);
  writer_bool(out, "within", self->result.within);
  writer_bytes(out, "margin_bytes", load_check_margin);
  writer_bytes(out, "unaccounted_bytes", self->result.unaccounted_bytes);
  writer_bytes(out, "reserved_bytes", self->reserved_bytes);
  writer_bytes(out, "free_before_bytes", self->free_before);
  writer_bytes(out, "free_after_bytes", self->free_after);
  writer_open(out, "parts", '[');
  for (int i = 0; i < GM_FIT_CHECK_ROWS; i++) {
    const gm_fit_check_row *row = &self->result.rows[i];
    writer_open(out, NULL, '{');
    writer_text(out, "part", row->name);
    writer_bytes(out, "predicted_bytes", row->predicted_bytes);
    writer_bytes(out, "actual_bytes", row->actual_bytes);
    writer_text(out, "outcome", check_word(row->outcome));
    writer_close(out);
  }
  writer_close(out);
  writer_close(out);
}
