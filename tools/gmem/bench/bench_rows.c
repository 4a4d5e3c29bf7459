#include "tools/gmem/bench/bench_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool bench_rows_add(bench_rows *rows, const bench_row *row) {
  if ((rows->count & (rows->count - 1)) == 0) { /* full at powers of two */
    bench_row *larger = realloc(rows->list, (rows->count ? 2 * rows->count : 1) * sizeof *larger);
    if (!larger) return false;
    rows->list = larger;
  }
  rows->list[rows->count++] = *row;
  return true;
}

/* Below 1: gm takes less. */
static double row_ratio(const bench_row *row) {
  return row->peer_value > 0 ? row->value / row->peer_value : (double)NAN;
}

static void row_number(json_writer *out, const char *key, double value) {
  if (isfinite(value)) {
    writer_double(out, key, value);
  } else {
    writer_null(out, key);
  }
}

void bench_rows_json(const bench_rows *rows, json_writer *out) {
  writer_open(out, "rows", '[');
  for (size_t i = 0; i < rows->count; i++) {
    const bench_row *row = &rows->list[i];
    writer_open(out, NULL, '{');
    writer_text(out, "group", row->group);
    writer_text(out, "case", row->name);
    row_number(out, "value", row->value);
    writer_text(out, "unit", row->unit);
    writer_text_or_null(out, "peer", row->peer);
    row_number(out, "peer_value", row->peer_value);
    row_number(out, "ratio", row_ratio(row));
    if (strcmp(row->group, "transfer") == 0) {
      row_number(out, "utilisation", row->utilisation);
      row_number(out, "overhead", row->overhead);
      row_number(out, "overlap", row->overlap);
      row_number(out, "useful", row->useful);
    }
    writer_close(out);
  }
  writer_close(out);
}

static void row_text_value(double value, FILE *file) {
  if (isfinite(value)) {
    fprintf(file, "  %10.*f", value < 10 ? 3 : 1, value);
  } else {
    fprintf(file, "  %10s", "-");
  }
}

void bench_rows_text(const bench_rows *rows, FILE *file) {
  fprintf(file, "%-11s %-44s %10s  %-10s  %-20s %10s  %10s\n", "group", "case", "gm", "unit", "peer", "its value",
          "ratio");
  for (size_t i = 0; i < rows->count; i++) {
    const bench_row *row = &rows->list[i];
    fprintf(file, "%-11s %-42s", row->group, row->name);
    row_text_value(row->value, file);
    fprintf(file, "  %-10s  %-18s", row->unit, row->peer[0] ? row->peer : "-");
    row_text_value(row->peer_value, file);
    row_text_value(row_ratio(row), file);
    fputc('\n', file);
  }
}

void bench_rows_free(bench_rows *rows) {
  free(rows->list);
  *rows = (bench_rows){.list = NULL};
}
