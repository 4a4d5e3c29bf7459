#include "core/pool/spans.h"

#include <inttypes.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/heap/headroom.h"
#include "core/pool/alloc_one.h"
#include "core/pool/free_one.h"
#include "core/pool/quota.h"

/* Invariants. A part is a live block of the pool with all that belongs to one: figures, limits, tracking, guards. It
 * knows its whole block, so gm_free refuses the part alone. The whole block is a record in the pool's map, and counts
 * nowhere.
 *
 * The record lives longer than what its parts know of it: each part forgets it, under its own lock, before it is freed.
 * The number of a whole block is never used twice, so a gm_block that outlived its parts is refused. */

enum { SPANS_NUMBER_BITS = 30 }; /* bits of gm_block.number */

static const uint64_t spans_least_bytes = UINT64_C(1) << 20;

/* ---- the records ---- */

static uint64_t spans_key(const gm_block *block) { return (uint64_t)block->number << 32 | block->check; }

static gm__spans *spans_find(const gm_pool *pool, const gm_block *block) {
  uint64_t found = 0;
  if (!gm__map_find(&pool->spans, spans_key(block), &found)) return NULL;
  gm__spans *whole = (gm__spans *)(uintptr_t)found;
  const bool same = whole->block.bytes == block->bytes && !block->address && !block->memory;
  return same || !pool->heap.checked ? whole : NULL;
}

/* Names the whole block once all parts are there. Bytes that the last part has beyond the request are usable. REQUIRES:
 * provider lock. */
static gm_block spans_name(gm_pool *pool, gm__spans *whole) {
  gm_block_span *last = &whole->parts[whole->count - 1].span;
  last->bytes = last->block.bytes;
  const uint64_t turn = pool->spans_turns++;
  return (gm_block){.bytes = last->offset + last->bytes,
                    .number = GM__SPANS_BLOCK | (uint32_t)(turn & ((UINT64_C(1) << SPANS_NUMBER_BITS) - 1)),
                    .check = pool->heap.provider.allocations.first_check + (uint32_t)(turn >> SPANS_NUMBER_BITS)};
}

bool gm__spans_part(gm_pool *pool, const gm_block *block, uint32_t number, gm_block_span *out) {
  gm__mutex_lock(&pool->heap.provider.lock);
  const gm__spans *whole = spans_find(pool, block);
  const bool there = whole && number < whole->count;
  if (there) *out = whole->parts[number].span;
  gm__mutex_unlock(&pool->heap.provider.lock);
  return there;
}

bool gm__spans_at(gm_pool *pool, const gm_block *block, uint64_t offset, gm_block_span *out) {
  gm__mutex_lock(&pool->heap.provider.lock);
  const gm__spans *whole = spans_find(pool, block);
  uint32_t number = whole ? whole->count - 1 : 0;
  while (whole && whole->parts[number].span.offset > offset) number--;
  if (whole) *out = whole->parts[number].span;
  gm__mutex_unlock(&pool->heap.provider.lock);
  return whole != NULL;
}

bool gm__spans_next(gm_pool *pool, const gm_block *block, uint32_t *cursor, gm_block_span *out) {
  const uint32_t number = (*cursor)++;
  if (gm__spans_is(block)) return gm__spans_part(pool, block, number, out);
  *out = (gm_block_span){.block = *block, .bytes = block->bytes};
  return number == 0;
}

void gm__spans_end(gm_pool *pool) {
  size_t cursor = 0;
  uint64_t key, record;
  while (gm__map_next(&pool->spans, &cursor, &key, &record)) {
    gm__release(gm__context_services(pool->device->ctx), (gm__spans *)(uintptr_t)record, sizeof(gm__spans));
  }
  gm__map_clear(&pool->spans);
}

/* ---- sizes ---- */

/* The most bytes of a part: with what a guard adds, the driver allows them for one allocation. All parts but the last
 * are multiples of the alignment, so that no element of a tensor lies in two. */
static uint64_t spans_most(const gm_pool *pool, const gm__want *want) {
  const uint64_t limit = pool->device->info.max_alloc_bytes;
  uint64_t most = limit ? limit : UINT64_MAX;
  if (pool->guard) most = gm__sub_sat(most, gm__guard_bytes(pool->guard, 0, want->align));
  return most / want->align * want->align;
}

static uint64_t spans_count(uint64_t bytes, uint64_t size) {
  return size ? bytes / size + (bytes % size != 0) : UINT64_MAX;
}

/* The least bytes of a part, but for the last. */
static uint64_t spans_least(const gm_pool *pool) {
  const uint64_t limit = pool->device->info.max_alloc_bytes;
  return limit ? gm__min(limit, spans_least_bytes) : spans_least_bytes;
}

/* Is the request worth splitting, and can so few parts hold it as a block may have? */
static bool spans_can(const gm_pool *pool, const gm__want *want) {
  return want->bytes > spans_least(pool) && spans_count(want->bytes, spans_most(pool, want)) <= GM_BLOCK_SPANS_MOST;
}

/* The size of the first parts: as few and as equal as may be. A request that the driver allows in one memory is
 * halved. */
static uint64_t spans_first(const gm_pool *pool, const gm__want *want) {
  const uint64_t most = spans_most(pool, want), count = gm__max(spans_count(want->bytes, most), 2);
  const uint64_t alike = gm__round_up(spans_count(want->bytes, count), want->align);
  return gm__max(alike, gm__min(most, spans_least(pool)));
}

/* ---- allocating ---- */

/* Tells the part's block of its whole block. False without host memory. */
static bool spans_join(gm_pool *pool, const gm__span_part *part) {
  gm__live live;
  if (!gm__live_open(&pool->heap, &part->span.block, &live)) return false;
  const bool made = gm__live_make_cold(&live);
  if (made) live.cold->part = part;
  gm__live_close(&live);
  return made;
}

static void spans_unjoin(gm_pool *pool, const gm__span_part *part) {
  gm__live live;
  if (!gm__live_open(&pool->heap, &part->span.block, &live)) return;
  if (live.cold) live.cold->part = NULL;
  gm__live_close(&live);
}

static gm_status spans_no_host_memory(gm__refusal *why) {
  why->status =
      gm__fail(&why->failure, GM_ERR_OUT_OF_HOST_MEMORY, "gm_alloc", "no host memory for a block of several memories");
  return why->status;
}

/* Enters the whole block into the map, and tells all its parts. */
static gm_status spans_enter(gm_pool *pool, gm__spans *whole, gm__refusal *why) {
  gm__mutex_lock(&pool->heap.provider.lock);
  whole->block = spans_name(pool, whole);
  gm__mutex_unlock(&pool->heap.provider.lock);
  bool done = true;
  for (uint32_t i = 0; done && i < whole->count; i++) done = spans_join(pool, &whole->parts[i]);
  gm__mutex_lock(&pool->heap.provider.lock);
  done = done && gm__map_insert(&pool->spans, spans_key(&whole->block), (uintptr_t)whole) == GM_OK;
  gm__mutex_unlock(&pool->heap.provider.lock);
  if (done) return GM_OK;
  return spans_no_host_memory(why);
}

/* Allocates one more part, of `size` bytes or less. */
static gm_acquire spans_alloc_part(gm_pool *pool, const gm__want *all, const gm_request *request, gm__spans *whole,
                                   uint64_t at, uint64_t size, gm__refusal *why) {
  gm__span_part *part = &whole->parts[whole->count];
  gm_request asked = *request;
  asked.bytes = gm__min(size, request->bytes - at);
  asked.flags = (request->flags & ~(uint32_t)GM_ALLOW_SPANS) | GM_INSERT_WAIT;
  *part = (gm__span_part){.span = {.offset = at, .bytes = asked.bytes}, .whole = whole};
  gm__want want;
  gm__refusal_begin(why);
  if (gm__request_read(pool, &asked, &want, NULL)) return GM_ACQUIRE_INVALID;
  want.ladder = all->ladder;
  want.patient = all->patient;
  const gm_acquire answer = gm__alloc_one(pool, &want, &part->span.block, why);
  whole->count += answer <= GM_ACQUIRE_FRESH;
  return answer;
}

/* Allocates parts for all bytes: of the first size as long as such can be had, then of half of that, and so on. */
static gm_acquire spans_alloc_parts(gm_pool *pool, const gm__want *want, const gm_request *request, gm__spans *whole,
                                    gm__refusal *why) {
  uint64_t size = spans_first(pool, want), at = 0;
  const uint64_t least = spans_least(pool);
  gm_acquire all = GM_ACQUIRE_FRESH;
  while (at < want->bytes) {
    size = gm__min(size, want->bytes - at);
    if (spans_count(want->bytes - at, size) > GM_BLOCK_SPANS_MOST - whole->count) return GM_ACQUIRE_EXHAUSTED;
    const gm_acquire answer = spans_alloc_part(pool, want, request, whole, at, size, why);
    if (answer <= GM_ACQUIRE_FRESH) {
      at += size;
      if (answer == GM_ACQUIRE_OK) all = GM_ACQUIRE_OK;
      continue;
    }
    const uint64_t half = gm__max(gm__round_up(spans_count(size, 2), want->align), least);
    if (!gm__is_shortage(why->status) || half >= size) return answer;
    size = half;
  }
  *why = (gm__refusal){.status = GM_OK};
  return all;
}

/* Frees the parts again, and gives back what the pool took for them. */
static void spans_undo(gm_pool *pool, const gm__want *want, gm__spans *whole, uint64_t pooled_before) {
  for (uint32_t i = whole->count; i > 0; i--) {
    const gm__span_part *part = &whole->parts[i - 1];
    spans_unjoin(pool, part);
    gm__free_unused(pool, &part->span.block, want->stream, gm__free_one);
  }
  const bool takes = !(want->flags & GM_POOLED_ONLY) && !pool->heap.provider.no_trim;
  if (whole->count && takes) gm__heap_trim(&pool->heap, pooled_before, UINT64_MAX);
  gm__release(gm__context_services(pool->device->ctx), whole, sizeof *whole);
}

/* Is there no use in trying? More than the tag or the pool may have is not tried: it would only take memory from others
 * and give it back. */
static bool spans_is_hopeless(gm_pool *pool, const gm__want *want, gm__refusal *why) {
  if (!spans_can(pool, want) || gm__pool_check_quota(pool, want)) return true;
  gm_error failure;
  if (gm__headroom_check(&pool->heap, want, &failure) == GM_OK) return false;
  *why = (gm__refusal){.status = GM_ERR_OVER_LIMIT, .failure = failure};
  return true;
}

gm_acquire gm__spans_alloc(gm_pool *pool, const gm__want *want, const gm_request *request, gm_block *out,
                           gm__refusal *why) {
  if (spans_is_hopeless(pool, want, why)) return GM_ACQUIRE_EXHAUSTED;
  const uint64_t pooled_before = gm__heap_pooled(&pool->heap);
  gm__spans *whole = gm__alloc(gm__context_services(pool->device->ctx), sizeof *whole);
  if (!whole) {
    spans_no_host_memory(why);
    return GM_ACQUIRE_EXHAUSTED;
  }
  whole->requested = want->bytes;
  const uint64_t began = gm__now_ns();
  gm_acquire answer = spans_alloc_parts(pool, want, request, whole, why);
  gm__ladder_step(want->ladder, GM_RUNG_SPANS, began, 0);
  if (answer <= GM_ACQUIRE_FRESH && spans_enter(pool, whole, why)) answer = GM_ACQUIRE_EXHAUSTED;
  if (answer <= GM_ACQUIRE_FRESH) {
    *out = whole->block;
  } else {
    spans_undo(pool, want, whole, pooled_before);
  }
  return answer;
}

/* ---- freeing ---- */

/* May the part be freed in the order of the stream? All parts are asked before the first one is freed. */
static gm_status spans_check_part(gm_pool *pool, const gm_block *part, gm_stream *stream) {
  gm__live live;
  const bool captured = gm__stream_captured(stream);
  if (captured && pool->guard && gm__guard_writes(pool->guard)) return GM_ERR_BUSY;
  if (!gm__live_open(&pool->heap, part, &live)) return GM_ERR_INVALID_ARGUMENT;
  const bool mapped = live.cold && live.cold->mappings;
  const bool placed = !stream || gm__live_free_slot(&live, stream) != GM__ORDER_HOST;
  gm__live_close(&live);
  return mapped ? GM_ERR_BUSY : placed ? GM_OK : GM_ERR_OUT_OF_HOST_MEMORY;
}

/* Takes the whole block out of the map, so that nobody finds it any more. NULL: it is not there. */
static gm__spans *spans_unlist(gm_pool *pool, const gm_block *block) {
  gm__mutex_lock(&pool->heap.provider.lock);
  gm__spans *whole = spans_find(pool, block);
  if (whole) gm__map_remove(&pool->spans, spans_key(block), NULL);
  gm__mutex_unlock(&pool->heap.provider.lock);
  return whole;
}

gm_status gm__spans_free(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  gm_block_span span;
  gm_status status = GM_OK;
  for (uint32_t i = 0; !status && gm__spans_part(pool, block, i, &span); i++) {
    status = spans_check_part(pool, &span.block, stream);
  }
  gm__spans *whole = status ? NULL : spans_unlist(pool, block);
  if (!whole) return status ? status : GM_ERR_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < whole->count; i++) spans_unjoin(pool, &whole->parts[i]);
  for (uint32_t i = 0; i < whole->count; i++) {
    const gm_status freed = gm__free_one(pool, &whole->parts[i].span.block, stream);
    if (!status) status = freed;
  }
  gm__release(gm__context_services(pool->device->ctx), whole, sizeof *whole);
  return status;
}

/* ---- public ---- */

gm_status gm_block_spans(gm_pool *pool, const gm_block *block, uint32_t first, uint32_t capacity, gm_block_span *out,
                         uint32_t *out_count, gm_error *err) {
  static const char op[] = "gm_block_spans";
  gm__live live;
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (!block || !out_count || (capacity && !out)) {
    return gm__bad_argument(err, op, "`%s` is NULL", !block ? "block" : out_count ? "out" : "out_count");
  }
  gm_block_span span = {.block = *block, .bytes = block->bytes};
  uint32_t count = 0;
  if (gm__spans_is(block)) {
    for (; gm__spans_part(pool, block, count, &span); count++) {
      if (count >= first && count - first < capacity) out[count - first] = span;
    }
  } else if (gm__live_open(&pool->heap, block, &live)) {
    gm__live_close(&live);
    if (first == 0 && capacity) *out = span;
    count = 1;
  }
  if (!count) {
    return gm__bad_argument(err, op, "`block` is no live block of pool \"%s\": freed, foreign or altered",
                            pool->heap.provider.name);
  }
  *out_count = count;
  return GM_OK;
}
