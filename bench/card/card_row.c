/* Invariants: the passes of a run make the same requests for every allocator, unless the time of a pass is over. That
 * is PASS_NS, and four times as much for the pass that does not count. A refused request is counted, and its slot stays
 * empty. */
#include "bench/card/card_row.h"

#include <math.h>

#include "bench/measure/ticks.h"

#define MIB (UINT64_C(1) << 20)
enum { PASS_NS = 300000000, PASS_LOOK = 16, ROW_SIZES = 24 };

static uint64_t run_random(card_run *run) {
  run->random = run->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return run->random >> 33;
}

static void run_give(card_run *run, size_t slot) {
  if (!run->blocks[slot]) return;
  run->peer->free(run->peer, run->blocks[slot], run->bytes[slot]);
  run->blocks[slot] = NULL;
  run->calls++;
}

static bool run_take(card_run *run, size_t slot, uint64_t bytes) {
  run_give(run, slot);
  run->blocks[slot] = run->peer->alloc(run->peer, bytes);
  run->bytes[slot] = bytes;
  run->calls++;
  run->failed += !run->blocks[slot];
  return run->blocks[slot] != NULL;
}

/* `most` requests in random slots of the first `slots`, of sizes that `size` draws. */
static void run_churn(card_run *run, size_t slots, uint64_t most, uint64_t (*size)(card_run *run)) {
  const uint64_t begin = ticks_ns();
  for (uint64_t i = 0; i < most; i++) {
    run_take(run, run_random(run) % slots, size(run));
    if (i % PASS_LOOK == 0 && ticks_ns() - begin > run->most_ns) break;
  }
}

/* The slots of `mean` bytes that half of the free memory holds; one at least, `wanted` at most. */
static size_t run_slots(const card_run *run, size_t wanted, uint64_t mean) {
  const uint64_t room = run->free_bytes / 2 / mean;
  return room < 1 ? 1 : room < wanted ? (size_t)room : wanted;
}

static uint64_t size_same(card_run *run) {
  (void)run;
  return MIB;
}

static uint64_t size_large(card_run *run) { return 2 * MIB << run_random(run) % 6; }

static uint64_t size_variable(card_run *run) {
  return (uint64_t)exp2(9.0 + 17.0 * (double)(run_random(run) % 65536) / 65536.0);
}

/* 16 to 256 MiB, on a small device as much less as it has less than 64 GiB. */
static uint64_t size_pressure(card_run *run) {
  uint64_t unit = run->free_bytes / 4096 / MIB;
  if (unit > 16) unit = 16;
  return (unit + 1) * MIB * (1 + run_random(run) % 16);
}

static void pass_same(card_run *run) { run_churn(run, run_slots(run, 64, MIB), 100000, size_same); }

static void pass_large(card_run *run) { run_churn(run, run_slots(run, 32, 64 * MIB), 50000, size_large); }

static void pass_variable(card_run *run) { run_churn(run, run_slots(run, 1000, 6 * MIB), 50000, size_variable); }

/* Full to 85 %, then one out and another one in. */
static void pass_pressure(card_run *run) {
  uint64_t held = 0;
  size_t slots = 0;
  while (slots < run->slots && held < run->free_bytes / 100 * 85) {
    if (!run_take(run, slots, size_pressure(run))) break;
    held += run->bytes[slots++];
  }
  if (slots == 0) return;
  const uint64_t begin = ticks_ns();
  for (uint64_t i = 0; i < 20000; i++) {
    const size_t slot = run_random(run) % slots;
    const uint64_t bytes = size_pressure(run);
    if (run->blocks[slot]) held -= run->bytes[slot];
    run_give(run, slot);
    if (held + bytes < run->free_bytes / 100 * 85 && run_take(run, slot, bytes)) held += bytes;
    if (i % PASS_LOOK == 0 && ticks_ns() - begin > run->most_ns) break;
  }
}

/* On one stream; where it is too large for the device, all sizes are divided. */
static void pass_training(card_run *run) {
  const bench_events *trace = run->trace;
  unsigned divided = 0;
  while (trace->peak_live >> divided > run->free_bytes / 2) divided++;
  const uint64_t begin = ticks_ns();
  for (size_t i = 0; i < trace->count; i++) {
    const bench_event *event = &trace->list[i];
    if (event->is_free) {
      run_give(run, event->slot);
    } else {
      run_take(run, event->slot, (event->bytes >> divided) + 1);
    }
    if (i % PASS_LOOK == 0 && ticks_ns() - begin > run->most_ns) break;
  }
}

/* Sizes that nobody had before, then the same again. */
static void pass_warm_up(card_run *run) {
  const size_t sizes = run_slots(run, ROW_SIZES, 32 * MIB);
  for (int again = 0; again < 2; again++) {
    const uint64_t begin = ticks_ns();
    for (size_t i = 0; i < sizes; i++) run_take(run, i, (1 + i * 2) * MIB);
    if (again == 0) run->first_ns = (ticks_ns() - begin) / sizes;
    if (again == 1) run->ns = (ticks_ns() - begin) / sizes;
    for (size_t i = 0; i < sizes; i++) run_give(run, i);
  }
  run->calls = 1;
}

const card_row card_rows[CARD_ROWS] = {
    {"same_size", "blocks of 1 MiB, 64 alive", pass_same},
    {"large", "2 to 64 MiB, powers of two, 32 alive", pass_large},
    {"training", "a recorded training of transformers, on one stream", pass_training},
    {"pressure", "16 to 256 MiB, the device full to 85 %", pass_pressure},
    {"variable", "512 B to 64 MiB, 1000 alive", pass_variable},
    {"warm_up", "1 to 47 MiB: the first allocation of a size, and a later one", pass_warm_up},
};

static void run_pass(const card_row *row, card_run *run, uint64_t most_ns) {
  run->most_ns = most_ns;
  run->random = 7;
  run->calls = run->failed = 0;
  const uint64_t begin = ticks_ns();
  row->pass(run);
  if (row->pass != pass_warm_up) run->ns = ticks_ns() - begin;
}

static void run_drain(card_run *run) {
  const uint64_t calls = run->calls;
  for (size_t slot = 0; slot < run->slots; slot++) run_give(run, slot);
  run->calls = calls;
}

void card_row_run(const card_row *row, card_run *run) {
  if (row->pass != pass_warm_up) run_pass(row, run, 4 * (uint64_t)PASS_NS);
  run_drain(run);
  run_pass(row, run, PASS_NS);
  run_drain(run);
}
