#include "core/pool/spanned.h"

#include <inttypes.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/pool/quota.h"
#include "core/pool/release.h"
#include "core/pool/room.h"
#include "core/pool/supply.h"

/* Invariants: a piece is a live block of the pool with all that belongs to one (figures, limits, tracking, guards), and
 * knows its whole, which is what keeps gm_free of it alone away; the whole is a record in the pool's map, and counts
 * nowhere. The record outlives what its pieces know of it: they forget it, each inside its own lock, before they are
 * given back. Numbers of wholes are never used twice, so that one by value that outlived its pieces is refused. */

enum { SPANNED_NUMBER_BITS = 30 }; /* of gm_block.node */

static const uint64_t spanned_least = UINT64_C(1) << 20;

/* ---- the records: under the pool's lock ---- */

static uint64_t spanned_key(const gm_block *block) { return (uint64_t)block->node << 32 | block->check; }

static gm__spanned *spanned_find(const gm_pool *pool, const gm_block *block) {
  uint64_t found = 0;
  if (!gm__map_find(&pool->spanned, spanned_key(block), &found)) return NULL;
  gm__spanned *whole = (gm__spanned *)(uintptr_t)found;
  const bool same = whole->block.bytes == block->bytes && !block->address && !block->memory;
  return same || !pool->checked ? whole : NULL;
}

/* A name for the whole, whose pieces are all there; what the last one has to spare is usable. */
static gm_block spanned_name(gm_pool *pool, gm__spanned *whole) {
  gm_block_span *last = &whole->pieces[whole->count - 1].span;
  last->bytes = last->block.bytes;
  const uint64_t turn = pool->spanned_turns++;
  return (gm_block){.bytes = last->offset + last->bytes,
                    .node = GM__SPANNED_BLOCK | (uint32_t)(turn & ((UINT64_C(1) << SPANNED_NUMBER_BITS) - 1)),
                    .check = pool->nodes.first_check + (uint32_t)(turn >> SPANNED_NUMBER_BITS)};
}

bool gm__spanned_piece(gm_pool *pool, const gm_block *block, uint32_t number, gm_block_span *out) {
  gm__mutex_lock(&pool->lock);
  const gm__spanned *whole = spanned_find(pool, block);
  const bool there = whole && number < whole->count;
  if (there) *out = whole->pieces[number].span;
  gm__mutex_unlock(&pool->lock);
  return there;
}

bool gm__spanned_at(gm_pool *pool, const gm_block *block, uint64_t offset, gm_block_span *out) {
  gm__mutex_lock(&pool->lock);
  const gm__spanned *whole = spanned_find(pool, block);
  uint32_t number = whole ? whole->count - 1 : 0;
  while (whole && whole->pieces[number].span.offset > offset) number--;
  if (whole) *out = whole->pieces[number].span;
  gm__mutex_unlock(&pool->lock);
  return whole != NULL;
}

void gm__spanned_end(gm_pool *pool) {
  size_t cursor = 0;
  uint64_t key, record;
  while (gm__map_next(&pool->spanned, &cursor, &key, &record)) {
    gm__release(gm__context_services(pool->device->ctx), (gm__spanned *)(uintptr_t)record, sizeof(gm__spanned));
  }
  gm__map_clear(&pool->spanned);
}

/* ---- sizes ---- */

/* The largest piece: with what a guard adds, what the driver allows for one allocation. All but the last are whole
 * units of the alignment, so that no element of a tensor lies in two. */
static uint64_t spanned_most(const gm_pool *pool, const gm__want *want) {
  const uint64_t limit = pool->device->info.max_alloc_bytes;
  uint64_t most = limit ? limit : UINT64_MAX;
  if (pool->guard) most = gm__sub_sat(most, gm__guard_bytes(pool->guard, 0, want->align));
  return most / want->align * want->align;
}

static uint64_t spanned_round_up(uint64_t bytes, uint64_t unit) {
  const uint64_t more = (unit - bytes % unit) % unit;
  return more > UINT64_MAX - bytes ? bytes : bytes + more;
}

static uint64_t spanned_count(uint64_t bytes, uint64_t size) {
  return size ? bytes / size + (bytes % size != 0) : UINT64_MAX;
}

uint64_t gm__spanned_least(const gm_pool *pool) {
  const uint64_t limit = pool->device->info.max_alloc_bytes;
  return limit ? gm__min(limit, spanned_least) : spanned_least;
}

bool gm__spanned_can(const gm_pool *pool, const gm__want *want) {
  return want->bytes > gm__spanned_least(pool) &&
         spanned_count(want->bytes, spanned_most(pool, want)) <= GM_BLOCK_SPANS_MOST;
}

/* Of the first pieces: as few as may be and alike, of a request that the driver allows in one piece half of it. */
static uint64_t spanned_first(const gm_pool *pool, const gm__want *want) {
  const uint64_t most = spanned_most(pool, want), count = gm__max(spanned_count(want->bytes, most), 2);
  const uint64_t alike = spanned_round_up(spanned_count(want->bytes, count), want->align);
  return gm__max(alike, gm__min(most, gm__spanned_least(pool)));
}

/* ---- taking ---- */

/* The piece knows its whole; false without host memory. And knows it no more. */
static bool spanned_join(gm_pool *pool, const gm__piece *piece) {
  gm__entry entry;
  if (!gm__entry_open(pool, &piece->span.block, &entry)) return false;
  const bool made = gm__entry_make_rare(&entry);
  if (made) entry.rare->piece = piece;
  gm__entry_close(&entry);
  return made;
}

static void spanned_part(gm_pool *pool, const gm__piece *piece) {
  gm__entry entry;
  if (!gm__entry_open(pool, &piece->span.block, &entry)) return;
  if (entry.rare) entry.rare->piece = NULL;
  gm__entry_close(&entry);
}

static gm_status spanned_no_host_memory(gm__refusal *why) {
  why->status = gm__fail(&why->failure, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_alloc",
                         "no host memory for a block of several memories");
  return why->status;
}

/* The whole is findable, and all of its pieces know it. */
static gm_status spanned_enter(gm_pool *pool, gm__spanned *whole, gm__refusal *why) {
  gm__mutex_lock(&pool->lock);
  whole->block = spanned_name(pool, whole);
  gm__mutex_unlock(&pool->lock);
  bool done = true;
  for (uint32_t i = 0; done && i < whole->count; i++) done = spanned_join(pool, &whole->pieces[i]);
  gm__mutex_lock(&pool->lock);
  done = done && gm__map_insert(&pool->spanned, spanned_key(&whole->block), (uintptr_t)whole) == GM_OK;
  gm__mutex_unlock(&pool->lock);
  if (done) return GM_OK;
  return spanned_no_host_memory(why);
}

/* One more piece, of `size` bytes or less. */
static gm_acquire spanned_take_one(gm_pool *pool, const gm_request *request, gm__spanned *whole, uint64_t at,
                                   uint64_t size, gm__refusal *why) {
  gm__piece *piece = &whole->pieces[whole->count];
  gm_request part = *request;
  part.bytes = gm__min(size, request->bytes - at);
  part.flags = (request->flags & ~(uint32_t)GM_ALLOW_SPANS) | GM_INSERT_WAIT;
  *piece = (gm__piece){.span = {.offset = at, .bytes = part.bytes}, .whole = whole};
  const gm_acquire answer = gm__acquire_part(pool, &part, &piece->span.block, why);
  whole->count += answer <= GM_ACQUIRE_FRESH;
  return answer;
}

/* Pieces for all bytes: of the first size as long as there are such, then of half of that, and so on. */
static gm_acquire spanned_take(gm_pool *pool, const gm__want *want, const gm_request *request, gm__spanned *whole,
                               gm__refusal *why) {
  uint64_t size = spanned_first(pool, want), at = 0;
  const uint64_t least = gm__spanned_least(pool);
  gm_acquire all = GM_ACQUIRE_FRESH;
  while (at < want->bytes) {
    size = gm__min(size, want->bytes - at);
    if (spanned_count(want->bytes - at, size) > GM_BLOCK_SPANS_MOST - whole->count) return GM_ACQUIRE_EXHAUSTED;
    const gm_acquire answer = spanned_take_one(pool, request, whole, at, size, why);
    if (answer <= GM_ACQUIRE_FRESH) {
      at += size;
      if (answer == GM_ACQUIRE_OK) all = GM_ACQUIRE_OK;
      continue;
    }
    const uint64_t half = gm__max(spanned_round_up(spanned_count(size, 2), want->align), least);
    if (!gm__supply_is_shortage(why->status) || half >= size) return answer;
    size = half;
  }
  *why = (gm__refusal){.status = GM_OK};
  return all;
}

/* What the pool took for the pieces, and nobody uses, goes back. */
static void spanned_undo(gm_pool *pool, const gm__want *want, gm__spanned *whole, uint64_t pooled_before) {
  for (uint32_t i = whole->count; i > 0; i--) {
    const gm__piece *piece = &whole->pieces[i - 1];
    spanned_part(pool, piece);
    gm__give_back_unused(pool, &piece->span.block, want->stream);
  }
  if (whole->count && !(want->flags & GM_POOLED_ONLY)) gm__supply_trim(pool, pooled_before, UINT64_MAX);
  gm__release(gm__context_services(pool->device->ctx), whole, sizeof *whole);
}

/* More than the request's tag or the pool may have in all is not tried: it would only take from others what it gives
 * back. */
static bool spanned_is_hopeless(gm_pool *pool, const gm__want *want, gm__refusal *why) {
  if (!gm__spanned_can(pool, want) || gm__quota_check(pool, want, NULL)) return true;
  gm_error failure;
  if (gm__room_check(pool, want, &failure) == GM_OK) return false;
  *why = (gm__refusal){.status = GM_ERR_OVER_LIMIT, .failure = failure};
  return true;
}

gm_acquire gm__spanned_acquire(gm_pool *pool, const gm__want *want, const gm_request *request, gm_block *out,
                               gm__refusal *why) {
  if (spanned_is_hopeless(pool, want, why)) return GM_ACQUIRE_EXHAUSTED;
  const uint64_t pooled_before = gm__pool_pooled(pool);
  gm__spanned *whole = gm__alloc(gm__context_services(pool->device->ctx), sizeof *whole);
  if (!whole) {
    spanned_no_host_memory(why);
    return GM_ACQUIRE_EXHAUSTED;
  }
  whole->requested = want->bytes;
  gm_acquire answer = spanned_take(pool, want, request, whole, why);
  if (answer <= GM_ACQUIRE_FRESH && spanned_enter(pool, whole, why)) answer = GM_ACQUIRE_EXHAUSTED;
  if (answer <= GM_ACQUIRE_FRESH) {
    *out = whole->block;
  } else {
    spanned_undo(pool, want, whole, pooled_before);
  }
  return answer;
}

/* ---- giving back ---- */

/* May the piece be given back in the order of the stream? Asked of all of them before the first one goes. */
static gm_status spanned_check_piece(gm_pool *pool, const gm_block *piece, gm_stream *stream) {
  gm__entry entry;
  const bool captured = gm__stream_captured(stream);
  if (captured && pool->guard && gm__guard_writes(pool->guard)) return GM_ERR_BUSY;
  if (!gm__entry_open(pool, piece, &entry)) return GM_ERR_INVALID_ARGUMENT;
  const bool mapped = entry.rare && entry.rare->mapping.pointer;
  const bool placed = !stream || gm__entry_free_slot(&entry, stream) != GM__ORDER_HOST;
  gm__entry_close(&entry);
  return mapped ? GM_ERR_BUSY : placed ? GM_OK : GM_ERR_OUT_OF_HOST_MEMORY;
}

/* Out of the map: nobody finds it any more. NULL: it is not there. */
static gm__spanned *spanned_leave(gm_pool *pool, const gm_block *block) {
  gm__mutex_lock(&pool->lock);
  gm__spanned *whole = spanned_find(pool, block);
  if (whole) gm__map_remove(&pool->spanned, spanned_key(block), NULL);
  gm__mutex_unlock(&pool->lock);
  return whole;
}

gm_status gm__spanned_free(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  gm_block_span span;
  gm_status status = GM_OK;
  for (uint32_t i = 0; !status && gm__spanned_piece(pool, block, i, &span); i++) {
    status = spanned_check_piece(pool, &span.block, stream);
  }
  gm__spanned *whole = status ? NULL : spanned_leave(pool, block);
  if (!whole) return status ? status : GM_ERR_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < whole->count; i++) spanned_part(pool, &whole->pieces[i]);
  for (uint32_t i = 0; i < whole->count; i++) {
    const gm_status freed = gm__give_back(pool, &whole->pieces[i].span.block, stream);
    if (!status) status = freed;
  }
  gm__release(gm__context_services(pool->device->ctx), whole, sizeof *whole);
  return status;
}

gm_status gm__spanned_use_on(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  gm_block_span span;
  gm_status status = GM_ERR_INVALID_ARGUMENT;
  for (uint32_t i = 0; (status == GM_OK || i == 0) && gm__spanned_piece(pool, block, i, &span); i++) {
    status = gm_use_on(pool, &span.block, stream);
  }
  return status;
}

/* ---- public ---- */

gm_status gm_block_spans(gm_pool *pool, const gm_block *block, uint32_t first, uint32_t capacity, gm_block_span *out,
                         uint32_t *out_count, gm_error *err) {
  static const char op[] = "gm_block_spans";
  gm__entry entry;
  gm_status status = gm__pool_check(pool, op, err);
  if (status) return status;
  if (!block || !out_count || (capacity && !out)) {
    return gm__bad_argument(err, op, "`%s` is NULL", !block ? "block" : out_count ? "out" : "out_count");
  }
  gm_block_span span = {.block = *block, .bytes = block->bytes};
  uint32_t count = 0;
  if (gm__spanned_is(block)) {
    for (; gm__spanned_piece(pool, block, count, &span); count++) {
      if (count >= first && count - first < capacity) out[count - first] = span;
    }
  } else if (gm__entry_open(pool, block, &entry)) {
    gm__entry_close(&entry);
    if (first == 0 && capacity) *out = span;
    count = 1;
  }
  if (!count) {
    return gm__bad_argument(err, op, "`block` is no live block of pool \"%s\": freed, foreign or altered", pool->name);
  }
  *out_count = count;
  return GM_OK;
}
