#include "core/arena/grow.h"

#include "core/base/saturate.h"

/* How much an arena takes at a time. It takes as much as its segments have: at least 2 MiB, at most 64 MiB or a
 * sixteenth of them, if that is more. So a small arena stays small, and a large one asks its driver seldom.
 *
 * With mapped pages nothing is lost to anybody, so it takes less: 2 to 16 MiB, or a 24th. Where there is no room for
 * so much it takes less, and at last just what the request needs.
 *
 * Driver allocations cannot be joined: the rest of one is lost to larger requests. Therefore a large request gets a
 * segment of its own size. Drivers limit the number of allocations, too (Vulkan: maxMemoryAllocationCount, often 4096).
 * So how large "large" is follows the size of the pool: it makes some hundred allocations each time it doubles.
 *
 * A pool that may keep only so much does not take more than that ahead, or the least size of a segment. */

static const uint64_t growth_most_pages = UINT64_C(16) << 20; /* the most of mapped pages */
enum {
  GROWTH_SHARE = 16,       /* of a cap, and of a large pool */
  GROWTH_PAGES_SHARE = 24, /* of a large pool, for mapped pages */
  GROWTH_FEW = 4,          /* threads that share the work of a pool */
  GROWTH_OWN_SHARE = 1024, /* of a large pool: the size of a large request */
  GROWTH_EASE_SHARE = 8    /* of a request for which smaller segments were given back: so much more than it needs */
};

static uint64_t growth_step(const gm__arena_set *set, uint64_t held, uint64_t bytes, uint64_t most, uint64_t share) {
  uint64_t cap = atomic_load_explicit(&set->provider->claim.max_bytes, memory_order_relaxed);
  uint64_t wish = held < most ? held : most;
  if (wish < GM__GROWTH_UNIT) wish = GM__GROWTH_UNIT;
  if (wish < held / share) wish = held / share;
  if (wish > set->provider->rules.ahead) wish = set->provider->rules.ahead;
  if (wish > cap / GROWTH_SHARE) wish = cap / GROWTH_SHARE;
  return gm__round_up(wish > bytes ? wish : bytes, GM__GROWTH_UNIT);
}

/* An arena that has its part of the pool grows as the pool would alone. A new arena begins small. Small blocks' pages
 * follow only what they have themselves. */
uint64_t gm__growth_pages(const gm__arena *arena, gm__area area, uint64_t bytes) {
  const gm__arena_set *set = arena->set;
  const uint64_t used = atomic_load_explicit(&set->provider->claim.used, memory_order_relaxed);
  const uint64_t mapped = arena->mapped_pages[area] * set->provider->pages.page_bytes;
  if (area == GM__AREA_SMALL) return growth_step(set, mapped, bytes, growth_most_pages, GROWTH_PAGES_SHARE);
  const uint64_t own = mapped + gm__pages_idle_bytes(set->provider);
  return growth_step(set, gm__min(used, GROWTH_FEW * own), bytes, growth_most_pages, GROWTH_PAGES_SHARE);
}

/* The bytes of the arena's segments. 0 for a request with a larger alignment than theirs: few requests are like it. */
static uint64_t growth_held(gm__arena *arena, const gm__want *want) {
  uint64_t bytes = 0;
  if (want->align > arena->kind.align) return 0;
  gm__arena_lock(arena);
  for (const gm__segment *segment = arena->segments; segment; segment = segment->next) {
    if (!segment->range) bytes += segment->allocation->bytes;
  }
  gm__arena_unlock(arena);
  return bytes;
}

static bool growth_is_large(const gm__arena_set *set, uint64_t bytes) {
  const uint64_t held = atomic_load_explicit(&set->provider->claim.used, memory_order_relaxed);
  return bytes >= gm__max(GM__GROWTH_OWN, held / GROWTH_OWN_SHARE);
}

uint64_t gm__growth_wish(gm__arena *arena, const gm__want *want, uint64_t relieved) {
  const gm__arena_set *set = arena->set;
  const uint64_t bytes = want->exact;
  const uint64_t most = set->provider->rules.granule * UINT32_MAX; /* the largest chunk */
  const uint64_t size = atomic_load_explicit(&set->provider->rules.size, memory_order_relaxed);
  uint64_t largest = set->provider->device->info.max_alloc_bytes, wish;
  if (set->whole) return bytes;
  if (size == UINT64_MAX) {
    wish = growth_is_large(set, bytes)
               ? gm__round_up(bytes + gm__min(relieved, bytes / GROWTH_EASE_SHARE), GM__GROWTH_OWN_UNIT)
               : growth_step(set, growth_held(arena, want), bytes, GM__GROWTH_MOST, GROWTH_SHARE);
  } else {
    wish = gm__round_up(gm__max(size, bytes), set->provider->rules.granule);
  }
  return (largest && wish > largest) || wish > most ? bytes : wish;
}
