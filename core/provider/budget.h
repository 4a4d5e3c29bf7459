/* The budget of a pool: a cap on its bytes, and how many are taken. Lock-free; every function is thread-safe. */
#ifndef GM_CORE_PROVIDER_BUDGET_H
#define GM_CORE_PROVIDER_BUDGET_H

#include <stdatomic.h>
#include <stdint.h>

#include "gm/status.h"

typedef struct gm__budget {
  _Atomic uint64_t max_bytes; /* the cap; UINT64_MAX: none */
  _Atomic uint64_t used;      /* reserved, or about to be; never above the cap that was in force when it grew */
  _Atomic uint64_t recorded;  /* the part of `used` that lies beside the pool (gm_pool_record_allocation) */
  const char *name;           /* the pool's, for messages; borrowed */
} gm__budget;

static inline uint64_t gm__budget_cap(const gm__budget *budget) {
  return atomic_load_explicit(&budget->max_bytes, memory_order_relaxed);
}

static inline uint64_t gm__budget_used(const gm__budget *budget) {
  return atomic_load_explicit(&budget->used, memory_order_relaxed);
}

/* Takes `bytes`, or refuses with OVER_LIMIT, naming `op`. `used` never exceeds the cap, whatever other threads do. */
gm_status gm__budget_take(gm__budget *budget, uint64_t bytes, const char *op, gm_error *err);
void gm__budget_return(gm__budget *budget, uint64_t bytes);

#endif
