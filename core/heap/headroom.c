#include "core/heap/headroom.h"

#include <inttypes.h>

#include "core/arena/arena.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

/* Invariant: no request is refused that could be served. The figures are read one after the other while other threads
 * allocate and free. Memory that one thread freed and another thread took in between would count twice. So a refusal
 * needs figures during which the pool freed nothing and called no driver; where there are none, the request is tried.
 *
 * For other pools only the driver calls count, or a busy pool would have every request tried. So a pool that frees
 * memory while another pool takes it may be seen as if neither kept it. */

enum { HEADROOM_LOOKS = 3 };

typedef struct headroom_figures {
  uint64_t used, in_use;
  uint64_t frees, calls; /* since the pool was made */
} headroom_figures;

static headroom_figures headroom_read(const gm__heap *heap) {
  const gm__stats *counts = &heap->provider.stats;
  gm_stats arenas = {.struct_size = sizeof arenas};
  gm__arenas_add(&heap->arenas, &arenas);
  return (headroom_figures){
      .used = atomic_load_explicit(&heap->provider.claim.used, memory_order_seq_cst),
      .in_use = arenas.in_use_bytes + atomic_load_explicit(&counts->in_use_bytes, memory_order_relaxed),
      .frees = arenas.frees + atomic_load_explicit(&counts->frees, memory_order_relaxed),
      .calls = atomic_load_explicit(&counts->driver_allocs, memory_order_relaxed) +
               atomic_load_explicit(&counts->driver_frees, memory_order_relaxed)};
}

static bool headroom_is_same(const headroom_figures *one, const headroom_figures *other) {
  return one->used == other->used && one->frees == other->frees && one->calls == other->calls;
}

/* The memory that the pool holds already may be more than its cap, and serves. */
static uint64_t headroom_cap(const gm__heap *heap, const headroom_figures *figures) {
  return gm__max(gm__claim_cap(&heap->provider.claim), figures->used);
}

/* The bytes that the pool could hold at most. `others` is what other pools could leave it. The device is asked only
 * where `need` may be within the cap. */
static uint64_t headroom_most(gm__heap *heap, const headroom_figures *figures, uint64_t need, uint64_t others,
                              bool read_now) {
  const uint64_t cap = headroom_cap(heap, figures);
  if (heap->provider.has_upstream || need > cap) return cap;
  const uint64_t room = gm__add_sat(gm__room_left(&heap->provider.claim, read_now), others);
  return gm__min(cap, gm__add_sat(figures->used, room));
}

/* The bytes that the pool could hold at most once other pools gave back their idle memory. They are asked until they
 * have what lacks, and only where all that they keep could be enough. Where the cap alone refuses, what they keep
 * counts as theirs to give. */
static uint64_t headroom_most_lent(gm__heap *heap, const headroom_figures *figures, uint64_t need) {
  const uint64_t cap = headroom_cap(heap, figures);
  const uint64_t most = headroom_most(heap, figures, 0, 0, need <= cap);
  const uint64_t lack = gm__sub_sat(gm__min(need, cap), most);
  const uint64_t others = lack ? gm__reclaimers_pooled(heap->device, &heap->reclaimer, lack) : 0;
  if (need > cap) return gm__min(cap, gm__add_sat(most, others));
  if (!lack || others < lack) return most;
  return headroom_most(heap, figures, 0, gm__reclaimers_idle(heap->device, &heap->reclaimer, lack), false);
}

/* Only requests for the device's own memory count. Another kind may be had where this one is not. */
static bool headroom_counts(const gm__want *want) {
  return want->must_be == GM_DEVICE_LOCAL && !want->beside_device && !want->managed;
}

/* `most`: what the pool could hold at most. */
static gm_status headroom_refuse(const gm__heap *heap, const gm__want *want, uint64_t in_use, uint64_t most,
                                 gm_error *err) {
  char holder[GM__HOLDER_TEXT];
  const uint64_t total = heap->device->info.total_bytes, need = gm__add_sat(in_use, want->exact);
  if (!heap->provider.has_upstream && total && want->exact > total) {
    return gm__fail(err, GM_ERR_OVER_LIMIT, "gm_alloc",
                    "%" PRIu64 " bytes are more than the %" PRIu64 " that the device has in all", want->exact, total);
  }
  const uint64_t promised = gm__room_promised(&heap->provider.claim);
  if (!heap->provider.has_upstream && promised) {
    return gm__fail(err, GM_ERR_OVER_LIMIT, "gm_alloc",
                    "%" PRIu64 " bytes beside %" PRIu64 " in use are %" PRIu64 " more than the %" PRIu64
                    " that the pool may have beside the %" PRIu64 " that reservations hold%s: %s, or free so much",
                    want->exact, in_use, need - most, most, promised,
                    gm__room_holder_text(&heap->provider.claim, holder),
                    gm__room_promise_advice(&heap->provider.claim));
  }
  return gm__fail(
      err, GM_ERR_OVER_LIMIT, "gm_alloc",
      "%" PRIu64 " bytes beside %" PRIu64 " in use are %" PRIu64 " more than the %" PRIu64
      " that the pool's cap, memory_fraction and min_free_bytes leave it: free at least so much, or change them",
      want->exact, in_use, need - most, most);
}

/* The cap refuses, and no idle memory of the pool goes to make room. So nobody needs to be asked. */
static bool headroom_is_at_cap(const gm__heap *heap, const gm__want *want) {
  const gm__claim *claim = &heap->provider.claim;
  return heap->provider.no_trim && gm__add_sat(gm__claim_used(claim), want->exact) > gm__claim_cap(claim);
}

gm_status gm__headroom_check(gm__heap *heap, const gm__want *want, gm_error *err) {
  if (headroom_is_at_cap(heap, want)) return GM_OK; /* the provider refuses */
  for (int i = 0; i < HEADROOM_LOOKS && headroom_counts(want); i++) {
    const headroom_figures figures = headroom_read(heap);
    const uint64_t need = gm__add_sat(figures.in_use, want->exact);
    if (need <= headroom_most(heap, &figures, need, 0, false)) break;
    const uint64_t moves = gm__reclaimers_moves(heap->device);
    const uint64_t most = headroom_most_lent(heap, &figures, need);
    if (need <= most) break;
    const headroom_figures again = headroom_read(heap);
    if (!headroom_is_same(&figures, &again) || gm__reclaimers_moves(heap->device) != moves) continue;
    return headroom_refuse(heap, want, figures.in_use, most, err);
  }
  return GM_OK;
}

bool gm__headroom_is_of_pool(const gm__heap *heap, const gm__want *want) {
  const headroom_figures figures = headroom_read(heap);
  const bool of_quota = want->ladder && want->ladder->cause == GM_CAUSE_QUOTA;
  return of_quota || gm__add_sat(figures.in_use, want->exact) > gm__claim_cap(&heap->provider.claim);
}

gm__shortfall gm__headroom_shortfall(gm__heap *heap, const gm__want *want, gm_status status) {
  const headroom_figures figures = headroom_read(heap);
  const uint64_t need = gm__add_sat(figures.in_use, want->exact);
  const uint64_t cap = gm__claim_cap(&heap->provider.claim);
  if (status != GM_ERR_OVER_LIMIT) return (gm__shortfall){0};
  const uint64_t own = gm__add_sat(figures.used, gm__room_left(&heap->provider.claim, true));
  const uint64_t lack = gm__sub_sat(need, own);
  /* what the device's bounds let the pool have */
  const uint64_t device = gm__add_sat(own, lack ? gm__reclaimers_idle(heap->device, &heap->reclaimer, lack) : 0);
  const bool of_cap = need <= device && gm__add_sat(figures.used, want->exact) > cap;
  return (gm__shortfall){.bytes = gm__sub_sat(need, gm__min(gm__max(cap, figures.used), device)), .of_cap = of_cap};
}

/* The bytes that other pools are to give back for a request that was refused with `status`, after this pool gave back
 * `own` bytes. */
static uint64_t headroom_lack(gm__heap *heap, const gm__want *want, gm_status status, uint64_t own) {
  const uint64_t used = gm__claim_used(&heap->provider.claim);
  const uint64_t cap = gm__claim_cap(&heap->provider.claim);
  const bool of_device = status == GM_ERR_OVER_LIMIT || status == GM_ERR_OUT_OF_DEVICE_MEMORY;
  if (!of_device || heap->provider.has_upstream || want->managed || want->beside_device) return 0;
  if (gm__add_sat(used, want->exact) > cap) return 0;
  const uint64_t lack = gm__sub_sat(want->exact, gm__room_left(&heap->provider.claim, true));
  return status == GM_ERR_OVER_LIMIT ? lack : gm__max(lack, gm__sub_sat(want->exact, own));
}

/* The bytes that this pool is to keep of what it has idle. Where a limit refused, no more goes than the limit lacks. */
static uint64_t headroom_keep(gm__heap *heap, const gm__want *want, gm_status status) {
  const gm__claim *claim = &heap->provider.claim;
  if (status != GM_ERR_OVER_LIMIT) return 0;
  const uint64_t room = gm__min(gm__sub_sat(gm__claim_cap(claim), gm__claim_used(claim)), gm__room_left(claim, true));
  const uint64_t lack = gm__sub_sat(want->exact, room);
  return gm__sub_sat(gm__heap_pooled(heap), lack ? lack : want->exact); /* none: the figures have changed meanwhile */
}

bool gm__headroom_make(gm__heap *heap, const gm__want *want, gm_status status) {
  uint64_t own = 0, others = 0, began = gm__now_ns();
  if (!heap->provider.no_trim) {
    own = gm__heap_trim(heap, headroom_keep(heap, want, status), UINT64_MAX);
    gm__ladder_step(want->ladder, GM_RUNG_TRIM, began, own);
  }
  const uint64_t lack = headroom_lack(heap, want, status, own);
  if (lack) {
    began = gm__now_ns();
    others = gm__reclaimers_trim(heap->device, &heap->reclaimer, lack);
    gm__ladder_step(want->ladder, GM_RUNG_POOLS, began, others);
  }
  return own || others;
}
