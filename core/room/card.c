/* Invariants. Records lie in pages that the kernel zeroes in a forked child (core/context/process.h), and live for
 * ever. So a lock that a thread of the parent holds at the fork is no lock of the child's, which makes its own. Held
 * bytes are counted without a lock, so that a child forked in the middle of a call finds nothing locked. Whoever waits
 * for another thread sleeps: that thread may have less priority, and run on no other processor. */
#include "core/room/card.h"

#include "core/base/clock.h"
#include "core/base/poll.h"
#include "core/context/process.h"

enum { CARDS_MAX = 256 };
enum { CARD_NEW, CARD_BEGUN, CARD_READY };

static gm__process_page card_table;

/* Where a child sees its parent's page, it has records of its own all the same. */
static gm__card *card_find(uint64_t key) {
  static gm__card homeless; /* without a page there is no context either; never NULL all the same */
  gm__card *cards = gm__process_page_get(&card_table, CARDS_MAX * sizeof *cards);
  if (!cards) return &homeless;
  key ^= gm__process_salt();
  if (key == 0) key = 1;
  for (size_t i = 0; i < CARDS_MAX - 1; i++) {
    uint64_t seen = 0;
    if (atomic_compare_exchange_strong(&cards[i].key, &seen, key) || seen == key) return &cards[i];
  }
  return &cards[CARDS_MAX - 1];
}

void gm__card_prepare(gm__card *card) {
  uint32_t state = CARD_NEW;
  if (atomic_compare_exchange_strong(&card->state, &state, CARD_BEGUN)) {
    gm__mutex_init(&card->lock, GM__RANK_GROW);
    atomic_store(&card->state, CARD_READY);
    return;
  }
  for (gm__poll poll = gm__poll_until(GM__NEVER); atomic_load(&card->state) != CARD_READY;) gm__poll_again(&poll);
}

gm__card *gm__card_of(uint64_t key) {
  gm__card *card = card_find(key);
  gm__card_prepare(card);
  return card;
}

void gm__card_add(gm__card *card, uint64_t bytes, bool pooled) {
  atomic_fetch_add_explicit(pooled ? &card->pooled : &card->used, bytes, memory_order_relaxed);
}

void gm__card_sub(gm__card *card, uint64_t bytes, bool pooled) {
  atomic_fetch_sub_explicit(pooled ? &card->pooled : &card->used, bytes, memory_order_relaxed);
}

/* Whoever no longer sees the bytes in `used` sees them depart. */
void gm__card_leave(gm__card *card, uint64_t bytes) {
  atomic_fetch_add_explicit(&card->departures, bytes, memory_order_relaxed);
  atomic_fetch_sub_explicit(&card->used, bytes, memory_order_release);
}

void gm__card_left(gm__card *card, uint64_t bytes) {
  atomic_fetch_add_explicit(&card->arrivals, bytes, memory_order_release);
}

uint64_t gm__card_departures(const gm__card *card) {
  return atomic_load_explicit(&card->departures, memory_order_acquire);
}

/* In this order, so that it is never too little. */
uint64_t gm__card_used_most(const gm__card *card) {
  const uint64_t used = atomic_load_explicit(&card->used, memory_order_acquire);
  const uint64_t arrivals = atomic_load_explicit(&card->arrivals, memory_order_acquire);
  return used + gm__card_departures(card) - arrivals;
}

uint64_t gm__card_used(const gm__card *card) { return atomic_load_explicit(&card->used, memory_order_relaxed); }

uint64_t gm__card_pooled(const gm__card *card) { return atomic_load_explicit(&card->pooled, memory_order_relaxed); }
