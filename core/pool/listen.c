#include "core/base/clock.h"
#include "core/base/poll.h"
#include "core/pool/growth.h"
#include "core/pool/hole.h"
#include "core/pool/pool.h"

/* What a pool does when a stream of its device closes, was waited for, or is said to have done its work: in the pool's
 * own order and in those of its arenas. */

static const uint64_t listen_patience_ns = 1000000000;

/* What is asked or told of a stream. */
typedef struct listen_news {
  const gm_stream *stream;
  uint64_t clock;
  const gm_point *point;
  gm_error *err;
  gm_status status;
} listen_news;

/* Visit each order with its lock until a visit answers true. */
static bool listen_any(gm_pool *pool, bool (*visit)(gm__order *order, listen_news *news), listen_news *news) {
  gm__arena *arena;
  gm__mutex_lock(&pool->lock);
  bool found = visit(&pool->order, news);
  gm__mutex_unlock(&pool->lock);
  for (uint32_t i = 0; !found && (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    found = visit(&arena->order, news);
    gm__arena_unlock(arena);
  }
  return found;
}

static bool visit_knows(gm__order *order, listen_news *news) { return gm__order_knows(order, news->stream); }

static bool visit_is_unsettled(gm__order *order, listen_news *news) {
  return gm__order_is_unsettled(order, news->stream);
}

static bool visit_forget_points(gm__order *order, listen_news *news) {
  gm__order_forget_points(order, news->stream);
  return false;
}

static bool visit_synced(gm__order *order, listen_news *news) {
  gm__order_note_synced(order, news->stream, news->clock);
  return false;
}

static bool visit_passed(gm__order *order, listen_news *news) {
  news->status = gm__order_note_passed(order, news->stream, news->clock, news->point, news->err);
  return news->status != GM_OK;
}

static gm_status listen_may_close(void *user, gm_stream *stream, gm_error *err) {
  gm_pool *pool = user;
  bool unsettled = listen_any(pool, visit_is_unsettled, &(listen_news){.stream = stream});
  unsettled = unsettled || (pool->guard && !gm__guard_is_idle(pool)); /* which gave it work, known or not */
  return unsettled ? gm__order_drain(stream, "gm_stream_close", err) : GM_OK;
}

/* False: a thread uses the stream outside the lock. */
static bool listen_forget(gm_pool *pool, const gm_stream *stream) {
  gm__mutex_lock(&pool->lock);
  const int slot = gm__order_find(&pool->order, stream);
  const bool free =
      slot == GM__ORDER_HOST ? gm__order_leave_crowd(&pool->order, stream) : !gm__order_is_pinned(&pool->order, slot);
  if (free) gm__pool_forget_stream(pool, stream);
  gm__mutex_unlock(&pool->lock);
  return free;
}

static bool listen_forget_in(gm__arena *arena, const gm_stream *stream) {
  gm__arena_lock(arena);
  const int slot = gm__order_find(&arena->order, stream);
  const bool free =
      slot == GM__ORDER_HOST ? gm__order_leave_crowd(&arena->order, stream) : !gm__order_is_pinned(&arena->order, slot);
  if (free && slot != GM__ORDER_HOST) gm__holes_forget(arena, slot);
  gm__holes_settle(arena);
  gm__growth_publish(arena);
  gm__arena_unlock(arena);
  return free;
}

/* Who uses it outside the lock does so for the time of a driver's call; but the driver's hook may wait for the very
 * thread that closes the stream, so nobody waits for ever. */
static bool listen_forget_all(gm_pool *pool, const gm_stream *stream) {
  for (gm__poll poll = gm__poll_until(gm__deadline_after(listen_patience_ns));;) {
    gm__arena *arena;
    bool free = listen_forget(pool, stream);
    for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) free &= listen_forget_in(arena, stream);
    if (free || !gm__poll_again(&poll)) return free;
  }
}

static bool listen_closing(void *user, gm_stream *stream) {
  gm_pool *pool = user;
  listen_news news = {.stream = stream};
  const bool known = listen_any(pool, visit_knows, &news);
  if (pool->guard && !gm__guard_drained(pool)) return false;
  listen_any(pool, visit_forget_points, &news); /* that the engine named for others */
  return !known || listen_forget_all(pool, stream);
}

static void listen_synced(void *user, gm_stream *stream, uint64_t clock) {
  listen_any(user, visit_synced, &(listen_news){.stream = stream, .clock = clock});
}

static gm_status listen_passing(void *user, gm_stream *stream, uint64_t clock, const gm_point *point, gm_error *err) {
  listen_news news = {.stream = stream, .clock = clock, .point = point, .err = err};
  listen_any(user, visit_passed, &news);
  return news.status;
}

void gm__pool_listen(gm_pool *pool) {
  pool->listener = (gm__stream_listener){.may_close = listen_may_close,
                                         .closing = listen_closing,
                                         .synced = listen_synced,
                                         .passing = listen_passing,
                                         .user = pool};
}
