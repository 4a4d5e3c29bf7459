/* What is promised on one card: bytes that reservations hold and nobody has taken yet. All contexts of the process
 * share one record of a card (process.h). A forked child has a fresh one. */
#ifndef GM_CORE_CONTEXT_PROMISES_H
#define GM_CORE_CONTEXT_PROMISES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/thread.h"

typedef struct gm__promises {
  _Atomic uint32_t state;       /* of `lock`: made by the first who prepares the record */
  gm__mutex lock;               /* the grow lock: held from asking for a card's room until the memory is counted */
  _Atomic uint64_t bytes;       /* promised by this process and not taken. Changed under the lock */
  _Atomic uint64_t others;      /* promised by other processes, when somebody looked last */
  _Atomic uint64_t most;        /* of that: the largest part of one process */
  _Atomic uint32_t most_holder; /* the process id of that one; 0: unknown */
  _Atomic uint64_t card;        /* what other processes call the card; 0: they do not know it */
  _Atomic bool busy;            /* somebody holds the lock and looks */
  uint64_t told;                /* of `bytes`, what other processes read; UINT64_MAX: unknown. Under the lock */
  _Atomic bool shared;          /* they hold back for all of `bytes` */
  int said;                     /* the status that the log has named last; 0: none. Under the lock */
} gm__promises;

/* Makes the lock of a zeroed record, once. Thread-safe. */
void gm__promises_prepare(gm__promises *promises);

static inline uint64_t gm__promises_bytes(const gm__promises *promises) {
  return atomic_load_explicit(&promises->bytes, memory_order_relaxed);
}

static inline uint64_t gm__promises_of_others(const gm__promises *promises) {
  return atomic_load_explicit(&promises->others, memory_order_relaxed);
}

static inline bool gm__promises_are_shared(const gm__promises *promises) {
  return atomic_load_explicit(&promises->shared, memory_order_relaxed);
}

/* REQUIRES: the record's lock. */
static inline void gm__promises_add(gm__promises *promises, uint64_t bytes) {
  atomic_fetch_add_explicit(&promises->bytes, bytes, memory_order_relaxed);
}

static inline void gm__promises_sub(gm__promises *promises, uint64_t bytes) {
  atomic_fetch_sub_explicit(&promises->bytes, bytes, memory_order_relaxed);
}

#endif
