/* The live blocks of one arena of a tracked pool: a record for each, by the number of its chunk, and totals by tag. The
 * tracker reads it when somebody asks. It is open while the pool is tracked, and empty while it is closed. REQUIRES:
 * arena lock. Only the three figures are atomic: any thread may read them. */
#ifndef GM_CORE_TRACK_LEDGER_H
#define GM_CORE_TRACK_LEDGER_H

#include <stdatomic.h>

#include "core/base/clock.h"
#include "core/track/tracker.h"

enum { GM__LEDGER_CHUNK = 256, GM__LEDGER_IDS = 64 };

typedef struct gm__ledger_record {
  uint64_t id; /* 0: the block is not tracked */
  uint64_t born_ns, mark, stream, elements;
  gm_location location; /* only when it was `moved` */
  bool moved;
} gm__ledger_record;

typedef struct gm__ledger_total {
  uint64_t bytes, peak_bytes, count;
  uint32_t tag;
  bool used; /* the place is a tag's */
} gm__ledger_total;

typedef struct gm__ledger {
  _Atomic uint64_t count, bytes, peak_bytes;
  uint64_t next_id, end_id;   /* drawn from the tracker, not used yet */
  gm__ledger_record **chunks; /* NULL: no entry had such numbers */
  uint32_t chunk_capacity;
  gm__ledger_total *totals; /* open addressing with linear steps, at most half full; nothing leaves */
  uint32_t total_count, total_bits;
  gm_tracker *tracker;           /* NULL: closed */
  const _Atomic uint64_t *marks; /* the tracker's */
  const gm_services *services;
} gm__ledger;

/* Opens a zeroed or closed ledger. Takes no memory. */
void gm__ledger_open(gm__ledger *ledger, gm_tracker *tracker, const gm_services *services);
void gm__ledger_close(gm__ledger *ledger); /* forgets everything; harmless when it is closed */

/* Closes the ledger. gm__ledger_close releases what *out then has, without the lock. */
void gm__ledger_move(gm__ledger *ledger, gm__ledger *out);

/* Makes room for a block of that tag with that number. Returns the tag's total; NULL without host memory. */
gm__ledger_total *gm__ledger_reserve(gm__ledger *ledger, uint32_t number, uint32_t tag);

/* Shows the totals of all tags. */
void gm__ledger_each_total(const gm__ledger *ledger, void (*look)(void *looker, const gm_tag_total *total),
                           void *looker);

/* The record with that number. NULL: no entry had such a number. */
static inline gm__ledger_record *gm__ledger_at(const gm__ledger *ledger, uint32_t number) {
  if (number / GM__LEDGER_CHUNK >= ledger->chunk_capacity) return NULL;
  gm__ledger_record *chunk = ledger->chunks[number / GM__LEDGER_CHUNK];
  return chunk ? &chunk[number % GM__LEDGER_CHUNK] : NULL;
}

static inline uint32_t gm__ledger_hash(uint32_t tag) { return tag ^ tag >> 16; } /* tags are counted from 0 */

/* The tag's total. NULL: it has none yet. */
static inline gm__ledger_total *gm__ledger_total_of(const gm__ledger *ledger, uint32_t tag) {
  const uint32_t mask = (UINT32_C(1) << ledger->total_bits) - 1;
  uint32_t at = gm__ledger_hash(tag) & mask;
  if (!ledger->totals) return NULL;
  while (ledger->totals[at].used && ledger->totals[at].tag != tag) at = (at + 1) & mask;
  return ledger->totals[at].used ? &ledger->totals[at] : NULL;
}

/* Like gm__ledger_reserve, where that needs no memory; else NULL. */
static inline gm__ledger_total *gm__ledger_ready(const gm__ledger *ledger, uint32_t number, uint32_t tag) {
  return gm__ledger_at(ledger, number) ? gm__ledger_total_of(ledger, tag) : NULL;
}

static inline void gm__ledger_set(_Atomic uint64_t *figure, uint64_t value) {
  atomic_store_explicit(figure, value, memory_order_relaxed);
}

static inline uint64_t gm__ledger_get(const _Atomic uint64_t *figure) {
  return atomic_load_explicit(figure, memory_order_relaxed);
}

static inline uint64_t gm__ledger_id(gm__ledger *ledger) {
  if (ledger->next_id == ledger->end_id) {
    ledger->next_id = gm__tracker_draw_ids(ledger->tracker, GM__LEDGER_IDS);
    ledger->end_id = ledger->next_id + GM__LEDGER_IDS;
  }
  return ledger->next_id++;
}

/* Enters a block that is alive from now on. gm__ledger_reserve has made room for it. */
static inline void gm__ledger_enter(gm__ledger *ledger, gm__ledger_total *total, uint32_t number, uint64_t bytes,
                                    uint64_t stream) {
  const uint64_t all = gm__ledger_get(&ledger->bytes) + bytes;
  *gm__ledger_at(ledger, number) = (gm__ledger_record){.id = gm__ledger_id(ledger),
                                                       .born_ns = gm__now_coarse_ns(),
                                                       .mark = gm__ledger_get(ledger->marks),
                                                       .stream = stream};
  total->count++;
  total->bytes += bytes;
  if (total->bytes > total->peak_bytes) total->peak_bytes = total->bytes;
  gm__ledger_set(&ledger->count, gm__ledger_get(&ledger->count) + 1);
  gm__ledger_set(&ledger->bytes, all);
  if (all > gm__ledger_get(&ledger->peak_bytes)) gm__ledger_set(&ledger->peak_bytes, all);
}

/* Lets the block go. Nothing happens if it is not tracked. */
void gm__ledger_leave(gm__ledger *ledger, uint32_t number, uint64_t bytes, uint32_t tag);

#endif
