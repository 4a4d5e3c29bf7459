#include "core/pool/growth.h"

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/pool/hole.h"
#include "core/pool/vmm.h"

/* How much an arena takes at a time: as much as its segments have, between 2 and 64 MiB, and never less than a
 * sixteenth, so that a small arena stays small and a large one asks its driver seldom. Of mapped pages, of which none
 * is lost to anybody, it takes less: 2 to 16 MiB and a 24th. A request of that size or more gets a segment of its own.
 * Where there is no room for so much it is less, and at last just what the request needs.
 *
 * Driver allocations cannot be joined, so what is left over of one is lost to larger requests. A large request gets one
 * of its own size, therefore. How large that is follows the pool, because drivers limit the number of allocations, too
 * (Vulkan: maxMemoryAllocationCount, 4096 is common): some hundreds for each doubling. */

static const uint64_t growth_unit = UINT64_C(2) << 20;
static const uint64_t growth_most = UINT64_C(64) << 20;       /* of a pool that holds less than a GiB */
static const uint64_t growth_most_pages = UINT64_C(16) << 20; /* the same of mapped pages */
static const uint64_t growth_own = UINT64_C(1) << 20;         /* the least large request */
static const uint64_t growth_own_unit = UINT64_C(64) << 10;
enum {
  GROWTH_SHARE = 16,       /* of a cap, and of a large pool */
  GROWTH_PAGES_SHARE = 24, /* the same of mapped pages */
  GROWTH_FEW = 4,          /* threads that share the work of a pool */
  GROWTH_OWN_SHARE = 1024, /* of a large pool: a large request */
  GROWTH_IDLE_SHARE = 2,   /* of the most that was in use: may lie idle in segments that are too small */
  GROWTH_EASE_SHARE = 8    /* of a request that smaller ones made room for: more than it needs */
};

static uint64_t growth_round(uint64_t bytes, uint64_t unit) {
  uint64_t more = (unit - bytes % unit) % unit;
  return more > UINT64_MAX - bytes ? bytes : bytes + more;
}

static uint64_t growth_step(const gm_pool *pool, uint64_t held, uint64_t bytes, uint64_t most, uint64_t share) {
  uint64_t cap = atomic_load_explicit(&pool->max_bytes, memory_order_relaxed);
  uint64_t wish = held < most ? held : most;
  if (wish < growth_unit) wish = growth_unit;
  if (wish < held / share) wish = held / share;
  if (wish > cap / GROWTH_SHARE) wish = cap / GROWTH_SHARE;
  return growth_round(wish > bytes ? wish : bytes, growth_unit);
}

/* An arena that has its part among few grows as the pool would alone; a new one begins small. */
uint64_t gm__growth_pages(const gm__arena *arena, uint64_t bytes) {
  const gm_pool *pool = arena->pool;
  const uint64_t claimed = atomic_load_explicit(&pool->claimed, memory_order_relaxed);
  const uint64_t own = arena->mapped_pages * pool->pages.page_bytes + gm__pages_spare_bytes(pool);
  return growth_step(pool, gm__min(claimed, GROWTH_FEW * own), bytes, growth_most_pages, GROWTH_PAGES_SHARE);
}

/* What the arena's segments have; 0 for a request with an alignment that they need not have: few are like it. */
static uint64_t growth_held(gm__arena *arena, const gm__want *want) {
  uint64_t bytes = 0;
  if (want->align > arena->kind.align) return 0;
  gm__arena_lock(arena);
  for (const gm__segment *segment = arena->segments; segment; segment = segment->next) {
    if (!segment->range) bytes += segment->node->bytes;
  }
  gm__arena_unlock(arena);
  return bytes;
}

static bool growth_is_large(const gm_pool *pool, uint64_t bytes) {
  const uint64_t held = atomic_load_explicit(&pool->claimed, memory_order_relaxed);
  return bytes >= gm__max(growth_own, held / GROWTH_OWN_SHARE);
}

/* What the arena would like to take for a request; `relieved`: bytes of smaller segments that went back for it. Then
 * the next request may be a little larger, too, and finds room. */
static uint64_t growth_wish(gm__arena *arena, const gm__want *want, uint64_t relieved) {
  const gm_pool *pool = arena->pool;
  const uint64_t bytes = want->exact;
  const uint64_t most = pool->rules.granule * UINT32_MAX; /* of a span */
  uint64_t largest = pool->device->info.max_alloc_bytes, wish;
  if (pool->rules.size == UINT64_MAX) {
    wish = growth_is_large(pool, bytes)
               ? growth_round(bytes + gm__min(relieved, bytes / GROWTH_EASE_SHARE), growth_own_unit)
               : growth_step(pool, growth_held(arena, want), bytes, growth_most, GROWTH_SHARE);
  } else {
    wish = growth_round(pool->rules.size > bytes ? pool->rules.size : bytes, pool->rules.granule);
  }
  return (largest && wish > largest) || wish > most ? bytes : wish;
}

static gm_status growth_no_host_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_alloc", "no host memory for a segment of the pool");
}

/* What memory for the request is to be asked for with: all that later requests of its sort need. */
static gm__want growth_want(const gm__arena *arena, const gm__want *want) {
  gm__want whole = *want;
  if (whole.align < arena->kind.align) whole.align = arena->kind.align;
  whole.usage = arena->kind.usage;
  whole.flags = arena->kind.flags;
  whole.must_be = arena->kind.must_be;
  return whole;
}

static void growth_set_segment(gm_pool *pool, gm__node *node, gm__segment *segment) {
  gm__mutex_lock(&pool->lock);
  node->segment = segment;
  node->state = segment ? GM__NODE_SEGMENT : GM__NODE_AWAY;
  gm__mutex_unlock(&pool->lock);
}

/* The segment is the arena's, and the request gets its part. Inside the arena's lock. */
static gm_status growth_carve(gm__arena *arena, const gm__want *want, gm__segment *segment, uint32_t *out,
                              gm_error *err) {
  const uint32_t hole = gm__arena_span(arena, segment->edge)->right;
  if (!gm__hole_fits(arena, want, hole)) {
    return gm__fail(err, GM_ERR_DRIVER, 0, "gm_alloc", "the driver gave memory that is not aligned as asked");
  }
  *out = gm__hole_carve(arena, want, hole);
  gm__lookup_insert(&arena->lookup, &arena->spans, *out);
  return GM_OK;
}

static gm_status growth_open(gm__arena *arena, const gm__want *want, gm__segment *segment, uint32_t *out,
                             gm_error *err) {
  gm_status status = GM_OK;
  gm__arena_lock(arena);
  const bool opened = gm__spans_reserve(&arena->spans, GM__HOLE_SPANS + 2) &&
                      gm__lookup_reserve(&arena->lookup, &arena->spans) && gm__segment_open(arena, segment);
  if (opened) {
    status = growth_carve(arena, want, segment, out, err);
    gm__growth_publish(arena);
  }
  gm__arena_unlock(arena);
  return opened ? status : growth_no_host_memory(err);
}

/* Where that fails requests for zeros see to it themselves. */
static bool growth_zero(gm_pool *pool, const gm__node *node) {
  return gm__supply_zero(pool, &node->memory, node->offset, node->bytes, NULL) == GM_OK;
}

static void growth_give_back(gm_pool *pool, gm__segment *segment, gm__leaving *leaving) {
  gm__mutex_lock(&pool->lock);
  segment->node->segment = NULL;
  segment->node->state = GM__NODE_AWAY;
  gm__supply_leave(pool, leaving, segment->node);
  gm__mutex_unlock(&pool->lock);
  gm__release(gm__context_services(pool->device->ctx), segment, sizeof *segment);
}

/* The oldest of the arena's segments. */
static gm__segment *growth_oldest(const gm__arena *arena) {
  gm__segment *oldest = arena->segments;
  while (oldest && oldest->next) oldest = oldest->next;
  return oldest;
}

static uint64_t growth_idle_bytes(const gm__arena *arena) {
  uint64_t bytes = 0;
  for (const gm__segment *segment = arena->segments; segment; segment = segment->next) {
    if (gm__segment_is_idle(arena, segment)) bytes += segment->node->bytes;
  }
  return bytes;
}

/* Idle segments that are too small for the request leave, oldest first, as far as they are more than an arena may keep
 * that needs another one. What it ever had in use at once sets that bound, so that what comes again is not given back.
 * The bytes given back. */
static uint64_t growth_relieve(gm__arena *arena, uint64_t bytes) {
  gm__leaving leaving = {0};
  gm__arena_lock(arena);
  const uint64_t peak = atomic_load_explicit(&arena->tally.peak_in_use, memory_order_relaxed);
  const uint64_t idle = growth_idle_bytes(arena), keep = gm__max(growth_most, peak / GROWTH_IDLE_SHARE);
  for (gm__segment *segment = idle > keep ? growth_oldest(arena) : NULL, *newer; segment; segment = newer) {
    newer = segment->prev;
    if (idle - leaving.bytes <= keep) break;
    if (segment->node->bytes >= bytes || !gm__segment_is_idle(arena, segment)) continue;
    gm__segment_close(arena, segment);
    growth_give_back(arena->pool, segment, &leaving);
  }
  if (leaving.first) gm__growth_publish(arena);
  gm__arena_unlock(arena);
  gm__supply_return(arena->pool, &leaving);
  return leaving.bytes;
}

static gm_status growth_try(gm__arena *arena, const gm__want *want, uint64_t bytes, uint32_t *out, gm_error *err) {
  gm_pool *pool = arena->pool;
  gm__leaving leaving = {0};
  gm__want whole = growth_want(arena, want);
  gm__segment *segment = gm__alloc(gm__context_services(pool->device->ctx), sizeof *segment);
  if (!segment) return growth_no_host_memory(err);
  gm_status status = gm__supply_take(pool, &whole, bytes, &segment->node, err);
  if (status) {
    gm__release(gm__context_services(pool->device->ctx), segment, sizeof *segment);
    return status;
  }
  segment->arena = arena;
  segment->zeroed = pool->rules.zeroes && growth_zero(pool, segment->node);
  growth_set_segment(pool, segment->node, segment);
  status = growth_open(arena, want, segment, out, err);
  if (status != GM_ERR_OUT_OF_HOST_MEMORY) return status;
  growth_give_back(pool, segment, &leaving);
  gm__supply_return(pool, &leaving);
  return status;
}

gm_status gm__growth_take(gm__arena *arena, const gm__want *want, uint32_t *out, gm_error *err) {
  if (gm__vmm_serves(arena)) { /* else, where not a whole page may be had, driver allocations as small as they can be */
    const gm_status status = gm__vmm_take(arena, want, out, err);
    if (!gm__supply_is_shortage(status)) return status;
  }
  uint64_t bytes = growth_wish(arena, want, growth_relieve(arena, want->exact));
  for (;;) {
    gm_status status = growth_try(arena, want, bytes, out, err);
    if (!gm__supply_is_shortage(status) || bytes == want->exact) return status;
    bytes = growth_round(bytes / 4, growth_unit);
    if (bytes <= growth_unit || bytes < want->exact) bytes = want->exact;
  }
}

void gm__growth_tidy(gm__arena *arena) {
  gm__holes_flush(arena);
  gm__order_refresh(&arena->order, UINT64_MAX);
  gm__holes_settle(arena);
}

/* A segment of the other arena that nobody uses and that is large enough; it has left that arena. */
static gm__segment *growth_detach(gm__arena *other, const gm__want *want) {
  gm__segment *found = NULL;
  gm__arena_lock(other);
  gm__growth_tidy(other);
  for (gm__segment *segment = other->segments; segment && !found; segment = segment->next) {
    if (!gm__segment_is_idle(other, segment)) continue;
    if (gm__hole_fits(other, want, gm__arena_span(other, segment->edge)->right)) found = segment;
  }
  if (found) gm__segment_close(other, found);
  gm__growth_publish(other);
  gm__arena_unlock(other);
  return found;
}

static bool growth_attach(gm__arena *arena, gm__segment *segment) {
  gm__leaving leaving = {0};
  gm__arena_lock(arena);
  segment->arena = arena;
  const bool opened = gm__segment_open(arena, segment);
  gm__growth_publish(arena);
  gm__arena_unlock(arena);
  if (opened) return true;
  growth_give_back(arena->pool, segment, &leaving);
  gm__supply_return(arena->pool, &leaving);
  return false;
}

bool gm__growth_move(gm__arena *arena, const gm__want *want) {
  gm__arena *other;
  for (uint32_t i = 0; (other = gm__arena_at(arena->pool, i)); i++) {
    if (other == arena || !gm__kind_serves(&other->kind, &arena->kind)) continue;
    gm__segment *segment = growth_detach(other, want);
    if (segment) return growth_attach(arena, segment);
  }
  return false;
}

void gm__growth_trim(gm_pool *pool, uint64_t keep_bytes, uint64_t freed_by, gm__leaving *leaving) {
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    gm__growth_tidy(arena);
    for (gm__segment *segment = arena->segments, *next; segment; segment = next) {
      next = segment->next;
      if (gm__sub_sat(gm__pool_pooled(pool), leaving->bytes) <= keep_bytes) break; /* others take meanwhile */
      if (!gm__segment_is_idle_since(arena, segment, freed_by)) continue;
      gm__segment_close(arena, segment);
      growth_give_back(pool, segment, leaving);
    }
    gm__growth_publish(arena);
    gm__arena_unlock(arena);
  }
}

void gm__growth_publish(gm__arena *arena) {
  uint64_t bytes = gm__vmm_serves(arena) ? gm__vmm_idle_bytes(arena) : 0, charged = bytes;
  for (const gm__segment *segment = arena->segments; segment; segment = segment->next) {
    if (!gm__segment_is_idle(arena, segment)) continue;
    bytes += segment->node->bytes;
    if (gm__device_is_charged(arena->pool->device, &segment->node->memory)) charged += segment->node->bytes;
  }
  atomic_store_explicit(&arena->tally.reclaimable, bytes, memory_order_relaxed);
  if (arena->pool->has_upstream || charged == arena->noted) return;
  gm__device_note_pooled(arena->pool->device, (int64_t)(charged - arena->noted));
  arena->noted = charged;
}
