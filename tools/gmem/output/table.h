/* A small table of texts with aligned columns. */
#ifndef GM_TOOLS_GMEM_OUTPUT_TABLE_H
#define GM_TOOLS_GMEM_OUTPUT_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gm/export.h"

enum { TABLE_ROWS = 48, TABLE_COLUMNS = 8, TABLE_CELL = 256 };

/* Starts zeroed. Rows and columns past the last are left out, texts that do not fit are cut. */
typedef struct table {
  char cells[TABLE_ROWS][TABLE_COLUMNS][TABLE_CELL];
  size_t rows;
  size_t column; /* where the next cell of the last row goes */
} table;

void table_row(table *out); /* begins one */
void table_cell(table *out, const char *format, ...) GM_PRINTF(2, 3);
void table_bytes(table *out, uint64_t bytes); /* "1.5 GiB", "unknown" */

/* Every row indented by two blanks, columns two blanks apart. */
void table_print(const table *out, FILE *file);

#endif
