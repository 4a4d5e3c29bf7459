#include "core/arena/arena_set.h"

#include "core/arena/arena.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

/* Invariants. An arena is made for a thread, which is the home thread of its lock, and that thread finds it again. When
 * the thread has ended, the next thread that needs an arena takes it over with all that is in it. Threads beyond the
 * pool's table share arenas. All threads share the arenas for rare kinds, but each of these has a home thread, too. The
 * provider lock may be taken inside an arena lock, never the other way round. No thread is inside two arenas. */

enum { ARENA_KINDS = 8 }; /* rare kinds that have an arena each */

/* ---- begin and end ---- */

void gm__arena_set_init(gm__arena_set *set, gm__provider *provider, gm__observers *observers,
                        const gm__memory_kind *kind, void *owner) {
  static _Atomic uint64_t last_serial;
  set->provider = provider;
  set->observers = observers;
  set->owner = owner;
  set->main_kind = *kind;
  set->serial = atomic_fetch_add(&last_serial, 1) + 1;
}

void gm__arenas_clear(gm__arena_set *set, gm_close_mode mode) {
  for (uint32_t i = 0; i < atomic_load(&set->count); i++) gm__arena_release(gm__arena_at(set, i), mode);
  atomic_store(&set->count, 0);
}

gm__arena *gm__arena_at(const gm__arena_set *set, uint32_t number) {
  return number < atomic_load_explicit(&set->count, memory_order_acquire) ? set->table[number] : NULL;
}

gm__arena *gm__arena_next(const gm__arena_set *set, gm__arena *arena) {
  gm__arena *next = gm__arena_at(set, arena ? arena->number + 1 : 0);
  if (arena) gm__arena_unlock(arena);
  if (next) gm__arena_lock(next);
  return next;
}

/* Adds an arena to the table, if there is room. REQUIRES: provider lock. */
static gm__arena *arena_add(gm__arena_set *set, const gm__memory_kind *kind, uint32_t most, bool common) {
  const uint32_t count = atomic_load_explicit(&set->count, memory_order_relaxed);
  gm__arena *arena = count < most ? gm__arena_new(set, kind, count) : NULL;
  if (!arena) return NULL;
  arena->common = common;
  if (common) arena->small_most = (uint32_t)gm__min(set->provider->rules.apart >> arena->shift, UINT32_MAX);
  set->table[count] = arena;
  atomic_store_explicit(&set->count, count + 1, memory_order_release);
  return arena;
}

static bool arena_is_main(const gm__arena *arena) { return arena->common; }

/* Finds the arena of a thread that has ended, or of one that had the same identity. REQUIRES: provider lock. */
static gm__arena *arena_inherit(gm__arena_set *set, gm__thread_life *life) {
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(set, i)); i++) {
    if (!arena_is_main(arena) || !arena->life) continue;
    if (arena->life == life || gm__thread_life_ended(arena->life)) return arena;
  }
  return NULL;
}

/* Any thread's arena, when there cannot be more. REQUIRES: provider lock. */
static gm__arena *arena_share(gm__arena_set *set) {
  gm__arena *arena;
  const uint32_t count = atomic_load_explicit(&set->count, memory_order_relaxed);
  for (uint32_t i = 0; i < count; i++) {
    arena = gm__arena_at(set, (uint32_t)(((uintptr_t)&gm__here >> 12) + i) % count);
    if (arena_is_main(arena)) return arena;
  }
  return NULL;
}

/* Under set->serial a thread finds its own arena only, because the fast path enters that as its lock's home thread. A
 * shared arena is kept under this key. */
static uint64_t arena_shared_key(const gm__arena_set *set) { return set->serial | UINT64_C(1) << 63; }

/* The arena becomes that of a thread. Returns the sign of life of the one before, for arena_settle. REQUIRES: provider
 * lock. */
static gm__thread_life *arena_take_over(gm__arena *arena, gm__thread_life *life) {
  gm__thread_life *before = arena->life;
  arena->life = life;
  return before;
}

/* The calling thread becomes the home thread of the arena's lock. The sign of life of the one before is kept until
 * then, because the lock knows the thread by it. */
static void arena_settle(gm__arena *arena, gm__thread_life *before) {
  gm__arena_lock(arena);
  gm__bias_settle(&arena->lock, gm__thread_self());
  gm__arena_unlock(arena);
  gm__thread_life_give(before);
}

static gm__arena *arena_of_thread(gm__arena_set *set) {
  gm__thread_life *life = gm__thread_life_take();
  gm__mutex_lock(&set->provider->lock);
  gm__arena *arena = life ? arena_inherit(set, life) : NULL;
  if (!arena && life) arena = arena_add(set, &set->main_kind, GM__ARENA_SET_THREAD_ARENAS, true);
  const bool own = arena != NULL;
  gm__thread_life *before = own ? arena_take_over(arena, life) : life;
  if (!own) {
    arena = arena_share(set);
    if (!arena) arena = arena_add(set, &set->main_kind, GM__ARENA_SET_ARENAS, true);
  }
  gm__mutex_unlock(&set->provider->lock);
  if (own) {
    arena_settle(arena, before);
  } else {
    gm__thread_life_give(before);
  }
  if (arena) gm__here_keep(own ? set->serial : arena_shared_key(set), arena);
  return arena;
}

/* ---- rare kinds of memory ---- */

/* How much an arena for a rare kind may differ from the kind that is asked for. */
typedef enum arena_match {
  ARENA_ALIKE,     /* it can do more */
  ARENA_UNALIGNED, /* its free chunks may be aligned by chance; its new memory is aligned as asked */
  ARENA_SCARCER
} arena_match;

static bool arena_serves(const gm__memory_kind *kind, const gm__memory_kind *asked, arena_match match) {
  const bool cached = ((kind->usage ^ asked->usage) & GM_USAGE_READBACK) == 0;
  const bool alike = kind->must_be == asked->must_be && kind->flags == asked->flags && cached;
  gm__memory_kind least = *asked;
  if (match != ARENA_ALIKE) least.align = 1;
  return (alike || match == ARENA_SCARCER) && gm__kind_serves(kind, &least);
}

/* The first arena for a rare kind that serves. REQUIRES: provider lock. */
static gm__arena *arena_find_beside(const gm__arena_set *set, const gm__memory_kind *kind, arena_match match) {
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(set, i)); i++) {
    if (!arena_is_main(arena) && arena_serves(&arena->kind, kind, match)) return arena;
  }
  return NULL;
}

static uint32_t arena_count_beside(const gm__arena_set *set) {
  uint32_t count = 0;
  const gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(set, i)); i++) count += !arena_is_main(arena);
  return count;
}

/* The last place is kept for a thread: plain requests find an arena in every pool. */
static bool arena_table_is_full(const gm__arena_set *set) {
  return atomic_load_explicit(&set->count, memory_order_relaxed) >= GM__ARENA_SET_ARENAS - 1;
}

/* The first rare kinds have an arena each. Later ones share an arena that is alike, so that the table lasts. REQUIRES:
 * provider lock. */
static gm__arena *arena_of_kind(gm__arena_set *set, const gm__memory_kind *kind) {
  const bool full = arena_table_is_full(set), shares = full || arena_count_beside(set) >= ARENA_KINDS;
  gm__arena *arena = arena_find_beside(set, kind, ARENA_ALIKE);
  if (!arena && shares) arena = arena_find_beside(set, kind, ARENA_UNALIGNED);
  if (!arena && full) arena = arena_find_beside(set, kind, ARENA_SCARCER);
  if (arena || full) return arena;
  gm__memory_kind wide = *kind;
  if (shares) {
    wide.usage |= GM_USAGE_TRANSFER | GM_USAGE_STORAGE | GM_USAGE_UNIFORM | GM_USAGE_INDIRECT;
    wide.align = set->main_kind.align;
  }
  return arena_add(set, &wide, GM__ARENA_SET_ARENAS, false);
}

/* REQUIRES: provider lock. */
static bool arena_is_left(const gm__arena *arena) { return !arena->life || gm__thread_life_ended(arena->life); }

/* The calling thread becomes the home thread, if there is still none. */
static void arena_move_in(gm__arena *arena) {
  gm__mutex *lock = &arena->set->provider->lock;
  gm__thread_life *life = gm__thread_life_take();
  gm__mutex_lock(lock);
  const bool left = life && arena_is_left(arena);
  gm__thread_life *before = left ? arena_take_over(arena, life) : life;
  gm__mutex_unlock(lock);
  if (left) {
    arena_settle(arena, before);
  } else {
    gm__thread_life_give(before);
  }
}

gm__arena *gm__arena_beside(gm__arena_set *set, const gm__memory_kind *kind) {
  gm__mutex_lock(&set->provider->lock);
  gm__arena *arena = arena_of_kind(set, kind);
  const bool left = arena && arena_is_left(arena);
  gm__mutex_unlock(&set->provider->lock);
  if (left) arena_move_in(arena);
  return arena;
}

gm_status gm__arena_missing(const gm__arena_set *set, gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_alloc", "%s",
                  arena_table_is_full(set) ? "the pool has as many threads and kinds of memory (usage, must_be, flags, "
                                             "require, prefer, memory_types) as it can have, and none of them serves"
                                           : "no host memory for an arena of the pool");
}

/* ---- the arena of a request ---- */

static gm__arena *arena_here(const gm__arena_set *set) {
  gm__arena *arena = gm__here_find(set->serial);
  return arena ? arena : gm__here_find(arena_shared_key(set));
}

gm__arena *gm__arena_of(gm__arena_set *set, const gm__memory_kind *kind) {
  if (!gm__kind_serves(&set->main_kind, kind)) return gm__arena_beside(set, kind);
  gm__arena *arena = arena_here(set);
  return arena ? arena : arena_of_thread(set);
}

/* Does a later request with the same wishes get the same kind of memory, whatever its stream? And is nothing left to do
 * with the memory before it is handed out? */
static bool arena_may_learn(const gm__arena_set *set, const gm__want *want) {
  const bool asks_stream = set->provider->device->info.capabilities & GM_CAP_COMMIT_QUEUE;
  const uint32_t others = GM_ZERO | GM_DEDICATED | (asks_stream ? GM_COMMIT : 0u);
  return !(want->flags & others) && want->align <= set->provider->rules.granule;
}

void gm__arena_learn(gm__arena_set *set, const gm_request *request, const gm__want *want) {
  const gm__wish wish = gm__wish_of(request);
  if (set->closed || !gm__wish_odd(&wish) || !arena_may_learn(set, want)) return;
  gm__arena_of(set, &set->main_kind); /* a thread that makes no plain requests has no arena of its own yet */
  gm__arena *own = gm__here_find(set->serial);
  if (!own || gm__wishes_find(&own->wishes, &wish)) return;
  const gm__memory_kind kind = gm__kind_of(&set->provider->rules, want);
  gm__arena *arena = gm__arena_of(set, &kind);
  if (arena) gm__wishes_keep(&own->wishes, &wish, arena);
}

/* ---- figures ---- */

/* The thread inside the arena's lock writes them with plain stores. They are added up when somebody
 * asks. */

static uint64_t arena_stats_read(const _Atomic uint64_t *counter) {
  return atomic_load_explicit(counter, memory_order_relaxed);
}

void gm__arenas_add(const gm__arena_set *set, gm_stats *out) {
  const gm__arena *arena;
  out->reclaimable_bytes += gm__pages_idle_bytes(set->provider);
  for (uint32_t i = 0; (arena = gm__arena_at(set, i)); i++) {
    const gm__arena_stats *stats = &arena->stats;
    out->frees += arena_stats_read(&stats->frees); /* first: each block freed is also counted as handed out */
    atomic_thread_fence(memory_order_acquire);
    out->in_use_bytes += arena_stats_read(&stats->in_use);
    out->requested_bytes += arena_stats_read(&stats->requested);
    out->peak_in_use_bytes += gm__stats_peak(&stats->peak_in_use, &stats->before_in_use);
    out->peak_requested_bytes += gm__stats_peak(&stats->peak_requested, &stats->before_requested);
    out->stream_hits += arena_stats_read(&stats->stream_hits);
    out->global_hits += arena_stats_read(&stats->global_hits);
    out->misses += arena_stats_read(&stats->misses);
    out->global_cache_hits += arena_stats_read(&stats->free_chunk_hits);
    out->reclaimable_bytes += arena_stats_read(&stats->reclaimable);
    out->hole_bytes += arena_stats_read(&stats->hole);
    out->scattered_bytes += arena_stats_read(&stats->scattered);
    out->largest_hole_bytes = gm__max(out->largest_hole_bytes, arena_stats_read(&stats->largest_hole));
  }
}

uint64_t gm__arenas_pooled(const gm__arena_set *set) {
  const gm__arena *arena;
  const gm__stats *stats = &set->provider->stats;
  const uint64_t reserved = arena_stats_read(&stats->reserved_bytes);
  uint64_t in_use = arena_stats_read(&stats->in_use_bytes);
  for (uint32_t i = 0; reserved && (arena = gm__arena_at(set, i)); i++)
    in_use += arena_stats_read(&arena->stats.in_use);
  return gm__sub_sat(reserved, in_use);
}
