/* A physical card of this process: what all contexts hold on it, and what they promise. All who mean the same memory
 * share one record (gm__card_of). A forked child has fresh ones: the bytes of its parent are not its own. */
#ifndef GM_CORE_ROOM_CARD_H
#define GM_CORE_ROOM_CARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/thread.h"

typedef struct gm__card {
  _Atomic uint64_t key;                  /* a hash of the physical identity; 0: the record is free */
  _Atomic uint64_t used;                 /* bytes that the driver gave: in use and pooled */
  _Atomic uint64_t pooled;               /* of those: idle, so they could go back */
  _Atomic uint64_t departures, arrivals; /* bytes, ever: those between are on their way back to the driver */

  _Atomic uint32_t state;       /* of `lock`: made by the first who finds the record */
  gm__mutex lock;               /* the grow lock: held from asking for the card's room until the memory is counted */
  _Atomic uint64_t promised;    /* bytes that reservations hold and nobody has taken yet. Changed under the lock */
  _Atomic uint64_t others;      /* promised by other processes, when somebody looked last */
  _Atomic uint64_t most;        /* of that: the largest part of one process */
  _Atomic uint32_t most_holder; /* the process id of that one; 0: unknown */
  _Atomic uint64_t name;        /* what other processes call the card; 0: they do not know it */
  _Atomic bool busy;            /* somebody holds the lock and looks */
  uint64_t told;                /* of `promised`, what other processes read; UINT64_MAX: unknown. Under the lock */
  _Atomic bool shared;          /* they hold back for all of `promised` */
  int said;                     /* the status that the log has named last; 0: none. Under the lock */
} gm__card;

/* The record of the card with this key. Never NULL: keys past the table's 256 share the last one. Lives for ever.
 * Thread-safe. */
gm__card *gm__card_of(uint64_t key);

/* Makes the lock of a zeroed record, once. Thread-safe. gm__card_of has done it. */
void gm__card_prepare(gm__card *card);

/* ---- what is held; lock-free ---- */

void gm__card_add(gm__card *card, uint64_t bytes, bool pooled);
void gm__card_sub(gm__card *card, uint64_t bytes, bool pooled);
/* `leave`: held bytes are about to go back to the driver, and are not held from now on. `left`: the driver has them. */
void gm__card_leave(gm__card *card, uint64_t bytes);
void gm__card_left(gm__card *card, uint64_t bytes);
uint64_t gm__card_departures(const gm__card *card); /* bytes that were ever about to go back */
uint64_t gm__card_used(const gm__card *card);       /* held: in use and pooled */
uint64_t gm__card_used_most(const gm__card *card);  /* and what is on its way back */
uint64_t gm__card_pooled(const gm__card *card);     /* of what is held: reclaimable */

/* ---- what is promised ---- */

static inline uint64_t gm__card_promised(const gm__card *card) {
  return atomic_load_explicit(&card->promised, memory_order_relaxed);
}

static inline uint64_t gm__card_promised_elsewhere(const gm__card *card) {
  return atomic_load_explicit(&card->others, memory_order_relaxed);
}

static inline bool gm__card_is_shared(const gm__card *card) {
  return atomic_load_explicit(&card->shared, memory_order_relaxed);
}

/* REQUIRES: the record's lock. */
static inline void gm__card_promise(gm__card *card, uint64_t bytes) {
  atomic_fetch_add_explicit(&card->promised, bytes, memory_order_relaxed);
}

static inline void gm__card_unpromise(gm__card *card, uint64_t bytes) {
  atomic_fetch_sub_explicit(&card->promised, bytes, memory_order_relaxed);
}

#endif
