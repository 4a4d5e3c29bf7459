#include "core/staging/ring.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/mapping.h"
#include "core/base/thread.h"
#include "core/device/device.h"
#include "core/device/host_range.h"

/* A slot is in one place: not made (no memory), in a queue, or in the hands of one thread. That thread waits
 * for its point, or has it for a user. So no lock is needed while a thread waits. Slots are made by one thread at a
 * time, in the order of the array. `most` only falls. */

enum { RING_TOUCHERS = 4, RING_PAGE = 4096 };

typedef struct ring_queue {
  gm__ring_slot *first, **end;
} ring_queue;

struct gm__ring {
  gm_device *device;
  uint64_t slot_bytes;
  uint32_t asked;  /* slots in the array */
  gm__mutex lock;  /* guards the members below */
  gm__cond moved;  /* a slot came back, or slots were made */
  ring_queue idle; /* without a point */
  ring_queue rest; /* with one */
  bool making;
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
  if (!ring) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, op, "no host memory for the ring's table");
  ring->device = device;
  ring->slot_bytes = slot_bytes;
  ring->asked = ring->info.most = slots;
  ring->idle.end = &ring->idle.first;
  ring->rest.end = &ring->rest.first;
  gm__mutex_init(&ring->lock, GM__RANK_LEAF);
  gm__cond_init(&ring->moved);
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

/* --- making slots --- */

typedef struct ring_touch {
  gm__ring_slot *slots;
  uint32_t first, step, count;
  uint64_t bytes;
  gm__thread thread;
} ring_touch;

/* Each page is written once: so it is there when the system locks it. */
static void ring_touch_run(void *arg) {
  const ring_touch *touch = arg;
  for (uint32_t i = touch->first; i < touch->count; i += touch->step) {
    volatile unsigned char *host = touch->slots[i].host;
    for (uint64_t at = 0; at < touch->bytes; at += RING_PAGE) host[at] = 0;
  }
}

static void ring_touch_all(gm__ring *ring, gm__ring_slot *slots, uint32_t count) {
  ring_touch touches[RING_TOUCHERS];
  bool started[RING_TOUCHERS] = {false};
  const uint32_t step = count < RING_TOUCHERS ? count : RING_TOUCHERS;
  for (uint32_t i = 0; i < step; i++) {
    touches[i] = (ring_touch){.slots = slots, .first = i, .step = step, .count = count, .bytes = ring->slot_bytes};
    if (i) started[i] = gm__thread_create(&touches[i].thread, "gm-touch", ring_touch_run, &touches[i], NULL) == GM_OK;
  }
  for (uint32_t i = 0; i < step; i++) {
    if (!started[i]) ring_touch_run(&touches[i]);
  }
  for (uint32_t i = 1; i < step; i++) {
    if (started[i]) gm__thread_join(&touches[i].thread);
  }
}

/* How many of `count` slots got memory. */
static uint32_t ring_map(gm__ring *ring, gm__ring_slot *slots, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    slots[i] = (gm__ring_slot){.bytes = ring->slot_bytes, .host = gm__mapping_new((size_t)ring->slot_bytes)};
    if (!slots[i].host) return i;
  }
  return count;
}

static void ring_unmap(gm__ring *ring, gm__ring_slot *slots, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    gm__mapping_release(slots[i].host, (size_t)ring->slot_bytes);
    slots[i].host = NULL;
  }
}

/* How many of `count` slots the device can use directly; `err` says what refused the next one. */
static uint32_t ring_register(gm__ring *ring, gm__ring_slot *slots, uint32_t count, gm_error *err) {
  for (uint32_t i = 0; i < count; i++) {
    if (gm_host_register(ring->device, slots[i].host, ring->slot_bytes, err) != GM_OK) return i;
    slots[i].pinned = true;
  }
  return count;
}

/* New slots behind the `made` that there are: how many came, and why not more. Only the thread that set `making` calls
 * it, without the lock. */
static uint32_t ring_make(gm__ring *ring, uint32_t made, uint32_t count, gm_error *why) {
  gm__ring_slot *slots = &ring->slots[made];
  const uint32_t mapped = ring_map(ring, slots, count);
  if (mapped < count) {
    gm__fail(why, GM_ERR_OUT_OF_HOST_MEMORY, 0, "ring", "no host memory for a slot of %" PRIu64 " bytes",
             ring->slot_bytes);
  }
  ring_touch_all(ring, slots, mapped);
  if (ring->pageable || !mapped) return mapped;
  gm_error refusal = {.status = GM_OK};
  const uint32_t pinned = ring_register(ring, slots, mapped, &refusal);
  if (refusal.status == GM_OK) return mapped;
  *why = refusal;
  const bool keep = !made && !pinned && refusal.status != GM_ERR_DEVICE_LOST; /* pageable, then */
  if (keep) return mapped;
  ring_unmap(ring, slots + pinned, mapped - pinned);
  return pinned;
}

/* REQUIRES: ring lock, and that the thread set `making`. */
static void ring_made(gm__ring *ring, uint32_t came, uint32_t wanted, const gm_error *why) {
  gm__ring_slot *slots = &ring->slots[ring->info.made];
  for (uint32_t i = 0; i < came; i++) {
    ring->info.pinned += slots[i].pinned;
    ring_push(ring, &slots[i]);
  }
  ring->info.made += came;
  ring->info.bytes += came * ring->slot_bytes;
  if (came && !slots[0].pinned) ring->pageable = true;
  if (why->status != GM_OK) snprintf(ring->info.why, sizeof ring->info.why, "%s: %s", why->op, why->message);
  if (came < wanted && ring->info.made) ring->info.most = ring->info.made;
}

/* Make slots until there are `slots`. REQUIRES: ring lock, which is given away meanwhile. */
static gm_status ring_grow(gm__ring *ring, uint32_t slots, gm_error *err) {
  const uint32_t made = ring->info.made, wanted = slots - made;
  gm_error why = {.status = GM_OK};
  ring->making = true;
  gm__mutex_unlock(&ring->lock);
  const uint32_t came = ring_make(ring, made, wanted, &why);
  gm__mutex_lock(&ring->lock);
  ring_made(ring, came, wanted, &why);
  ring->making = false;
  gm__cond_broadcast(&ring->moved);
  const bool fatal = !ring->info.made || why.status == GM_ERR_DEVICE_LOST;
  if (fatal && err) *err = why;
  return fatal ? why.status : GM_OK;
}

gm_status gm__ring_grow(gm__ring *ring, uint32_t slots, gm_error *err) {
  gm_status status = GM_OK;
  gm__mutex_lock(&ring->lock);
  while (ring->making) gm__cond_wait(&ring->moved, &ring->lock);
  const uint32_t most = ring->info.most;
  if (slots > most) slots = most;
  if (slots > ring->info.made) status = ring_grow(ring, slots, err);
  gm__mutex_unlock(&ring->lock);
  return status;
}

/* --- taking and giving --- */

/* Wait for a slot's point, without the lock. */
static gm_status ring_settle(gm__ring *ring, gm__ring_slot *slot, uint64_t timeout_ns, gm_error *err) {
  const gm_status status = gm_point_wait(ring->device, &slot->point, timeout_ns, err);
  if (status == GM_OK) gm_point_release(ring->device, &slot->point);
  return status;
}

/* An idle slot, else the one that came back first, if its work ends by then; else that is the first again. NULL: both
 * queues are empty, or the answer says why. REQUIRES: ring lock, which is given away meanwhile. */
static gm_status ring_take_first(gm__ring *ring, uint64_t timeout_ns, gm__ring_slot **out, gm_error *err) {
  *out = ring_pop(&ring->idle);
  if (*out) return GM_OK;
  gm__ring_slot *slot = ring_pop(&ring->rest);
  if (!slot) return GM_OK;
  ring->claimed++;
  gm__mutex_unlock(&ring->lock);
  const gm_status status = ring_settle(ring, slot, timeout_ns, err);
  gm__mutex_lock(&ring->lock);
  ring->claimed--;
  if (status == GM_OK) {
    *out = slot;
  } else {
    ring_push_front(ring, slot);
  }
  return status;
}

static gm_status ring_no_slot(const gm__ring *ring, gm_error *err) {
  return gm__fail(err, GM_ERR_TIMEOUT, 0, "ring", "all %" PRIu32 " slots of %" PRIu64 " bytes are in use",
                  ring->info.made, ring->slot_bytes);
}

/* Are there slots beyond those that the user leaves for others? REQUIRES: ring lock. */
static bool ring_allows(const gm__ring *ring, const gm__ring_user *user) {
  if (!user || !user->held) return true;
  const uint32_t free = ring->info.most - ring->info.taken - ring->claimed;
  return free > (ring->waiting ? ring->waiting : 1);
}

/* GM_OK with `*out` NULL: look again. REQUIRES: ring lock, which is given away meanwhile. */
static gm_status ring_try(gm__ring *ring, uint64_t deadline, gm__ring_slot **out, gm_error *err) {
  gm_status status = ring_take_first(ring, 0, out, err);
  if (*out || (status != GM_OK && status != GM_ERR_TIMEOUT)) return status;
  if (!ring->making && ring->info.made < ring->info.most) return ring_grow(ring, ring->info.made + 1, err);
  if (gm__deadline_passed(deadline)) return ring_no_slot(ring, err);
  if (ring->rest.first) {
    status = ring_take_first(ring, gm__deadline_left(deadline), out, err);
    return status == GM_ERR_TIMEOUT ? ring_no_slot(ring, err) : status;
  }
  const bool told = gm__cond_wait_until(&ring->moved, &ring->lock, deadline);
  return told || ring->rest.first || ring->idle.first ? GM_OK : ring_no_slot(ring, err);
}

/* Does what ring_try does, once the user may have one more. REQUIRES: as there. */
static gm_status ring_try_as(gm__ring *ring, const gm__ring_user *user, uint64_t deadline, gm__ring_slot **out,
                             gm_error *err) {
  if (ring_allows(ring, user)) return ring_try(ring, deadline, out, err);
  if (gm__deadline_passed(deadline)) return ring_no_slot(ring, err);
  gm__cond_wait_until(&ring->moved, &ring->lock, deadline);
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
  gm__mutex_lock(&ring->lock);
  while (!*out && status == GM_OK) status = ring_try_as(ring, user, deadline, out, err);
  if (*out) ring_taken(ring, *out, user);
  gm__mutex_unlock(&ring->lock);
  return status;
}

gm_status gm__ring_take(gm__ring *ring, uint64_t timeout_ns, gm__ring_slot **out, gm_error *err) {
  return gm__ring_take_as(ring, NULL, timeout_ns, out, err);
}

void gm__ring_join(gm__ring *ring, gm__ring_user *user) {
  user->held = user->helpers = 0;
  gm__mutex_lock(&ring->lock);
  user->next = ring->users;
  ring->users = user;
  ring->waiting++;
  gm__mutex_unlock(&ring->lock);
}

void gm__ring_leave(gm__ring *ring, gm__ring_user *user) {
  gm__mutex_lock(&ring->lock);
  while (user->helpers) gm__cond_wait(&ring->moved, &ring->lock);
  gm__ring_user **at = &ring->users;
  while (*at != user) at = &(*at)->next;
  *at = user->next;
  ring->waiting--;
  gm__cond_broadcast(&ring->moved);
  gm__mutex_unlock(&ring->lock);
}

bool gm__ring_help(gm__ring *ring, const gm__ring_user *user, uint64_t deadline) {
  bool helped = false;
  gm__mutex_lock(&ring->lock);
  for (gm__ring_user *other = ring->users; other && !helped; other = other->next) {
    if (other == user || !other->held) continue;
    other->helpers++; /* it stays in the list */
    gm__mutex_unlock(&ring->lock);
    helped = other->help(other, deadline);
    gm__mutex_lock(&ring->lock);
    other->helpers--;
    gm__cond_broadcast(&ring->moved);
  }
  gm__mutex_unlock(&ring->lock);
  return helped;
}

void gm__ring_give(gm__ring *ring, gm__ring_slot *slot, const gm_point *point) {
  slot->point = point ? *point : (gm_point){0};
  gm__mutex_lock(&ring->lock);
  ring->info.taken--;
  if (slot->user && !--slot->user->held) ring->waiting++;
  slot->user = NULL;
  ring_push(ring, slot);
  gm__mutex_unlock(&ring->lock);
}

void gm__ring_figures(gm__ring *ring, gm__ring_info *out) {
  gm__mutex_lock(&ring->lock);
  *out = ring->info;
  gm__mutex_unlock(&ring->lock);
}

/* A lost device does no more work. */
static bool ring_may_go(gm_status status) { return status == GM_OK || status == GM_ERR_DEVICE_LOST; }

/* The device lets go of a slot. Where it fails twice, the driver may have it still: then the memory stays mapped. */
static void ring_unregister(gm__ring *ring, gm__ring_slot *slot) {
  gm_status status = GM_ERR_TIMEOUT;
  for (int turn = 0; turn < 2 && !ring_may_go(status); turn++) {
    status = gm_host_unregister(ring->device, slot->host, NULL);
  }
  if (ring_may_go(status)) return;
  gm__host_range_forget(ring->device, slot->host);
  slot->host = NULL;
}

static void ring_end(gm__ring *ring, bool forked) {
  gm_device *device = ring->device;
  for (uint32_t i = 0; i < ring->info.made; i++) {
    gm__ring_slot *slot = &ring->slots[i];
    gm_point_release(device, &slot->point);
    if (slot->pinned) ring_unregister(ring, slot);
    if (slot->host) gm__mapping_release(slot->host, (size_t)ring->slot_bytes);
  }
  if (!forked) {
    gm__cond_destroy(&ring->moved);
    gm__mutex_destroy(&ring->lock);
  }
  gm__release(gm__context_services(device->ctx), ring, ring_size(ring->asked));
  atomic_fetch_sub(&device->children, 1);
}

gm_status gm__ring_destroy(gm__ring *ring, gm_error *err) {
  if (!ring) return GM_OK;
  const bool forked = gm__context_forked(ring->device->ctx);
  if (ring->info.taken && !forked) {
    return gm__fail(err, GM_ERR_BUSY, 0, "ring_destroy", "%" PRIu32 " slots are in use", ring->info.taken);
  }
  for (gm__ring_slot *slot = forked ? NULL : ring->rest.first; slot; slot = slot->next) {
    const gm_status status = ring_settle(ring, slot, GM__NEVER, err);
    if (!ring_may_go(status)) return status;
  }
  ring_end(ring, forked);
  return GM_OK;
}
