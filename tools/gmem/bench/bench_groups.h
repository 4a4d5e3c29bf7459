/* The groups of cases that `gmem bench` knows. */
#ifndef GM_TOOLS_GMEM_BENCH_BENCH_GROUPS_H
#define GM_TOOLS_GMEM_BENCH_BENCH_GROUPS_H

#include "gm/status.h"
#include "tools/gmem/bench/bench_peers.h"
#include "tools/gmem/bench/bench_rows.h"

enum { BENCH_TRACES = 64, BENCH_GROUPS = 16 };

/* The number of the group that needs a device, and no allocator: bench_transfer.h. */
enum { BENCH_GROUP_TRANSFER = 13 };

typedef struct bench_plan {
  harness_allocator subject; /* gm */
  const bench_peers *peers;
  uint32_t groups; /* bits by number */
  const char *traces[BENCH_TRACES];
  size_t trace_count;
  uint32_t runs, passes, pairs;
} bench_plan;

/* Ends with NULL. */
extern const char *const bench_group_names[];

/* All groups of the plan, one after the other; what an allocator cannot is an unknown value. OUT_OF_HOST_MEMORY;
 * UNAVAILABLE: gm itself could not be measured in any case. */
gm_status bench_groups_run(const bench_plan *plan, bench_rows *rows, gm_error *err);

#endif
