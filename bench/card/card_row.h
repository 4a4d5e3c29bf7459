/* One row on one allocator. */
#ifndef GM_BENCH_CARD_ROW_H
#define GM_BENCH_CARD_ROW_H

#include "bench/card/card_peers.h"
#include "bench/trace/events.h"

typedef struct card_run {
  const card_peer *peer;
  const bench_events *trace;
  uint64_t free_bytes; /* of the device before the run */
  uint64_t random, most_ns;
  void **blocks; /* CARD_SLOTS or more; NULL: none */
  uint64_t *bytes;
  size_t slots;
  uint64_t calls, failed, ns; /* of the pass that counts */
  uint64_t first_ns;          /* row warm_up: of the first allocations */
} card_run;

typedef struct card_row {
  const char *name, *what;
  void (*pass)(card_run *run);
} card_row;

enum { CARD_ROWS = 6, CARD_SLOTS = 4096 };
extern const card_row card_rows[CARD_ROWS];

/* A pass that does not count, and the same again, which does. Nothing is left allocated. */
void card_row_run(const card_row *row, card_run *run);

#endif
