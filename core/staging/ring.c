#include "core/staging/ring.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/device/device.h"
#include "core/staging/stock.h"

/* A slot is in one place: without memory, in a queue, or in the hands of one thread. That thread waits for its point,
 * or has it for a user. So no lock is needed while a thread waits. One thread at a time gets memory for slots. `most`
 * only falls.
 *
 * The rings of a device share its stock by need: a ring that is not used gives its slots to whoever wants memory.
 * Among those in use, one with more than its share gives to one with less. A ring without any slot gets one in any
 * case: so nobody waits for another ring. */

typedef struct ring_queue {
  gm__ring_slot *first, **end;
} ring_queue;

struct gm__ring {
  gm_device *device;
  gm__stock *stock;
  uint64_t slot_bytes;
  uint32_t asked;  /* slots in the array */
  gm__cond moved;  /* a slot came back, or slots were made */
  gm__ring *next;  /* of the stock */
  ring_queue idle; /* without a point */
  ring_queue rest; /* with one */
  bool making;
  bool ending;
  bool tight;       /* the stock had no memory for a further slot */
  bool pageable;    /* from the first slot on */
  uint32_t claimed; /* slots that a thread waits for: neither at rest nor taken */
  uint32_t waiting; /* users that have joined and have no slot */
  gm__ring_user *users;
  gm__ring_info info;
  gm__ring_slot slots[];
};

uint64_t gm__ring_usual_bytes(void) { return 4 << 20; }

static size_t ring_size(uint32_t slots) { return sizeof(gm__ring) + (size_t)slots * sizeof(gm__ring_slot); }

gm_status gm__ring_create(gm_device *device, uint32_t slots, uint64_t slot_bytes, gm__ring **out, gm_error *err) {
  static const char op[] = "ring_create";
  if (!slots || !slot_bytes) return gm__bad_argument(err, op, "`%s` is 0", slots ? "slot_bytes" : "slots");
  gm__ring *ring = gm__alloc(gm__context_services(device->ctx), ring_size(slots));
  if (!ring) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for the ring's table");
  const gm_status status = gm__stock_join(device, &ring->stock, err);
  if (status) {
    gm__release(gm__context_services(device->ctx), ring, ring_size(slots));
    return status;
  }
  ring->device = device;
  ring->slot_bytes = slot_bytes;
  ring->asked = ring->info.most = slots;
  ring->idle.end = &ring->idle.first;
  ring->rest.end = &ring->rest.first;
  gm__cond_init(&ring->moved);
  gm__mutex_lock(&ring->stock->lock);
  ring->next = ring->stock->rings;
  ring->stock->rings = ring;
  gm__mutex_unlock(&ring->stock->lock);
  atomic_fetch_add(&device->children, 1);
  *out = ring;
  return GM_OK;
}

/* --- the queues. REQUIRES: ring lock --- */

static void ring_push(gm__ring *ring, gm__ring_slot *slot) {
  ring_queue *queue = slot->point.stream ? &ring->rest : &ring->idle;
  slot->next = NULL;
  *queue->end = slot;
  queue->end = &slot->next;
  gm__cond_broadcast(&ring->moved);
}

static void ring_push_front(gm__ring *ring, gm__ring_slot *slot) {
  ring_queue *queue = &ring->rest;
  slot->next = queue->first;
  if (!queue->first) queue->end = &slot->next;
  queue->first = slot;
  gm__cond_broadcast(&ring->moved);
}

static gm__ring_slot *ring_pop(ring_queue *queue) {
  gm__ring_slot *slot = queue->first;
  if (!slot) return NULL;
  queue->first = slot->next;
  if (!queue->first) queue->end = &queue->first;
  slot->next = NULL;
  return slot;
}

/* --- one stock for all rings. REQUIRES: ring lock, which ring_settle and whoever makes memory give away --- */

/* Wait for a slot's point, without the lock. */
static gm_status ring_settle(gm__ring *ring, gm__ring_slot *slot, uint64_t timeout_ns, gm_error *err) {
  const gm_status status = gm_point_wait(ring->device, &slot->point, timeout_ns, err);
  if (status == GM_OK) gm_point_release(ring->device, &slot->point);
  return status;
}

/* An idle slot, else the one that came back first, if its work ends by then; else that is the first again. NULL: both
 * queues are empty, or the answer says why. */
static gm_status ring_take_first(gm__ring *ring, uint64_t timeout_ns, gm__ring_slot **out, gm_error *err) {
  *out = ring_pop(&ring->idle);
  if (*out) return GM_OK;
  gm__ring_slot *slot = ring_pop(&ring->rest);
  if (!slot) return GM_OK;
  ring->claimed++;
  gm__mutex_unlock(&ring->stock->lock);
  const gm_status status = ring_settle(ring, slot, timeout_ns, err);
  gm__mutex_lock(&ring->stock->lock);
  ring->claimed--;
  if (status == GM_OK) {
    *out = slot;
  } else {
    ring_push_front(ring, slot);
  }
  gm__cond_broadcast(&ring->moved);
  return status;
}

static void ring_put(gm__ring *ring, gm__ring_slot *slot) {
  ring->info.made--;
  ring->info.pinned -= slot->pinned;
  ring->info.bytes -= ring->slot_bytes;
  gm__stock_put(slot);
}

/* There may be memory again for those that found none. */
static void ring_loosen(const gm__stock *stock) {
  for (gm__ring *ring = stock->rings; ring; ring = ring->next) {
    if (ring->tight) gm__cond_broadcast(&ring->moved);
    ring->tight = false;
  }
}

static bool ring_in_use(const gm__ring *ring) { return ring->info.taken || ring->claimed; }

/* May `ring` have a slot of `other`? */
static bool ring_may_have(const gm__ring *ring, const gm__ring *other) {
  uint64_t used = 0;
  if (other == ring || other->ending || (!other->idle.first && !other->rest.first)) return false;
  if (!ring_in_use(other)) return true;
  for (const gm__ring *each = ring->stock->rings; each; each = each->next) used += each == ring || ring_in_use(each);
  const uint64_t share = ring->stock->most / used;
  return ring->info.bytes < share && other->info.bytes > share;
}

/* Takes a slot at rest from another ring, and puts it into the stock. `pinned`: only a page-locked one. */
static bool ring_reclaim(gm__ring *ring, bool pinned) {
  gm__ring *other = ring->stock->rings;
  for (; other; other = other->next) {
    gm__ring_slot *slot = NULL;
    if (!ring_may_have(ring, other) || (pinned && other->pageable)) continue;
    (void)ring_take_first(other, 0, &slot, NULL); /* it stays in the list: it waits for claimed slots */
    if (slot) return ring_put(other, slot), true;
  }
  return false;
}

/* Memory that may lie beyond the stock's bound; pageable where none is locked. */
static bool ring_first(gm__ring *ring, gm__ring_slot *slot, bool refused, gm_error *why) {
  gm__stock *stock = ring->stock;
  const bool lock = !refused && !ring->pageable;
  if (lock && gm__stock_add(stock, ring->slot_bytes, 1, true, why) == GM_OK) {
    return gm__stock_cut(stock, ring->slot_bytes, true, slot);
  }
  if (lock && why->status == GM_ERR_DEVICE_LOST) return false;
  if (!gm__stock_cut(stock, ring->slot_bytes, false, slot)) {
    if (gm__stock_add(stock, ring->slot_bytes, 1, false, why)) return false;
    gm__stock_cut(stock, ring->slot_bytes, false, slot);
  }
  return ring->pageable = true;
}

/* Memory for a slot, of `more` that are wanted. False: there is none; `why` says so where the system refused. */
static bool ring_fetch(gm__ring *ring, gm__ring_slot *slot, uint32_t more, gm_error *why) {
  gm__stock *stock = ring->stock;
  bool refused = false;
  while (!gm__stock_cut(stock, ring->slot_bytes, !ring->pageable, slot)) {
    const uint32_t most = ring->info.most - ring->info.made;
    const uint32_t count = refused ? 0 : gm__stock_room(stock, ring->slot_bytes, more, most);
    if (count) {
      const gm_status status = gm__stock_add(stock, ring->slot_bytes, count, !ring->pageable, why);
      if (status == GM_ERR_DEVICE_LOST) return false;
      refused = status != GM_OK;
      continue;
    }
    if (gm__stock_drop(stock, GM__NEVER, refused) || ring_reclaim(ring, refused)) {
      refused = false;
      continue;
    }
    ring->tight = !refused;
    return !ring->info.made && ring_first(ring, slot, refused, why);
  }
  return true;
}

static gm__ring_slot *ring_empty(gm__ring *ring) {
  gm__ring_slot *slot = ring->slots;
  while (slot->host) slot++;
  return slot;
}

/* Why there is no memory for a further slot. */
static void ring_note(gm__ring *ring, const gm_error *why) {
  char *to = ring->info.why;
  if (why->status != GM_OK) {
    snprintf(to, sizeof ring->info.why, "%s: %s", why->op, why->message);
  } else if (ring->tight && !to[0]) {
    snprintf(to, sizeof ring->info.why, "ring: others used the device's %" PRIu64 " bytes (staging.max_bytes)",
             ring->stock->most);
  }
}

/* Make slots until there are `slots`, or there is no memory for more. */
static gm_status ring_grow(gm__ring *ring, uint32_t slots, gm_error *err) {
  gm_error why = {.status = GM_OK};
  bool came = true;
  ring->making = true;
  while (came && ring->info.made < slots) {
    gm__ring_slot *slot = ring_empty(ring);
    came = ring_fetch(ring, slot, slots - ring->info.made, &why);
    if (!came) continue;
    ring->info.made++;
    ring->info.pinned += slot->pinned;
    ring->info.bytes += ring->slot_bytes;
    ring_push(ring, slot);
  }
  ring->making = false;
  gm__cond_broadcast(&ring->moved);
  ring_note(ring, &why);
  if (!came && !ring->tight && ring->info.made) ring->info.most = ring->info.made;
  const bool fatal = !ring->info.made || why.status == GM_ERR_DEVICE_LOST;
  if (fatal && err) *err = why;
  return fatal ? why.status : GM_OK;
}

gm_status gm__ring_grow(gm__ring *ring, uint32_t slots, gm_error *err) {
  gm_status status = GM_OK;
  gm__mutex_lock(&ring->stock->lock);
  while (ring->making) gm__cond_wait(&ring->moved, &ring->stock->lock);
  const uint32_t most = ring->info.most;
  if (slots > most) slots = most;
  if (slots > ring->info.made) status = ring_grow(ring, slots, err);
  gm__mutex_unlock(&ring->stock->lock);
  return status;
}

/* --- taking and giving --- */

static gm_status ring_no_slot(const gm__ring *ring, gm_error *err) {
  return gm__fail(err, GM_ERR_TIMEOUT, "ring", "all %" PRIu32 " slots of %" PRIu64 " bytes are in use", ring->info.made,
                  ring->slot_bytes);
}

/* Are there slots beyond those that the user leaves for others? REQUIRES: ring lock. */
static bool ring_allows(const gm__ring *ring, const gm__ring_user *user) {
  if (!user || user->all || !user->held) return true;
  const uint32_t free = (ring->tight ? ring->info.made : ring->info.most) - ring->info.taken - ring->claimed;
  return free > (ring->waiting ? ring->waiting : 1);
}

/* Does nobody but the user give a slot back? REQUIRES: ring lock. */
static bool ring_is_its_own(const gm__ring *ring, const gm__ring_user *user) {
  return user && user->held && user->held == ring->info.taken && !ring->claimed && !ring->making;
}

/* GM_OK with `*out` NULL: look again. REQUIRES: ring lock, which is given away meanwhile. */
static gm_status ring_wait(gm__ring *ring, uint64_t deadline, gm__ring_slot **out, gm_error *err) {
  if (ring->rest.first) {
    const gm_status status = ring_take_first(ring, gm__deadline_left(deadline), out, err);
    return status == GM_ERR_TIMEOUT ? ring_no_slot(ring, err) : status;
  }
  const bool told = gm__cond_wait_until(&ring->moved, &ring->stock->lock, deadline);
  return told || ring->rest.first || ring->idle.first ? GM_OK : ring_no_slot(ring, err);
}

/* Does what ring_wait does, if there is neither a slot at rest nor memory for one. REQUIRES: as there. */
static gm_status ring_try(gm__ring *ring, const gm__ring_user *user, uint64_t deadline, gm__ring_slot **out,
                          gm_error *err) {
  const gm_status status = ring_take_first(ring, 0, out, err);
  if (*out || (status != GM_OK && status != GM_ERR_TIMEOUT)) return status;
  const bool full = ring->info.made == ring->info.most || (ring->tight && ring->info.made);
  if (!ring->making && !full) return ring_grow(ring, ring->info.made + 1, err);
  if (gm__deadline_passed(deadline)) return ring_no_slot(ring, err);
  if (!ring->rest.first && ring_is_its_own(ring, user)) return ring_no_slot(ring, err);
  return ring_wait(ring, deadline, out, err);
}

/* Does what ring_try does, once the user may have one more. REQUIRES: as there. */
static gm_status ring_try_as(gm__ring *ring, const gm__ring_user *user, uint64_t deadline, gm__ring_slot **out,
                             gm_error *err) {
  if (ring_allows(ring, user)) return ring_try(ring, user, deadline, out, err);
  if (gm__deadline_passed(deadline)) return ring_no_slot(ring, err);
  gm__cond_wait_until(&ring->moved, &ring->stock->lock, deadline);
  return GM_OK;
}

/* REQUIRES: ring lock. */
static void ring_taken(gm__ring *ring, gm__ring_slot *slot, gm__ring_user *user) {
  ring->info.taken++;
  slot->user = user;
  if (user && !user->held++) ring->waiting--;
}

gm_status gm__ring_take_as(gm__ring *ring, gm__ring_user *user, uint64_t timeout_ns, gm__ring_slot **out,
                           gm_error *err) {
  const uint64_t deadline = gm__deadline_after(timeout_ns);
  gm_status status = GM_OK;
  *out = NULL;
  gm__mutex_lock(&ring->stock->lock);
  while (!*out && status == GM_OK) status = ring_try_as(ring, user, deadline, out, err);
  if (*out) ring_taken(ring, *out, user);
  gm__mutex_unlock(&ring->stock->lock);
  return status;
}

gm_status gm__ring_take(gm__ring *ring, uint64_t timeout_ns, gm__ring_slot **out, gm_error *err) {
  return gm__ring_take_as(ring, NULL, timeout_ns, out, err);
}

void gm__ring_join(gm__ring *ring, gm__ring_user *user) {
  user->held = user->helpers = 0;
  gm__mutex_lock(&ring->stock->lock);
  user->next = ring->users;
  ring->users = user;
  ring->waiting++;
  gm__mutex_unlock(&ring->stock->lock);
}

void gm__ring_leave(gm__ring *ring, gm__ring_user *user) {
  gm__mutex_lock(&ring->stock->lock);
  while (user->helpers) gm__cond_wait(&ring->moved, &ring->stock->lock);
  gm__ring_user **at = &ring->users;
  while (*at != user) at = &(*at)->next;
  *at = user->next;
  ring->waiting--;
  gm__cond_broadcast(&ring->moved);
  gm__mutex_unlock(&ring->stock->lock);
}

bool gm__ring_help(gm__ring *ring, const gm__ring_user *user, uint64_t deadline) {
  bool helped = false;
  gm__mutex_lock(&ring->stock->lock);
  for (gm__ring_user *other = ring->users; other && !helped; other = other->next) {
    if (other == user || !other->held) continue;
    other->helpers++; /* it stays in the list */
    gm__mutex_unlock(&ring->stock->lock);
    helped = other->help(other, deadline);
    gm__mutex_lock(&ring->stock->lock);
    other->helpers--;
    gm__cond_broadcast(&ring->moved);
  }
  gm__mutex_unlock(&ring->stock->lock);
  return helped;
}

/* A forked child has one thread, and another one of its parent may have had the lock. False: it is such a child. */
static bool ring_lock(gm__ring *ring) {
  const bool lives = !gm__context_forked(ring->device->ctx);
  if (lives) gm__mutex_lock(&ring->stock->lock);
  return lives;
}

void gm__ring_give(gm__ring *ring, gm__ring_slot *slot, const gm_point *point) {
  slot->point = point ? *point : (gm_point){0};
  if (!ring_lock(ring)) return; /* it goes with the ring */
  ring->info.taken--;
  if (slot->user && !--slot->user->held) ring->waiting++;
  slot->user = NULL;
  ring_push(ring, slot);
  ring_loosen(ring->stock);
  gm__mutex_unlock(&ring->stock->lock);
}

uint32_t gm__ring_number(const gm__ring *ring, const gm__ring_slot *slot) { return (uint32_t)(slot - ring->slots); }

void gm__ring_figures(gm__ring *ring, gm__ring_info *out) {
  const bool locked = ring_lock(ring);
  *out = ring->info;
  out->slot_bytes = ring->slot_bytes;
  if (locked) gm__mutex_unlock(&ring->stock->lock);
}

/* A lost device does no more work. */
static bool ring_may_go(gm_status status) { return status == GM_OK || status == GM_ERR_DEVICE_LOST; }

/* From now on no other ring takes a slot of it. */
static gm_status ring_close(gm__ring *ring, gm_error *err) {
  gm_status status = GM_OK;
  gm__mutex_lock(&ring->stock->lock);
  while (ring->claimed) gm__cond_wait(&ring->moved, &ring->stock->lock);
  ring->ending = !ring->info.taken;
  if (!ring->ending) {
    status = gm__fail(err, GM_ERR_BUSY, "ring_destroy", "%" PRIu32 " slots are in use", ring->info.taken);
  }
  gm__mutex_unlock(&ring->stock->lock);
  for (gm__ring_slot *slot = ring->rest.first; slot && ring_may_go(status); slot = slot->next) {
    status = ring_settle(ring, slot, GM__NEVER, err);
  }
  if (ring_may_go(status)) return GM_OK;
  gm__mutex_lock(&ring->stock->lock);
  ring->ending = false;
  gm__mutex_unlock(&ring->stock->lock);
  return status;
}

/* Its memory stays in the stock. REQUIRES: ring lock, unless it is a forked child's. */
static void ring_empty_out(gm__ring *ring) {
  gm__ring **at = &ring->stock->rings;
  for (uint32_t i = 0; i < ring->asked; i++) {
    if (ring->slots[i].host) gm__stock_put(&ring->slots[i]);
  }
  while (*at != ring) at = &(*at)->next;
  *at = ring->next;
}

static void ring_end(gm__ring *ring, bool forked) {
  gm_device *device = ring->device;
  for (uint32_t i = 0; i < ring->asked; i++) gm_point_release(device, &ring->slots[i].point);
  if (!forked) gm__mutex_lock(&ring->stock->lock);
  ring_empty_out(ring);
  if (!forked) {
    ring_loosen(ring->stock);
    gm__mutex_unlock(&ring->stock->lock);
    gm__cond_destroy(&ring->moved);
    gm__stock_tidy(ring->stock);
  }
  gm__stock_leave(ring->stock, forked);
  gm__release(gm__context_services(device->ctx), ring, ring_size(ring->asked));
  atomic_fetch_sub(&device->children, 1);
}

gm_status gm__ring_destroy(gm__ring *ring, gm_error *err) {
  if (!ring) return GM_OK;
  const bool forked = gm__context_forked(ring->device->ctx);
  const gm_status status = forked ? GM_OK : ring_close(ring, err);
  if (status == GM_OK) ring_end(ring, forked);
  return status;
}
