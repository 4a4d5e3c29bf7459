#include "core/arena/grow.h"

#include "core/arena/free_chunks.h"
#include "core/arena/reclaim.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

static gm_status growth_no_host_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_alloc", "no host memory for a segment of the pool");
}

/* The provider is asked for memory for all requests of the arena's kind, not for this one alone. */
static gm__want growth_want(const gm__arena *arena, const gm__want *want) {
  gm__want whole = *want;
  if (whole.align < arena->kind.align) whole.align = arena->kind.align;
  whole.usage = arena->kind.usage;
  whole.flags = arena->kind.flags;
  whole.must_be = arena->kind.must_be;
  return whole;
}

static void growth_set_segment(gm__arena_set *set, gm__allocation *allocation, gm__segment *segment) {
  gm__mutex_lock(&set->provider->lock);
  allocation->segment = segment;
  allocation->state = segment ? GM__ALLOCATION_SEGMENT : GM__ALLOCATION_AWAY;
  gm__mutex_unlock(&set->provider->lock);
}

/* The arena has the segment now, and the request gets its part. REQUIRES: arena lock. */
static gm_status growth_carve(gm__arena *arena, const gm__want *want, gm__segment *segment, uint32_t *out,
                              gm_error *err) {
  const uint32_t free_chunk = gm__arena_chunk(arena, segment->edge)->right;
  if (!gm__free_chunk_fits(arena, want, free_chunk)) {
    return gm__fail(err, GM_ERR_DRIVER, "gm_alloc", "the driver gave memory that is not aligned as asked");
  }
  *out = gm__free_chunk_carve(arena, want, free_chunk);
  gm__lookup_insert(&arena->lookup, &arena->chunks, *out);
  return GM_OK;
}

static gm_status growth_open(gm__arena *arena, const gm__want *want, gm__segment *segment, uint32_t *out,
                             gm_error *err) {
  gm_status status = GM_OK;
  gm__arena_lock(arena);
  const bool opened = gm__chunks_reserve(&arena->chunks, GM__CARVE_CHUNKS + 2) &&
                      gm__lookup_reserve(&arena->lookup, &arena->chunks) && gm__segment_open(arena, segment);
  if (opened) {
    status = growth_carve(arena, want, segment, out, err);
    gm__arena_publish(arena);
  }
  gm__arena_unlock(arena);
  return opened ? status : growth_no_host_memory(err);
}

/* Where this fails, requests for zeros clear their blocks themselves. */
static bool growth_zero(gm__arena_set *set, const gm__allocation *allocation) {
  return gm__device_zero(set->provider->device, &allocation->memory, allocation->offset, allocation->bytes, NULL) ==
         GM_OK;
}

static gm_status growth_try(gm__arena *arena, const gm__want *want, uint64_t bytes, uint32_t *out, gm_error *err) {
  gm__arena_set *set = arena->set;
  gm__leaving leaving = {0};
  gm__want whole = growth_want(arena, want);
  gm__segment *segment = gm__alloc(gm__provider_services(set->provider), sizeof *segment);
  if (!segment) return growth_no_host_memory(err);
  gm_status status = gm__provider_alloc(set->provider, &whole, bytes, &segment->allocation, err);
  if (status) {
    gm__release(gm__provider_services(set->provider), segment, sizeof *segment);
    return status;
  }
  segment->arena = arena;
  segment->zeroed = set->provider->rules.zeroes && growth_zero(set, segment->allocation);
  growth_set_segment(set, segment->allocation, segment);
  status = growth_open(arena, want, segment, out, err);
  if (status != GM_ERR_OUT_OF_HOST_MEMORY) return status;
  gm__segment_give_back(set, segment, &leaving);
  gm__provider_return(set->provider, &leaving);
  return status;
}

gm_status gm__growth_take(gm__arena *arena, const gm__want *want, uint32_t *out, gm_error *err) {
  if (gm__arena_has_pages(arena)) { /* a shortage: not even a page may be had, but a small driver allocation perhaps */
    const gm_status status = gm__map_grow(arena, want, out, err);
    if (!gm__is_shortage(status)) return status;
  }
  uint64_t bytes = gm__growth_wish(arena, want, gm__reclaim_small(arena, want->exact));
  for (;;) {
    gm_status status = growth_try(arena, want, bytes, out, err);
    if (!gm__is_shortage(status) || bytes == want->exact) return status;
    bytes = gm__round_up(bytes / 4, GM__GROWTH_UNIT);
    if (bytes <= GM__GROWTH_UNIT || bytes < want->exact) bytes = want->exact;
  }
}
