#include "core/track/ledger.h"

#include "core/base/alloc.h"

/* Invariants: chunks and totals only grow. A live block's tag has a total. A chunk comes with the first of its blocks,
 * so no call pays for those of many blocks. */

enum { LEDGER_LEAST_BITS = 4 };

void gm__ledger_open(gm__ledger *ledger, gm_tracker *tracker, const gm_services *services) {
  ledger->tracker = tracker;
  ledger->marks = gm__tracker_marks(tracker);
  ledger->services = services;
}

static void ledger_release_totals(const gm__ledger *ledger) {
  if (!ledger->totals) return;
  gm__release(ledger->services, ledger->totals, sizeof *ledger->totals << ledger->total_bits);
}

/* Closes a ledger whose memory is another's now. */
static void ledger_reset(gm__ledger *ledger) {
  ledger->tracker = NULL;
  ledger->chunks = NULL;
  ledger->chunk_capacity = 0;
  ledger->totals = NULL;
  ledger->total_count = ledger->total_bits = 0;
  ledger->next_id = ledger->end_id = 0; /* of this tracker alone */
  gm__ledger_set(&ledger->count, 0);
  gm__ledger_set(&ledger->bytes, 0);
  gm__ledger_set(&ledger->peak_bytes, 0);
}

void gm__ledger_close(gm__ledger *ledger) {
  if (!ledger->tracker) return;
  for (uint32_t i = 0; i < ledger->chunk_capacity; i++) {
    gm__release(ledger->services, ledger->chunks[i], GM__LEDGER_CHUNK * sizeof **ledger->chunks);
  }
  gm__release(ledger->services, ledger->chunks, ledger->chunk_capacity * sizeof *ledger->chunks);
  ledger_release_totals(ledger);
  ledger_reset(ledger);
}

void gm__ledger_move(gm__ledger *ledger, gm__ledger *out) {
  *out = (gm__ledger){.chunks = ledger->chunks,
                      .chunk_capacity = ledger->chunk_capacity,
                      .totals = ledger->totals,
                      .total_bits = ledger->total_bits,
                      .tracker = ledger->tracker,
                      .services = ledger->services};
  ledger_reset(ledger);
}

/* Makes room in the table for the chunk. */
static bool ledger_make_place(gm__ledger *ledger, uint32_t at) {
  const size_t size = sizeof *ledger->chunks;
  uint32_t capacity = ledger->chunk_capacity ? ledger->chunk_capacity : 16;
  while (capacity <= at) capacity *= 2;
  if (capacity == ledger->chunk_capacity) return true;
  if (!gm__grow(ledger->services, &ledger->chunks, ledger->chunk_capacity * size, capacity * size)) return false;
  ledger->chunk_capacity = capacity;
  return true;
}

static bool ledger_add_chunk(gm__ledger *ledger, uint32_t at) {
  if (!ledger_make_place(ledger, at)) return false;
  gm__ledger_record *chunk = gm__alloc_array(ledger->services, GM__LEDGER_CHUNK, sizeof *chunk);
  ledger->chunks[at] = chunk;
  return chunk != NULL;
}

/* Gives the tag a free place. */
static gm__ledger_total *ledger_place(gm__ledger *ledger, uint32_t tag) {
  const uint32_t mask = (UINT32_C(1) << ledger->total_bits) - 1;
  uint32_t at = gm__ledger_hash(tag) & mask;
  while (ledger->totals[at].used) at = (at + 1) & mask;
  ledger->totals[at].tag = tag;
  ledger->totals[at].used = true;
  ledger->total_count++;
  return &ledger->totals[at];
}

static bool ledger_grow_totals(gm__ledger *ledger) {
  const uint32_t places = ledger->totals ? UINT32_C(1) << ledger->total_bits : 0;
  if (ledger->total_count < places / 2) return true;
  gm__ledger grown = {.services = ledger->services,
                      .total_bits = ledger->totals ? ledger->total_bits + 1 : LEDGER_LEAST_BITS};
  grown.totals = gm__alloc_array(ledger->services, (size_t)1 << grown.total_bits, sizeof *grown.totals);
  if (!grown.totals) return false;
  for (uint32_t i = 0; i < places; i++) {
    const gm__ledger_total *total = &ledger->totals[i];
    if (total->used) *ledger_place(&grown, total->tag) = *total;
  }
  ledger_release_totals(ledger);
  ledger->totals = grown.totals;
  ledger->total_bits = grown.total_bits;
  return true;
}

gm__ledger_total *gm__ledger_reserve(gm__ledger *ledger, uint32_t number, uint32_t tag) {
  if (!gm__ledger_at(ledger, number) && !ledger_add_chunk(ledger, number / GM__LEDGER_CHUNK)) return NULL;
  gm__ledger_total *total = gm__ledger_total_of(ledger, tag);
  if (total || !ledger_grow_totals(ledger)) return total;
  return ledger_place(ledger, tag);
}

void gm__ledger_leave(gm__ledger *ledger, uint32_t number, uint64_t bytes, uint32_t tag) {
  gm__ledger_record *record = gm__ledger_at(ledger, number);
  if (!record || !record->id) return;
  gm__ledger_total *total = gm__ledger_total_of(ledger, tag);
  record->id = 0;
  total->count--;
  total->bytes -= bytes;
  gm__ledger_set(&ledger->count, gm__ledger_get(&ledger->count) - 1);
  gm__ledger_set(&ledger->bytes, gm__ledger_get(&ledger->bytes) - bytes);
}

void gm__ledger_each_total(const gm__ledger *ledger, void (*look)(void *looker, const gm_tag_total *total),
                           void *looker) {
  for (uint32_t i = 0; ledger->totals && i < UINT32_C(1) << ledger->total_bits; i++) {
    const gm__ledger_total *total = &ledger->totals[i];
    if (!total->used) continue;
    const gm_tag_total shown = {
        .tag = total->tag, .bytes = total->bytes, .peak_bytes = total->peak_bytes, .count = total->count};
    look(looker, &shown);
  }
}
