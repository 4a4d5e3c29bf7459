#include "core/pool/growth.h"

#include "core/base/alloc.h"
#include "core/base/error.h"

/* How much a pool takes at a time: as much as it has, between 2 and 64 MiB, and never less than a sixteenth, so that a
 * small pool stays small and a large one asks its driver seldom. A request of that size or more gets a segment of its
 * own. Where there is no room for so much it is less, and at last just what the request needs. */

static const uint64_t growth_unit = UINT64_C(2) << 20;
static const uint64_t growth_most = UINT64_C(64) << 20; /* of a pool that holds less than a GiB */
enum { GROWTH_SHARE = 16 };                             /* of a cap, and of a large pool */

static uint64_t growth_round(uint64_t bytes, uint64_t unit) {
  uint64_t more = (unit - bytes % unit) % unit;
  return more > UINT64_MAX - bytes ? bytes : bytes + more;
}

/* As the pool grows. */
static uint64_t growth_auto(const gm_pool *pool, uint64_t bytes) {
  uint64_t held = atomic_load_explicit(&pool->claimed, memory_order_relaxed);
  uint64_t cap = atomic_load_explicit(&pool->max_bytes, memory_order_relaxed);
  uint64_t wish = held < growth_most ? held : growth_most;
  if (wish < growth_unit) wish = growth_unit;
  if (wish < held / GROWTH_SHARE) wish = held / GROWTH_SHARE;
  if (wish > cap / GROWTH_SHARE) wish = cap / GROWTH_SHARE;
  return growth_round(wish > bytes ? wish : bytes, growth_unit);
}

/* What the pool would like to take for a request. */
static uint64_t growth_wish(const gm_pool *pool, uint64_t bytes) {
  const gm__segments *segments = &pool->segments;
  uint64_t largest = pool->device->info.max_alloc_bytes, wish;
  if (segments->size == UINT64_MAX) {
    wish = growth_auto(pool, bytes);
  } else {
    wish = growth_round(segments->size > bytes ? segments->size : bytes, segments->granule);
  }
  return largest && wish > largest ? bytes : wish;
}

static void growth_drop(gm_pool *pool, gm__segment *segment, gm__node *hole) {
  gm__mutex_lock(&pool->lock);
  if (hole) gm__node_give(&pool->nodes, hole);
  gm__mutex_unlock(&pool->lock);
  if (!segment) return;
  gm__release(pool->segments.services, segment->map_memory, segment->map_size);
  gm__release(pool->segments.services, segment, sizeof *segment);
}

/* All that a segment needs on the host but for its kind; false without host memory. */
static bool growth_prepare(gm_pool *pool, uint64_t bytes, gm__segment **out, gm__node **out_hole) {
  const gm_services *services = pool->segments.services;
  gm__segment *segment = gm__alloc(services, sizeof *segment);
  if (!segment) return false;
  segment->map_size = gm__span_map_size(bytes);
  segment->map_memory = segment->map_size ? gm__alloc(services, segment->map_size) : NULL;
  gm__mutex_lock(&pool->lock);
  gm__node *hole = gm__node_take(&pool->nodes);
  gm__mutex_unlock(&pool->lock);
  if (hole && segment->map_memory) {
    *out = segment;
    *out_hole = hole;
    return true;
  }
  growth_drop(pool, segment, hole);
  return false;
}

static gm_status growth_no_host_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_alloc", "no host memory for a segment of the pool");
}

/* The segment's memory is there: cut the request out of it before another thread can. */
static gm_status growth_open(gm_pool *pool, const gm__want *want, gm__segment *segment, gm__node *hole, gm__node **out,
                             gm_error *err) {
  gm__leaving leaving = {0};
  gm_status status = GM_OK;
  gm__mutex_lock(&pool->lock);
  segment->kind = gm__segments_kind(pool, want, &segment->node->memory);
  if (!segment->kind) {
    status = growth_no_host_memory(err);
    gm__supply_leave(pool, &leaving, segment->node);
  } else {
    gm__segment_open(pool, segment, hole);
    if (!gm__segments_fit(pool, want, hole)) {
      status = gm__fail(err, GM_ERR_DRIVER, 0, "gm_alloc", "the driver gave memory that is not aligned as asked");
    } else if (!(*out = gm__segments_carve(pool, want, hole))) {
      status = growth_no_host_memory(err);
    }
  }
  gm__mutex_unlock(&pool->lock);
  if (leaving.first) {
    gm__supply_return(pool, &leaving);
    growth_drop(pool, segment, hole);
  }
  return status;
}

static gm_status growth_try(gm_pool *pool, const gm__want *want, uint64_t bytes, gm__node **out, gm_error *err) {
  gm__segment *segment = NULL;
  gm__node *hole = NULL;
  if (!growth_prepare(pool, bytes, &segment, &hole)) return growth_no_host_memory(err);
  gm__want whole = gm__segments_want(pool, want);
  gm_status status = gm__supply_take(pool, &whole, bytes, &segment->node, err);
  if (!status) return growth_open(pool, want, segment, hole, out, err);
  growth_drop(pool, segment, hole);
  return status;
}

gm_status gm__growth_take(gm_pool *pool, const gm__want *want, gm__node **out, gm_error *err) {
  uint64_t bytes = growth_wish(pool, want->rounded);
  for (;;) {
    gm_status status = growth_try(pool, want, bytes, out, err);
    if (!gm__supply_is_shortage(status) || bytes == want->rounded) return status;
    bytes = growth_round(bytes / 4, growth_unit);
    if (bytes <= growth_unit || bytes < want->rounded) bytes = want->rounded;
  }
}

void gm__growth_trim(gm_pool *pool, uint64_t keep_bytes, gm__leaving *leaving) {
  gm__segments_settle(pool);
  for (gm__segment *segment = pool->segments.first, *next; segment && pool->pooled > keep_bytes; segment = next) {
    next = segment->next;
    if (segment->idle) gm__supply_leave(pool, leaving, gm__segment_close(pool, segment));
  }
}
