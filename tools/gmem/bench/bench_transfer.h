/* gmem bench transfer: what a device's links do, beside what they can do. */
#ifndef GM_TOOLS_GMEM_BENCH_BENCH_TRANSFER_H
#define GM_TOOLS_GMEM_BENCH_BENCH_TRANSFER_H

#include "tools/gmem/bench/bench_rows.h"
#include "tools/gmem/session/session.h"

typedef struct transfer_plan {
  session_choice choice;
  uint64_t bytes; /* of a large copy */
  uint32_t runs;  /* of which the fastest counts */
} transfer_plan;

/* Opens the device, and adds its rows. The session is open after a failure, too. Answers of gm; what the device cannot
 * do is an unknown value. */
gm_status bench_transfer_run(const transfer_plan *plan, session *self, bench_rows *rows, gm_error *err);

/* The rows with their shares, for people. */
void bench_transfer_text(const bench_rows *rows, const gm_device_info *info, FILE *file);

#endif
