/* The results of a benchmark: one row for each case and peer. */
#ifndef GM_TOOLS_GMEM_BENCH_BENCH_ROWS_H
#define GM_TOOLS_GMEM_BENCH_BENCH_ROWS_H

#include "tools/gmem/output/json.h"

/* NaN: not known. */
typedef struct bench_row {
  char group[24], name[96], unit[24];
  char peer[64]; /* empty: none */
  double value, peer_value;
  double utilisation, overhead, overlap, useful; /* of the group "transfer" alone */
} bench_row;

/* Starts zeroed. */
typedef struct bench_rows {
  bench_row *list;
  size_t count;
} bench_rows;

/* false: out of host memory. */
bool bench_rows_add(bench_rows *rows, const bench_row *row);

/* The array "rows". */
void bench_rows_json(const bench_rows *rows, json_writer *out);

void bench_rows_text(const bench_rows *rows, FILE *file);

void bench_rows_free(bench_rows *rows);

#endif
