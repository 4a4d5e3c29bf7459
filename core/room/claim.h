/* A claim: what somebody may take of a card, a pool for example. It has a cap of its own and counts what it took. It
 * lies in the room of its device (room.h), whose bounds hold as well. The cap is lock-free; every function is
 * thread-safe. */
#ifndef GM_CORE_ROOM_CLAIM_H
#define GM_CORE_ROOM_CLAIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gm/status.h"

typedef struct gm__claim {
  struct gm__room *room;
  const char *name;                /* the pool's, for messages; borrowed */
  _Atomic uint64_t max_bytes;      /* the cap; UINT64_MAX: none */
  _Atomic uint64_t used;           /* reserved, or about to be; never above the cap that was in force when it grew */
  _Atomic uint64_t recorded;       /* the part of `used` that lies beside the pool (gm_pool_record_allocation) */
  double memory_fraction;          /* of the card, that gm may hold; 0: by configuration */
  uint64_t min_free_bytes;         /* GM_NO_LIMIT, GM_NO_BYTES, or bytes; 0: by configuration */
  struct gm__holding *promises;    /* bound to it: holding.h. Under the card's grow lock */
  _Atomic uint64_t promised_bytes; /* what is left of them: others' promises bound it, its own do not */
  bool heeds_others;               /* promises of other processes bound it, also on an adopted device */
  bool apart;                      /* its memory is an upstream's: of all bounds only the cap holds */
} gm__claim;

static inline uint64_t gm__claim_cap(const gm__claim *claim) {
  return atomic_load_explicit(&claim->max_bytes, memory_order_relaxed);
}

static inline uint64_t gm__claim_used(const gm__claim *claim) {
  return atomic_load_explicit(&claim->used, memory_order_relaxed);
}

/* Takes `bytes` of the cap, or refuses with OVER_LIMIT, naming `op`. `used` never exceeds the cap, whatever other
 * threads do. */
gm_status gm__claim_take(gm__claim *claim, uint64_t bytes, const char *op, gm_error *err);
void gm__claim_return(gm__claim *claim, uint64_t bytes);

#endif
