#include "core/pool/arena.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

/* Invariants. A span of an arena is touched inside its lock only. An arena is made for a thread, which is its lock's
 * home, and is found again by it; when the thread has ended, the next one that needs an arena takes it over with all
 * that is in it. Threads beyond the pool's table share arenas, with the mutex. The pool's lock may be taken inside an
 * arena's, never the other way round, and nobody is inside two arenas. */

enum {
  ARENA_KINDS = 8,       /* rare ones, with an arena each */
  ARENA_ALIGN_SLACK = 16 /* times the alignment asked for: as good as that */
};

static const gm_services *arena_services(const gm__arena *arena) { return arena->spans.services; }

/* ---- lanes and slots ---- */

static bool arena_has_lane(gm__arena *arena, int number) {
  if (arena->lanes[number]) return true;
  gm__lane *lane = gm__alloc(arena_services(arena), sizeof *lane);
  if (!lane) return false;
  lane->number = (uint8_t)number;
  lane->live_role = gm__lane_role(lane->number, lane->number, GM__SPAN_LIVE);
  lane->idle_role = gm__lane_role(lane->number, GM__LANE_IDLE, GM__SPAN_LIVE);
  lane->quick_role = gm__lane_role(lane->number, lane->number, GM__SPAN_QUICK);
  lane->live_part = gm__lane_part(lane->number, GM__SPAN_LIVE);
  lane->hole_part = number == GM__LANE_MIXED ? 0 : gm__lane_part(lane->number, GM__SPAN_HOLE);
  lane->hits = number < GM__LANE_IDLE ? &arena->tally.stream_hits : &arena->tally.global_hits;
  lane->last_free = number < GM__LANE_IDLE ? &arena->order.slots[number].last_free : &arena->order.host_freed;
  arena->lanes[number] = lane;
  if (number != GM__LANE_MIXED) gm__cache_add_lane(arena->pool);
  return true;
}

static void arena_count_streams(gm__arena *arena) {
  const uint64_t used = arena->order.used;
  arena->mixes = !(used & (used - 1));
  arena->ask_after = arena->mixes ? UINT32_MAX : GM__ARENA_ASK_AFTER;
}

static void arena_remember(gm__arena *arena, const gm_stream *stream, int slot) {
  gm__lane *lane = arena->lanes[slot];
  lane->ordered = stream->kind == GM_STREAM_FIFO;
  if (!lane->ordered || arena->quotas) return;
  const size_t at = gm__arena_stream_place(stream);
  arena->streams[at].stream = stream;
  arena->streams[at].lane = lane;
}

int gm__arena_slot(gm__arena *arena, gm_stream *stream) {
  int slot = gm__order_slot_of(&arena->order, stream);
  if (slot == GM__ORDER_HOST) return slot;
  if (!arena_has_lane(arena, slot)) {
    gm__order_forget(&arena->order, slot);
    return GM__ORDER_HOST;
  }
  arena_count_streams(arena);
  arena_remember(arena, stream, slot);
  return slot;
}

int gm__arena_free_slot(gm__arena *arena, gm_stream *stream) {
  const bool crowded = gm__order_member(&arena->order, stream) != GM__ORDER_HOST;
  const int slot = crowded ? GM__ORDER_HOST : gm__arena_slot(arena, stream);
  if (slot != GM__ORDER_HOST || !stream || (!crowded && !gm__order_is_full(&arena->order))) return slot;
  return arena_has_lane(arena, GM__ORDER_CROWD) ? gm__order_free_slot(&arena->order, stream) : GM__ORDER_HOST;
}

void gm__arena_forget_slot(gm__arena *arena, int slot) {
  const size_t at = gm__arena_stream_place(arena->order.slots[slot].stream);
  if (arena->streams[at].stream == arena->order.slots[slot].stream) {
    arena->streams[at] = (gm__arena_stream){.stream = NULL, .lane = arena->quotas ? NULL : arena->lanes[GM__LANE_IDLE]};
  }
  gm__order_forget(&arena->order, slot);
  arena_count_streams(arena);
}

void gm__arena_count_in(gm__arena *arena, struct gm__quotas *quotas) {
  arena->quotas = quotas;
  memset(arena->streams, 0, sizeof arena->streams);
}

/* ---- marks ---- */

gm__rare *gm__arena_rare(const gm__arena *arena, uint32_t number) {
  uint64_t found = 0;
  if (!(gm__arena_span(arena, number)->state & GM__SPAN_RARE)) return NULL;
  gm__map_find(&arena->rare, number, &found);
  return (gm__rare *)(uintptr_t)found;
}

gm__mark gm__arena_mark(const gm__arena *arena, uint32_t number) {
  const gm__rare *rare = gm__arena_rare(arena, number);
  if (rare) return rare->mark;
  const gm__span *span = gm__arena_span(arena, number);
  const uint64_t one = span->lane < GM__LANE_IDLE ? UINT64_C(1) << span->lane : 0;
  return (gm__mark){.streams = span->lane == GM__LANE_MIXED ? span->streams : one, .freed_at = span->seq};
}

gm__rare *gm__arena_make_rare(gm__arena *arena, uint32_t number) {
  gm__rare *rare = gm__arena_rare(arena, number);
  if (rare) return rare;
  rare = gm__alloc(arena_services(arena), sizeof *rare);
  if (!rare) return NULL;
  rare->mark = gm__arena_mark(arena, number);
  if (gm__map_insert(&arena->rare, number, (uintptr_t)rare)) {
    gm__release(arena_services(arena), rare, sizeof *rare);
    return NULL;
  }
  gm__arena_span(arena, number)->state |= GM__SPAN_RARE;
  return rare;
}

bool gm__arena_is_out(const gm__arena *arena, uint32_t number) {
  if (gm__span_is(gm__arena_span(arena, number)) != GM__SPAN_LIVE) return false;
  const gm__rare *rare = gm__arena_rare(arena, number);
  return !rare || !rare->guard || !gm__guard_freed(rare->guard);
}

void gm__arena_drop_rare(gm__arena *arena, uint32_t number) {
  uint64_t found;
  if (!(gm__arena_span(arena, number)->state & GM__SPAN_RARE)) return;
  gm__arena_span(arena, number)->state &= GM__SPAN_STATE;
  if (!gm__map_remove(&arena->rare, number, &found)) return;
  gm__release(arena_services(arena), (gm__rare *)(uintptr_t)found, sizeof(gm__rare));
}

void gm__arena_set_mark(gm__arena *arena, uint32_t number, const gm__mark *mark) {
  gm__span *span = gm__arena_span(arena, number);
  gm__mark kept = *mark;
  const bool waits = kept.has_point && kept.streams >> kept.point_slot & 1;
  gm__rare *rare = waits ? gm__arena_make_rare(arena, number) : NULL;
  if (rare) {
    *rare = (gm__rare){.mark = kept};
  } else {
    gm__order_drop_point(&arena->order, &kept); /* its stream is done, or a later one will do */
    gm__arena_drop_rare(arena, number);
  }
  span->seq = kept.freed_at;
  span->lane = (uint8_t)(!kept.streams                       ? GM__LANE_IDLE
                         : kept.streams & (kept.streams - 1) ? GM__LANE_MIXED
                                                             : __builtin_ctzll(kept.streams));
  if (span->lane == GM__LANE_MIXED) span->streams = kept.streams;
}

/* ---- making and finding them ---- */

static void arena_take_lock(void *arena) { gm__arena_lock(arena); }

static void arena_leave_lock(void *arena) { gm__arena_unlock(arena); }

static void arena_release(gm__arena *arena, gm_close_mode mode) {
  const gm_services *services = arena_services(arena);
  size_t cursor = 0;
  uint64_t number, rare;
  while (gm__map_next(&arena->rare, &cursor, &number, &rare)) {
    gm__order_clear_mark(&arena->order, &((gm__rare *)(uintptr_t)rare)->mark, mode);
    gm__release(services, (gm__rare *)(uintptr_t)rare, sizeof(gm__rare));
  }
  gm__map_clear(&arena->rare);
  gm__order_clear(&arena->order, mode);
  for (gm__segment *segment = arena->segments, *next; segment; segment = next) {
    next = segment->next;
    if (segment->range) gm__range_close(arena->pool, segment->range, &segment->node->memory, mode);
    gm__release(services, segment, sizeof *segment);
  }
  gm__release(services, arena->homes, arena->home_capacity * sizeof *arena->homes);
  for (int i = 0; i < GM__LANES; i++) gm__release(services, arena->lanes[i], sizeof(gm__lane));
  gm__lookup_clear(&arena->lookup, services);
  gm__spans_clear(&arena->spans);
  gm__ledger_close(&arena->ledger);
  gm__thread_life_give(arena->life);
  if (mode == GM_CLOSE_NORMAL) gm__bias_destroy(&arena->lock);
  gm__release(services, arena, sizeof *arena);
}

void gm__arenas_clear(gm_pool *pool, gm_close_mode mode) {
  for (uint32_t i = 0; i < atomic_load(&pool->arena_count); i++) arena_release(gm__arena_at(pool, i), mode);
  atomic_store(&pool->arena_count, 0);
}

gm__arena *gm__arena_at(const gm_pool *pool, uint32_t number) {
  return number < atomic_load_explicit(&pool->arena_count, memory_order_acquire) ? pool->arenas[number] : NULL;
}

static gm__arena *arena_new(gm_pool *pool, const gm__memory_kind *kind, uint32_t number) {
  const gm_services *services = gm__context_services(pool->device->ctx);
  gm__arena *arena = gm__alloc(services, sizeof *arena);
  if (!arena) return NULL;
  gm__bias_init(&arena->lock, GM__RANK_ARENA);
  arena->spans.services = services;
  arena->pool = pool;
  arena->number = number;
  arena->tag_of_blocks = (GM__ARENA_BLOCK >> GM__ARENA_SHIFT) + number;
  arena->kind = *kind;
  arena->shift = (uint32_t)__builtin_ctzll(pool->rules.granule);
  arena->quick_most = (uint32_t)gm__min(pool->rules.small >> arena->shift, UINT32_MAX);
  gm__lookup_init(&arena->lookup);
  gm__map_init(&arena->rare, services);
  gm__order_init(&arena->order, pool->device, &(gm__order_lock){arena_take_lock, arena_leave_lock, arena});
  arena_count_streams(arena);
  const uint32_t check = (uint32_t)(pool->serial * 128 + number) * UINT32_C(0x9e3779b1);
  gm__watch_new(arena);
  if (gm__spans_init(&arena->spans, services, check) && arena_has_lane(arena, GM__LANE_IDLE) &&
      arena_has_lane(arena, GM__LANE_MIXED)) {
    arena->lanes[GM__LANE_IDLE]->ordered = true;
    arena->quotas = gm__pool_quotas(pool);
    if (!arena->quotas) arena->streams[gm__arena_stream_place(NULL)].lane = arena->lanes[GM__LANE_IDLE];
    return arena;
  }
  arena_release(arena, GM_CLOSE_NORMAL);
  return NULL;
}

/* One more in the pool's table, if it has room. With the pool's lock. */
static gm__arena *arena_add(gm_pool *pool, const gm__memory_kind *kind, uint32_t most, bool common) {
  const uint32_t count = atomic_load_explicit(&pool->arena_count, memory_order_relaxed);
  gm__arena *arena = count < most ? arena_new(pool, kind, count) : NULL;
  if (!arena) return NULL;
  arena->common = common;
  pool->arenas[count] = arena;
  atomic_store_explicit(&pool->arena_count, count + 1, memory_order_release);
  return arena;
}

static bool arena_is_main(const gm__arena *arena) { return arena->common; }

/* Of a thread that is no more, or that had the same name for itself. With the pool's lock. */
static gm__arena *arena_inherit(gm_pool *pool, gm__thread_life *life) {
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    if (!arena_is_main(arena) || !arena->life) continue;
    if (arena->life == life || gm__thread_life_ended(arena->life)) return arena;
  }
  return NULL;
}

/* Any of those that threads have, when there cannot be more. */
static gm__arena *arena_share(gm_pool *pool) {
  gm__arena *arena;
  const uint32_t count = atomic_load_explicit(&pool->arena_count, memory_order_relaxed);
  for (uint32_t i = 0; i < count; i++) {
    arena = gm__arena_at(pool, (uint32_t)(((uintptr_t)gm__thread_self() >> 12) + i) % count);
    if (arena_is_main(arena)) return arena;
  }
  return NULL;
}

/* Under the pool's own key a thread finds no arena but its own: the fast way enters what it finds as the home thread.
 */
static uint64_t arena_shared_key(const gm_pool *pool) { return pool->serial | UINT64_C(1) << 63; }

static gm__arena *arena_of_thread(gm_pool *pool) {
  gm__thread_life *life = gm__thread_life_take();
  gm__mutex_lock(&pool->lock);
  gm__arena *arena = life ? arena_inherit(pool, life) : NULL;
  if (!arena && life) arena = arena_add(pool, &pool->main_kind, GM__POOL_THREAD_ARENAS, true);
  const bool own = arena != NULL;
  if (own) {
    gm__thread_life_give(arena->life);
    arena->life = life;
  } else {
    gm__thread_life_give(life);
    arena = arena_share(pool);
    if (!arena) arena = arena_add(pool, &pool->main_kind, GM__POOL_ARENAS, true);
  }
  gm__mutex_unlock(&pool->lock);
  if (!arena) return NULL;
  if (own) {
    gm__arena_lock(arena);
    gm__bias_settle(&arena->lock, gm__thread_self());
    gm__arena_unlock(arena);
  }
  gm__here_keep(own ? pool->serial : arena_shared_key(pool), arena);
  return arena;
}

/* ---- rare kinds of memory ---- */

/* How near an arena's kind is to one that is asked for: the nearer the less is lost. Where only the alignment is too
 * small, holes are looked at for it, and new memory is asked for with it. */
typedef enum arena_distance {
  ARENA_SAME,
  ARENA_NEAR,   /* it can more, at hardly any cost */
  ARENA_ALIKE,  /* but for the alignment */
  ARENA_SERVES, /* perhaps scarcer memory, or new memory larger for its alignment */
  ARENA_STRANGE
} arena_distance;

static arena_distance arena_measure(const gm__memory_kind *kind, const gm__memory_kind *asked) {
  gm__memory_kind any = *asked;
  any.align = 1;
  if (!gm__kind_serves(kind, &any)) return ARENA_STRANGE;
  const bool cached = ((kind->usage ^ asked->usage) & GM_USAGE_READBACK) == 0;
  if (kind->must_be != asked->must_be || kind->flags != asked->flags || !cached) return ARENA_SERVES;
  if (kind->align / ARENA_ALIGN_SLACK > asked->align) return ARENA_SERVES;
  if (kind->align < asked->align) return ARENA_ALIKE;
  return kind->align == asked->align && kind->usage == asked->usage ? ARENA_SAME : ARENA_NEAR;
}

/* The nearest that is within `most`. With the pool's lock. */
static gm__arena *arena_find_beside(const gm_pool *pool, const gm__memory_kind *kind, arena_distance most) {
  gm__arena *arena, *nearest = NULL;
  for (uint32_t i = 0; (!nearest || most > ARENA_SAME) && (arena = gm__arena_at(pool, i)); i++) {
    const arena_distance distance = arena_is_main(arena) ? ARENA_STRANGE : arena_measure(&arena->kind, kind);
    if (distance > most || (nearest && distance == most)) continue;
    nearest = arena;
    most = distance;
  }
  return nearest;
}

static uint32_t arena_count_beside(const gm_pool *pool) {
  uint32_t count = 0;
  const gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) count += !arena_is_main(arena);
  return count;
}

/* The last place is a thread's: plain requests find an arena in every pool. */
static bool arena_table_is_full(const gm_pool *pool) {
  return atomic_load_explicit(&pool->arena_count, memory_order_relaxed) >= GM__POOL_ARENAS - 1;
}

/* Of few kinds each has an arena to itself; later ones share what is alike, so that the table lasts. With the pool's
 * lock. */
static gm__arena *arena_of_kind(gm_pool *pool, const gm__memory_kind *kind, bool add) {
  const bool full = arena_table_is_full(pool);
  gm__arena *arena = arena_find_beside(pool, kind, full ? ARENA_SERVES : ARENA_NEAR);
  if (arena || full) return arena;
  gm__memory_kind wide = *kind;
  if (arena_count_beside(pool) >= ARENA_KINDS) {
    arena = arena_find_beside(pool, kind, ARENA_ALIKE);
    wide.usage |= GM_USAGE_TRANSFER | GM_USAGE_STORAGE | GM_USAGE_UNIFORM | GM_USAGE_INDIRECT;
    wide.align = pool->main_kind.align;
  }
  return arena || !add ? arena : arena_add(pool, &wide, GM__POOL_ARENAS, false);
}

gm__arena *gm__arena_beside(gm_pool *pool, const gm__memory_kind *kind) {
  gm__mutex_lock(&pool->lock);
  gm__arena *arena = arena_of_kind(pool, kind, true);
  gm__mutex_unlock(&pool->lock);
  return arena;
}

gm_status gm__arena_missing(const gm_pool *pool, gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_alloc", "%s",
                  arena_table_is_full(pool)
                      ? "the pool has as many threads and kinds of memory (usage, must_be, flags) "
                        "as it can have, and none of them serves"
                      : "no host memory for an arena of the pool");
}

bool gm__arena_may_be_made(const gm_pool *pool, const gm__memory_kind *kind) {
  return !arena_table_is_full(pool) || gm__kind_serves(&pool->main_kind, kind);
}

/* ---- the arena of a request ---- */

static gm__arena *arena_here(const gm_pool *pool) {
  gm__arena *arena = gm__here_find(pool->serial);
  return arena ? arena : gm__here_find(arena_shared_key(pool));
}

gm__arena *gm__arena_expected(gm_pool *pool, const gm__memory_kind *kind) {
  const bool plain = gm__kind_serves(&pool->main_kind, kind);
  gm__arena *arena = plain ? arena_here(pool) : NULL;
  if (arena) return arena;
  gm__thread_life *life = gm__thread_life_take();
  gm__mutex_lock(&pool->lock);
  if (!plain) {
    arena = arena_of_kind(pool, kind, false);
  } else if (life) {
    arena = arena_inherit(pool, life);
  }
  gm__mutex_unlock(&pool->lock);
  gm__thread_life_give(life);
  return arena;
}

gm__arena *gm__arena_of(gm_pool *pool, const gm__memory_kind *kind) {
  if (!gm__kind_serves(&pool->main_kind, kind)) return gm__arena_beside(pool, kind);
  gm__arena *arena = arena_here(pool);
  return arena ? arena : arena_of_thread(pool);
}
