#include "core/pool/room.h"

#include <inttypes.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/pool/arena.h"
#include "core/pool/sibling.h"
#include "core/pool/supply.h"

/* Invariant: nobody is refused who could be served. Figures are read one after the other while other threads take and
 * give: what one freed and another took meanwhile would count twice. So a refusal needs figures during which nothing
 * was freed, and nothing came from or went to the driver; where there are none, the request is tried. Of other pools of
 * the device only the driver's calls count, or a busy one would have every request tried: one that frees while another
 * takes of what it keeps may be seen as if neither kept it. */

enum { ROOM_LOOKS = 3 };

typedef struct room_figures {
  uint64_t claimed, in_use;
  uint64_t frees, calls; /* ever */
} room_figures;

static room_figures room_read(const gm_pool *pool) {
  const gm__stats *counts = &pool->stats;
  gm_stats arenas = {.struct_size = sizeof arenas};
  gm__arenas_add(pool, &arenas);
  return (room_figures){
      .claimed = atomic_load_explicit(&pool->claimed, memory_order_seq_cst),
      .in_use = arenas.in_use_bytes + atomic_load_explicit(&counts->in_use_bytes, memory_order_relaxed),
      .frees = arenas.frees + atomic_load_explicit(&counts->frees, memory_order_relaxed),
      .calls = atomic_load_explicit(&counts->driver_allocs, memory_order_relaxed) +
               atomic_load_explicit(&counts->driver_frees, memory_order_relaxed)};
}

static bool room_is_same(const room_figures *one, const room_figures *other) {
  return one->claimed == other->claimed && one->frees == other->frees && one->calls == other->calls;
}

/* What the pool could hold at most: what it holds already may be more than its cap, and serves. The device is asked
 * only where `need` may be within the cap. `others`: what other pools could leave it. */
static uint64_t room_most(gm_pool *pool, const room_figures *figures, uint64_t need, uint64_t others, bool read_now) {
  const uint64_t cap = gm__max(atomic_load_explicit(&pool->max_bytes, memory_order_relaxed), figures->claimed);
  if (pool->has_upstream || need > cap) return cap;
  const uint64_t room = gm__add_sat(gm__device_room(pool->device, read_now), others);
  return gm__min(cap, gm__add_sat(figures->claimed, room));
}

/* The same with what other pools keep idle. They are asked only where all that they keep could be enough. */
static uint64_t room_most_lent(gm_pool *pool, const room_figures *figures, uint64_t need, uint64_t pooled) {
  const uint64_t most = room_most(pool, figures, need, 0, true);
  if (need <= most || need > room_most(pool, figures, need, pooled, false)) return most;
  return room_most(pool, figures, need, gm__siblings_idle(pool), false);
}

/* Of the device's own memory; another kind may be had where this is not. */
static bool room_counts(const gm__want *want) {
  return want->must_be == GM_DEVICE_LOCAL && !want->beside_device && !want->managed;
}

gm_status gm__room_check(gm_pool *pool, const gm__want *want, gm_error *err) {
  for (int i = 0; i < ROOM_LOOKS && room_counts(want); i++) {
    const room_figures figures = room_read(pool);
    const uint64_t need = gm__add_sat(figures.in_use, want->exact);
    if (need <= room_most(pool, &figures, need, 0, false)) break;
    const gm__siblings others = gm__siblings_read(pool);
    const uint64_t most = room_most_lent(pool, &figures, need, others.pooled);
    if (need <= most) break;
    const room_figures again = room_read(pool);
    if (!room_is_same(&figures, &again) || gm__siblings_read(pool).calls != others.calls) continue;
    return gm__fail(err, GM_ERR_OVER_LIMIT, 0, "gm_alloc",
                    "%" PRIu64 " bytes beside %" PRIu64 " in use are more than the %" PRIu64
                    " that the pool's cap, memory_fraction and min_free_bytes leave it",
                    want->exact, figures.in_use, most);
  }
  return GM_OK;
}

/* What other pools are to give back for the request, which was refused with that status, after this pool gave back
 * `own` bytes. */
static uint64_t room_lack(gm_pool *pool, const gm__want *want, gm_status status, uint64_t own) {
  const uint64_t claimed = atomic_load_explicit(&pool->claimed, memory_order_relaxed);
  const uint64_t cap = atomic_load_explicit(&pool->max_bytes, memory_order_relaxed);
  const bool of_device = status == GM_ERR_OVER_LIMIT || status == GM_ERR_OUT_OF_DEVICE_MEMORY;
  if (!of_device || pool->has_upstream || want->managed || want->beside_device) return 0;
  if (gm__add_sat(claimed, want->exact) > cap) return 0;
  const uint64_t lack = gm__sub_sat(want->exact, gm__device_room(pool->device, true));
  return status == GM_ERR_OVER_LIMIT ? lack : gm__max(lack, gm__sub_sat(want->exact, own));
}

bool gm__room_make(gm_pool *pool, const gm__want *want, gm_status status) {
  const uint64_t pooled = gm__pool_pooled(pool);
  const uint64_t keep = status == GM_ERR_OVER_LIMIT ? gm__sub_sat(pooled, want->exact) : 0;
  const uint64_t own = gm__supply_trim(pool, keep, UINT64_MAX);
  const uint64_t lack = room_lack(pool, want, status, own);
  return (lack && gm__siblings_trim(pool, lack)) || own;
}
