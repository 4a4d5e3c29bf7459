#include "core/buffer/hold.h"

#include <stddef.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/buffer/heat.h"
#include "gm/relocation.h"

/* Invariants. A buffer that is `moving` has no locks, and its place and its points are the mover's. A buffer that has
 * locks is not moved. Whoever wants it meanwhile waits for `changed`. The mover submits, so it leaves the lock. */

typedef struct gm__buffer_queues {
  gm__heat_queue leave[2]; /* evictable buffers on the device; the second one of persistent ones */
  gm__heat_queue back;     /* buffers that are off the device and may come back */
} gm__buffer_queues;

static gm__pool_buffers *hold_list(const gm_buffer *buffer) { return &buffer->pool->buffers; }

static gm_buffer *hold_of_turn(gm__heat_node *turn) {
  return (gm_buffer *)(void *)((char *)turn - offsetof(gm_buffer, turn));
}

gm_status gm__buffer_check(const gm_buffer *buffer, const char *op, gm_error *err) {
  if (!buffer) return gm__bad_argument(err, op, "`buffer` is NULL");
  if (!gm__buffer_is(buffer)) return gm__bad_argument(err, op, "`buffer` is released");
  return gm__pool_alive(buffer->pool, op, err);
}

gm_status gm__buffer_check_stream(const gm_pool *pool, const gm_stream *stream, const char *op, const char *name,
                                  gm_error *err) {
  if (!stream || gm_stream_device(stream) == pool->device) return GM_OK;
  return gm__bad_argument(err, op, "`%s` is another device's", name);
}

/* ---- the list ---- */

/* The pool ends. Buffers may outlive it. */
static void hold_forget_all(gm_pool *pool) {
  gm__pool_buffers *list = &pool->buffers;
  gm__mutex_lock(&list->lock);
  for (gm_buffer *buffer = list->first; buffer; buffer = buffer->next) {
    gm__buffer_forget_uses(buffer);
    gm__heat_node_leave(&buffer->turn);
  }
  gm__buffer_queues *queues = list->queues;
  list->queues = NULL;
  gm__mutex_unlock(&list->lock);
  gm__release(gm__context_services(pool->ctx), queues, sizeof *queues);
}

gm_status gm__buffer_queues_begin(gm_pool *pool, gm_error *err) {
  gm__pool_buffers *list = &pool->buffers;
  gm__mutex_lock(&list->lock);
  list->forget = hold_forget_all;
  if (!list->queues) list->queues = gm__alloc(gm__context_services(pool->ctx), sizeof *list->queues);
  gm__buffer_queues *queues = list->queues;
  if (queues && !queues->back.cold.hotter) {
    for (int i = 0; i < 2; i++) gm__heat_queue_init(&queues->leave[i]);
    gm__heat_queue_init(&queues->back);
  }
  gm__mutex_unlock(&list->lock);
  if (queues) return GM_OK;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_buffer_create", "no host memory to follow buffers that move");
}

bool gm__buffer_may_return(const gm_buffer *buffer) {
  return buffer->fell_back && !buffer->parked && !buffer->asleep && !buffer->shown;
}

/* The queue that the buffer belongs in. NULL: none. REQUIRES: the lock. */
static gm__heat_queue *hold_queue_of(const gm_buffer *buffer) {
  gm__buffer_queues *queues = hold_list(buffer)->queues;
  if (!queues || buffer->locks || buffer->moving) return NULL;
  if (buffer->evictable && buffer->at.location == GM_LOCATION_DEVICE) return &queues->leave[buffer->persistent];
  return gm__buffer_may_return(buffer) ? &queues->back : NULL;
}

void gm__buffer_queue(gm_buffer *buffer) {
  gm__heat_node_leave(&buffer->turn);
  gm__heat_queue *queue = hold_queue_of(buffer);
  if (!queue) return;
  const uint64_t now = gm__heat_turn(buffer->heat_at);
  gm__heat_queue_join(queue, &buffer->turn, now, gm__heat_end(buffer));
}

/* Notes where a buffer lies that may have neighbours. REQUIRES: the lock. */
static void hold_lay(gm__pool_buffers *list, gm_buffer *buffer) {
  const bool alone = buffer->pool->heap.arenas.whole || buffer->wanted.flags & GM_DEDICATED;
  if (!buffer->relocatable || alone || buffer->at.location != GM_LOCATION_DEVICE) return;
  gm__layout_add(&list->layout, buffer);
}

void gm__buffer_put(gm_buffer *buffer, const gm__place *at) {
  gm__pool_buffers *list = hold_list(buffer);
  gm__mutex_lock(&list->lock);
  gm__layout_take(&list->layout, buffer);
  buffer->at = *at;
  hold_lay(list, buffer);
  gm__mutex_unlock(&list->lock);
}

void gm__buffer_enlist(gm_buffer *buffer) {
  gm__pool_buffers *list = hold_list(buffer);
  gm__mutex_lock(&list->lock);
  list->forget = hold_forget_all;
  buffer->next = list->first;
  if (buffer->next) buffer->next->prev = buffer;
  list->first = buffer;
  gm__buffer_queue(buffer);
  hold_lay(list, buffer);
  gm__mutex_unlock(&list->lock);
}

static void hold_unlink(gm__pool_buffers *list, gm_buffer *buffer) {
  gm__heat_node_leave(&buffer->turn);
  gm__layout_take(&list->layout, buffer);
  if (buffer->next) buffer->next->prev = buffer->prev;
  if (buffer->prev) {
    buffer->prev->next = buffer->next;
  } else {
    list->first = buffer->next;
  }
}

void gm__buffer_forget_uses(gm_buffer *buffer) {
  for (size_t i = 0; i < buffer->use_count; i++) gm_point_release(buffer->pool->device, &buffer->uses[i]);
  gm__release(gm__context_services(buffer->pool->ctx), buffer->uses, buffer->use_capacity * sizeof(gm_point));
  buffer->uses = NULL;
  buffer->use_count = buffer->use_capacity = 0;
}

void gm__buffer_delist(gm_buffer *buffer) {
  gm__pool_buffers *list = hold_list(buffer);
  if (gm__pool_forked(buffer->pool)) return;
  gm__mutex_lock(&list->lock);
  while (buffer->moving) gm__cond_wait(&list->changed, &list->lock);
  hold_unlink(list, buffer);
  gm__mutex_unlock(&list->lock);
}

/* ---- holding ---- */

void gm__buffer_hold_more(gm_buffer *buffer) {
  buffer->locks++;
  gm__heat_use(buffer);
  gm__heat_node_leave(&buffer->turn);
}

void gm__buffer_hold(gm_buffer *buffer) {
  gm__pool_buffers *list = hold_list(buffer);
  gm__mutex_lock(&list->lock);
  while (buffer->moving) gm__cond_wait(&list->changed, &list->lock);
  gm__buffer_hold_more(buffer);
  gm__mutex_unlock(&list->lock);
}

void gm__buffer_let_go(gm_buffer *buffer) {
  gm__pool_buffers *list = hold_list(buffer);
  gm__mutex_lock(&list->lock);
  buffer->locks--;
  gm__buffer_queue(buffer);
  if (buffer->moving) gm__cond_broadcast(&list->changed); /* the last lock of a caller is being taken off */
  gm__mutex_unlock(&list->lock);
}

bool gm__buffer_is_held(const gm_buffer *buffer) {
  gm__pool_buffers *list = hold_list(buffer);
  gm__mutex_lock(&list->lock);
  const bool held = buffer->locks > 0;
  gm__mutex_unlock(&list->lock);
  return held;
}

bool gm__buffer_show(gm_buffer *buffer, gm_block *out) {
  gm__pool_buffers *list = hold_list(buffer);
  gm__mutex_lock(&list->lock);
  while (buffer->moving) gm__cond_wait(&list->changed, &list->lock);
  const bool there = buffer->at.location != GM_LOCATION_HOST;
  if (there) *out = buffer->at.block;
  buffer->shown = buffer->shown || (there && !buffer->locks);
  gm__buffer_queue(buffer);
  gm__mutex_unlock(&list->lock);
  return there;
}

gm_location gm__buffer_where(const gm_buffer *buffer) {
  gm__pool_buffers *list = hold_list(buffer);
  if (gm__pool_forked(buffer->pool)) return buffer->at.location;
  gm__mutex_lock(&list->lock);
  while (buffer->moving) gm__cond_wait(&list->changed, &list->lock);
  const gm_location location = buffer->at.location;
  gm__mutex_unlock(&list->lock);
  return location;
}

/* ---- moving ---- */

gm_status gm__buffer_follow(gm_buffer *buffer, gm_stream *stream, gm_error *err) {
  gm_status status = GM_OK;
  for (size_t i = 0; i < buffer->use_count && !status; i++) {
    status = stream ? gm_stream_wait(stream, &buffer->uses[i], err)
                    : gm_point_wait(buffer->pool->device, &buffer->uses[i], UINT64_MAX, err);
  }
  return status;
}

gm_status gm__buffer_seize(gm_buffer *buffer, gm_stream *stream, const char *op, gm_error *err) {
  gm__pool_buffers *list = hold_list(buffer);
  gm__mutex_lock(&list->lock);
  while (buffer->moving) gm__cond_wait(&list->changed, &list->lock);
  const bool held = buffer->locks > 0;
  buffer->moving = !held;
  gm__mutex_unlock(&list->lock);
  if (held) return gm__fail(err, GM_ERR_BUSY, op, "the buffer is locked, or a call on another thread uses it");
  const gm_status status = gm__buffer_follow(buffer, stream, err);
  if (status) gm__buffer_settle(buffer);
  return status;
}

void gm__buffer_settle(gm_buffer *buffer) {
  gm__pool_buffers *list = hold_list(buffer);
  gm__mutex_lock(&list->lock);
  buffer->moving = false;
  gm__buffer_queue(buffer);
  gm__cond_broadcast(&list->changed);
  gm__mutex_unlock(&list->lock);
}

void gm__buffer_prune_uses(gm_buffer *buffer) {
  size_t left = 0;
  for (size_t i = 0; i < buffer->use_count; i++) {
    bool done = false;
    if (!gm_point_done(buffer->pool->device, &buffer->uses[i], &done, NULL) && done) {
      gm_point_release(buffer->pool->device, &buffer->uses[i]);
    } else {
      buffer->uses[left++] = buffer->uses[i];
    }
  }
  buffer->use_count = left;
}

bool gm__buffer_may_seize(gm_buffer *buffer) {
  if (buffer->moving || buffer->locks || !atomic_load(&buffer->references)) return false;
  gm__buffer_prune_uses(buffer);
  return buffer->use_count == 0;
}

bool gm__buffer_try_seize(gm_buffer *buffer) {
  const bool may = gm__buffer_may_seize(buffer);
  if (may) buffer->moving = true;
  return may;
}

/* ---- searching ---- */

/* The next one in the order of the search. REQUIRES: the lock. */
static gm_buffer *hold_first(const gm__buffer_search *search, uint64_t turn) {
  gm__buffer_queues *queues = search->pool->buffers.queues;
  gm__heat_node *node = NULL;
  if (!queues) return NULL;
  if (search->back) node = gm__heat_queue_hottest(&queues->back, turn);
  for (int i = 0; i < 2 && !search->back && !node; i++) node = gm__heat_queue_coldest(&queues->leave[i], turn);
  return node ? hold_of_turn(node) : NULL;
}

void gm__buffer_search_begin(gm__buffer_search *search) { gm__heat_ring_init(&search->passed); }

/* A buffer that moves is in no queue from now on: who settles it sees to that. */
gm_buffer *gm__buffer_search_next(gm__buffer_search *search) {
  gm__pool_buffers *list = &search->pool->buffers;
  const uint64_t now = gm__now_ns(), turn = gm__heat_turn(gm__now_coarse_ns());
  gm_buffer *buffer;
  gm__mutex_lock(&list->lock);
  while ((buffer = hold_first(search, turn))) {
    gm__heat_node_leave(&buffer->turn);
    if (buffer->moving) continue;
    const bool may = !search->back || gm__heat_has_waited(buffer, now, search->wait_ns);
    if (may && gm__buffer_try_seize(buffer)) break;
    gm__heat_ring_join(&search->passed, &buffer->turn);
    if (search->looks && search->looks--) continue;
    buffer = NULL;
    break;
  }
  gm__mutex_unlock(&list->lock);
  return buffer;
}

void gm__buffer_search_end(gm__buffer_search *search) {
  gm__pool_buffers *list = &search->pool->buffers;
  const gm__heat_node *ring = &search->passed;
  gm__mutex_lock(&list->lock);
  while (ring->hotter != ring) gm__buffer_queue(hold_of_turn(ring->hotter));
  gm__mutex_unlock(&list->lock);
}

/* ---- walking ---- */

/* The buffer itself, or the first one behind it that is not being ended and, with `pass`, is not locked. REQUIRES: the
 * lock. */
static gm_buffer *hold_living(gm_buffer *buffer, bool pass) {
  while (buffer && (!atomic_load(&buffer->references) || (pass && buffer->locks))) buffer = buffer->next;
  return buffer;
}

gm_buffer *gm__buffer_walk(gm_pool *pool, gm_buffer *from, bool pass, bool *held) {
  gm__pool_buffers *list = &pool->buffers;
  gm_buffer *next;
  gm__mutex_lock(&list->lock);
  while ((next = hold_living(from ? from->next : list->first, pass)) && next->moving) {
    gm__cond_wait(&list->changed, &list->lock); /* `from` keeps its place meanwhile, the others may not */
  }
  *held = next && next->locks > 0;
  if (next) next->moving = !*held;
  if (from) {
    from->moving = false;
    gm__buffer_queue(from);
  }
  gm__cond_broadcast(&list->changed);
  gm__mutex_unlock(&list->lock);
  return *held ? NULL : next;
}

/* ---- all at once ---- */

bool gm__buffer_seize_all(gm_pool *pool, gm_buffer **first) {
  gm__pool_buffers *list = &pool->buffers;
  bool busy = false;
  gm__mutex_lock(&list->lock);
  *first = list->first;
  for (const gm_buffer *buffer = *first; buffer; buffer = buffer->next) busy |= buffer->locks || buffer->moving;
  for (gm_buffer *buffer = *first; buffer && !busy; buffer = buffer->next) buffer->moving = true;
  gm__mutex_unlock(&list->lock);
  return !busy;
}

void gm__buffer_settle_all(gm_pool *pool, gm_buffer *first) {
  gm__pool_buffers *list = &pool->buffers;
  gm__mutex_lock(&list->lock);
  for (gm_buffer *buffer = first; buffer; buffer = buffer->next) {
    buffer->moving = false;
    gm__buffer_queue(buffer);
  }
  gm__cond_broadcast(&list->changed);
  gm__mutex_unlock(&list->lock);
}

/* ---- the API ---- */

gm_status gm_buffer_set_persistent(gm_buffer *buffer, bool persistent, gm_error *err) {
  const gm_status status = gm__buffer_check(buffer, "gm_buffer_set_persistent", err);
  if (status) return status;
  gm__mutex_lock(&buffer->pool->buffers.lock);
  buffer->persistent = persistent;
  gm__buffer_queue(buffer);
  gm__mutex_unlock(&buffer->pool->buffers.lock);
  return GM_OK;
}
