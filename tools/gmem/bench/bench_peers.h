/* The allocators that are measured. */
#ifndef GM_TOOLS_GMEM_BENCH_BENCH_PEERS_H
#define GM_TOOLS_GMEM_BENCH_BENCH_PEERS_H

#include "gm/status.h"
#include "tools/gmem/bench/bench_harness.h"

enum { BENCH_PEERS = 32 };

/* Starts zeroed. */
typedef struct bench_peers {
  harness_allocator list[BENCH_PEERS];
  size_t count;
} bench_peers;

/* "LABEL=FILE" or "LABEL=FILE:CONFIG". INVALID_ARGUMENT: it is neither, or there are BENCH_PEERS
 * already. */
gm_status bench_peers_add(bench_peers *peers, const char *text, gm_error *err);

/* The lines of DIR/peers.list: LABEL, FILE (in DIR), CONFIG or "-", "loops" for one without a device, and NAME=VALUE…,
 * separated by tabs, as bench/peers/build writes. NOT_FOUND: no such file; FORMAT: a line is not so.
 */
gm_status bench_peers_read(bench_peers *peers, const char *folder, gm_error *err);

#endif
