#include "tools/gmem/output/table.h"

#include <stdarg.h>

#include "gm/memory_info.h"
#include "gm/size.h"

void table_row(table *out) {
  out->rows++;
  out->column = 0;
}

void table_cell(table *out, const char *format, ...) {
  if (out->rows == 0 || out->rows > TABLE_ROWS || out->column >= TABLE_COLUMNS) return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(out->cells[out->rows - 1][out->column++], TABLE_CELL, format, arguments);
  va_end(arguments);
}

void table_bytes(table *out, uint64_t bytes) {
  char text[24] = "unknown";
  if (bytes != GM_UNKNOWN_BYTES) gm_format_bytes(bytes, text, sizeof text);
  table_cell(out, "%s", text);
}

/* Characters, not bytes: names may hold any UTF-8. */
static int table_width(const char *text) {
  int width = 0;
  for (; *text; text++) width += ((unsigned char)*text & 0xc0) != 0x80;
  return width;
}

static void table_print_row(const table *out, size_t row, const int *widths, FILE *file) {
  int pad = 2;
  for (size_t column = 0; column < TABLE_COLUMNS; column++) {
    const char *text = out->cells[row][column];
    if (!text[0]) continue;
    fprintf(file, "%*s%s", pad, "", text);
    pad = 2 + widths[column] - table_width(text);
  }
  fputc('\n', file);
}

void table_print(const table *out, FILE *file) {
  int widths[TABLE_COLUMNS] = {0};
  size_t rows = out->rows < TABLE_ROWS ? out->rows : TABLE_ROWS;
  for (size_t row = 0; row < rows; row++) {
    for (size_t column = 0; column < TABLE_COLUMNS; column++) {
      int width = table_width(out->cells[row][column]);
      if (width > widths[column]) widths[column] = width;
    }
  }
  for (size_t row = 0; row < rows; row++) table_print_row(out, row, widths, file);
}
