#include "core/room/claim.h"

#include <inttypes.h>

#include "core/base/error.h"
#include "core/base/saturate.h"

gm_status gm__claim_take(gm__claim *claim, uint64_t bytes, const char *op, gm_error *err) {
  const uint64_t cap = gm__claim_cap(claim);
  uint64_t used = gm__claim_used(claim);
  do {
    if (used > cap || bytes > cap - used) {
      return gm__fail(err, GM_ERR_OVER_LIMIT, op,
                      "%" PRIu64 " bytes more are %" PRIu64
                      " beyond the cap of pool \"%s\" (max_bytes), of which %" PRIu64 " of %" PRIu64 " are taken",
                      bytes, gm__sub_sat(gm__add_sat(used, bytes), cap), claim->name, used, cap);
    }
  } while (!atomic_compare_exchange_weak_explicit(&claim->used, &used, used + bytes, memory_order_relaxed,
                                                  memory_order_relaxed));
  return GM_OK;
}

void gm__claim_return(gm__claim *claim, uint64_t bytes) {
  atomic_fetch_sub_explicit(&claim->used, bytes, memory_order_relaxed);
}
