#include "core/arena/free_chunks.h"
#include "core/arena/reclaim.h"
#include "core/arena/settle.h"
#include "core/base/clock.h"
#include "core/base/poll.h"
#include "core/heap/heap_open.h"
#include "core/manage/lifecycle.h"
#include "core/order/order_told.h"

/* The acts of a pool when a stream of its device closes, was waited for, or is said to have done its work. It tells
 * the order of its dedicated blocks and that of each arena. */

static const uint64_t listen_patience_ns = 1000000000;

/* The questions of the pool about a stream, and the news. */
typedef struct listen_news {
  const gm_stream *stream;
  uint64_t clock;
  const gm_point *point;
  gm_error *err;
  gm_status status;
} listen_news;

/* Visits each order, inside its lock, until a visit answers true. */
static bool listen_any(gm_pool *pool, bool (*visit)(gm__order *order, listen_news *news), listen_news *news) {
  gm__mutex_lock(&pool->heap.provider.lock);
  bool found = visit(&pool->heap.dedicated.order, news);
  gm__mutex_unlock(&pool->heap.provider.lock);
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&pool->heap.arenas, arena));) {
    if (!found) found = visit(&arena->order, news);
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

static bool visit_resume(gm__order *order, listen_news *news) {
  gm__order_resume(order, news->stream);
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
  gm__heap_settle_given(&pool->heap);
  bool unsettled = listen_any(pool, visit_is_unsettled, &(listen_news){.stream = stream});
  unsettled =
      unsettled || (pool->guard && !gm__guard_is_idle(pool->guard)); /* it gives work to streams that no order knows */
  return unsettled ? gm__order_drain(stream, "gm_stream_close", err) : GM_OK;
}

/* Makes the dedicated blocks forget the stream. False: a thread uses the stream outside the lock. */
static bool listen_forget(gm_pool *pool, const gm_stream *stream) {
  gm__mutex_lock(&pool->heap.provider.lock);
  const int slot = gm__order_find(&pool->heap.dedicated.order, stream);
  const bool free = slot == GM__ORDER_HOST ? gm__order_leave_crowd(&pool->heap.dedicated.order, stream)
                                           : !gm__order_is_pinned(&pool->heap.dedicated.order, slot) &&
                                                 gm__dedicated_forget(&pool->heap.dedicated, slot);
  gm__mutex_unlock(&pool->heap.provider.lock);
  return free;
}

/* Makes an arena forget the stream. False: a thread uses the stream outside the lock. REQUIRES: arena lock. */
static bool listen_forget_in(gm__arena *arena, const gm_stream *stream) {
  const int slot = gm__order_find(&arena->order, stream);
  const bool free = slot == GM__ORDER_HOST
                        ? gm__order_leave_crowd(&arena->order, stream)
                        : !gm__order_is_pinned(&arena->order, slot) && gm__free_chunks_forget(arena, slot);
  gm__settle_all(arena);
  gm__arena_publish(arena);
  return free;
}

/* Makes all orders forget the stream. A thread uses a stream outside the lock only for the time of a driver's call. But
 * the driver's hook may wait for the very thread that closes the stream, so nobody waits for ever. */
static bool listen_forget_all(gm_pool *pool, const gm_stream *stream) {
  for (gm__poll poll = gm__poll_until(gm__deadline_after(listen_patience_ns));;) {
    bool free = listen_forget(pool, stream);
    for (gm__arena *arena = NULL; (arena = gm__arena_next(&pool->heap.arenas, arena));) {
      free &= listen_forget_in(arena, stream);
    }
    if (free || !gm__poll_again(&poll)) return free;
  }
}

static bool listen_closing(void *user, gm_stream *stream) {
  gm_pool *pool = user;
  listen_news news = {.stream = stream};
  const bool known = listen_any(pool, visit_knows, &news);
  if (pool->guard && !gm__guard_drained(pool->guard)) return false;
  listen_any(pool, visit_forget_points, &news); /* those that the engine named for others */
  if (!known || listen_forget_all(pool, stream)) return true;
  listen_any(pool, visit_resume, &news);
  return false;
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
