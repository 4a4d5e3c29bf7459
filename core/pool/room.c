#include "core/pool/room.h"

#include <inttypes.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/pool/supply.h"

enum { ROOM_LOOKS = 4 }; /* at figures that others change meanwhile */

/* What the pool could hold at most now; UINT64_MAX: not known, because it takes and gives too fast. */
static uint64_t room_most(gm_pool *pool, bool read_now) {
  const uint64_t cap = atomic_load_explicit(&pool->max_bytes, memory_order_relaxed);
  if (pool->has_upstream) return cap;
  for (int i = 0; i < ROOM_LOOKS; i++) {
    const uint64_t claimed = atomic_load_explicit(&pool->claimed, memory_order_seq_cst);
    const uint64_t room = gm__device_room(pool->device, read_now);
    if (claimed != atomic_load_explicit(&pool->claimed, memory_order_seq_cst)) continue;
    return gm__min(cap, gm__add_sat(claimed, room));
  }
  return UINT64_MAX;
}

/* Of the device's own memory; another kind may be had where this is not. */
static bool room_counts(const gm__want *want) {
  return want->must_be == GM_DEVICE_LOCAL && !want->beside_device && !want->managed;
}

gm_status gm__room_check(gm_pool *pool, const gm__want *want, gm_error *err) {
  if (!room_counts(want)) return GM_OK;
  const uint64_t reserved = atomic_load_explicit(&pool->stats.reserved_bytes, memory_order_relaxed);
  const uint64_t in_use = gm__sub_sat(reserved, gm__pool_pooled(pool));
  const uint64_t need = gm__add_sat(in_use, want->exact);
  if (need <= room_most(pool, false)) return GM_OK;
  const uint64_t cap = atomic_load_explicit(&pool->max_bytes, memory_order_relaxed);
  const uint64_t most = need > cap ? cap : room_most(pool, true);
  if (need <= most) return GM_OK;
  return gm__fail(err, GM_ERR_OVER_LIMIT, 0, "gm_alloc",
                  "%" PRIu64 " bytes beside %" PRIu64 " in use are more than the %" PRIu64
                  " that the pool's cap, memory_fraction and min_free_bytes leave it",
                  want->exact, in_use, most);
}

bool gm__room_make(gm_pool *pool, const gm__want *want, gm_status status) {
  const uint64_t pooled = gm__pool_pooled(pool);
  return gm__supply_trim(pool, status == GM_ERR_OVER_LIMIT ? gm__sub_sat(pooled, want->exact) : 0, UINT64_MAX) > 0;
}
