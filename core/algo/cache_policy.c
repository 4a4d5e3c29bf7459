#include "core/algo/cache_policy.h"

/* Invariants. An entry is in the queue that its place names. LRU uses the main queue alone. A touch pays for one move
 * of its entry, so victim looks at one entry more than there were touches, and at GM__CACHE_SPARED at most. */

enum {
  CACHE_SMALL_SHARE = 10, /* the small queue has a tenth of the weight */
  CACHE_TOUCHES = 3,      /* more are not counted */
  CACHE_WAYS = 4          /* ghosts that share a set */
};

/* ---- queues ---- */

static void cache_push(gm__cache_policy *policy, gm__cache_entry *entry, gm__cache_place place) {
  gm__cache_queue *queue = &policy->queues[place];
  entry->place = (uint8_t)place;
  entry->newer = NULL;
  entry->older = queue->newest;
  if (queue->newest) queue->newest->newer = entry;
  if (!queue->oldest) queue->oldest = entry;
  queue->newest = entry;
  queue->count++;
  queue->weight += entry->weight;
}

static void cache_unlink(gm__cache_policy *policy, gm__cache_entry *entry) {
  gm__cache_queue *queue = &policy->queues[entry->place];
  *(entry->newer ? &entry->newer->older : &queue->newest) = entry->older;
  *(entry->older ? &entry->older->newer : &queue->oldest) = entry->newer;
  queue->count--;
  queue->weight -= entry->weight;
  entry->place = GM__CACHE_NOWHERE;
}

static void cache_move(gm__cache_policy *policy, gm__cache_entry *entry, gm__cache_place place) {
  cache_unlink(policy, entry);
  cache_push(policy, entry, place);
}

/* ---- ghosts: a table of sets, in which the oldest makes room ---- */

static uint32_t ghost_mark(uint64_t hash) { return (uint32_t)(hash >> 32) ? (uint32_t)(hash >> 32) : 1; }

static gm__cache_ghost *ghost_set(const gm__cache_policy *policy, uint64_t hash) {
  return gm__places_at(&policy->ghosts, gm__places_of(&policy->ghosts, ghost_mark(hash)));
}

static uint32_t ghost_age(const gm__cache_policy *policy, const gm__cache_ghost *ghost) {
  return policy->evictions - ghost->when;
}

/* One set more, which gets its ghosts from one other. Two entries for a set are two ghosts for an entry. */
static void ghost_grow(gm__cache_policy *policy) {
  const size_t entries = policy->queues[GM__CACHE_SMALL].count + policy->queues[GM__CACHE_MAIN].count;
  size_t from, to, kept = 0;
  if (policy->ghosts.count && policy->ghosts.count >= entries / (CACHE_WAYS / 2)) return;
  if (!gm__places_add(&policy->ghosts, &from, &to) || from == to) return;
  gm__cache_ghost *set = gm__places_at(&policy->ghosts, from), *fresh = gm__places_at(&policy->ghosts, to);
  for (size_t i = 0, moved = 0; i < CACHE_WAYS; i++) {
    const gm__cache_ghost ghost = set[i];
    set[i].mark = 0;
    if (ghost.mark && gm__places_of(&policy->ghosts, ghost.mark) == to) fresh[moved++] = ghost;
    if (ghost.mark && gm__places_of(&policy->ghosts, ghost.mark) == from) set[kept++] = ghost;
  }
}

static void ghost_add(gm__cache_policy *policy, uint64_t hash) {
  if (!policy->ghosts.count) return;
  gm__cache_ghost *set = ghost_set(policy, hash), *at = set;
  for (size_t i = 1; i < CACHE_WAYS && at->mark; i++) {
    if (!set[i].mark || ghost_age(policy, &set[i]) > ghost_age(policy, at)) at = &set[i];
  }
  *at = (gm__cache_ghost){ghost_mark(hash), policy->evictions};
}

/* Was the entry evicted lately? The policy remembers as many as the main queue may have. It is forgotten now. */
static bool ghost_take(gm__cache_policy *policy, uint64_t hash) {
  if (!policy->ghosts.count) return false;
  const size_t known = policy->queues[GM__CACHE_SMALL].count + policy->queues[GM__CACHE_MAIN].count;
  gm__cache_ghost *set = ghost_set(policy, hash);
  for (size_t i = 0; i < CACHE_WAYS; i++) {
    if (set[i].mark != ghost_mark(hash)) continue;
    set[i].mark = 0;
    return ghost_age(policy, &set[i]) <= known;
  }
  return false;
}

/* ---- the policy ---- */

void gm__cache_policy_init(gm__cache_policy *policy, gm__cache_kind kind, const gm_services *services) {
  *policy = (gm__cache_policy){.kind = kind};
  gm__places_init(&policy->ghosts, CACHE_WAYS * sizeof(gm__cache_ghost), services);
}

void gm__cache_policy_end(gm__cache_policy *policy) { gm__places_clear(&policy->ghosts); }

void gm__cache_policy_insert(gm__cache_policy *policy, gm__cache_entry *entry) {
  entry->touches = 0;
  const bool known = policy->kind == GM__CACHE_LRU || ghost_take(policy, entry->hash);
  cache_push(policy, entry, known ? GM__CACHE_MAIN : GM__CACHE_SMALL);
}

void gm__cache_policy_resume(gm__cache_policy *policy, gm__cache_entry *entry) {
  cache_push(policy, entry, (gm__cache_place)entry->back);
}

void gm__cache_policy_touch(gm__cache_policy *policy, gm__cache_entry *entry) {
  if (entry->touches < CACHE_TOUCHES) entry->touches++;
  if (policy->kind == GM__CACHE_LRU && entry->place) cache_move(policy, entry, GM__CACHE_MAIN);
}

static bool cache_small_is_full(const gm__cache_policy *policy) {
  const gm__cache_queue *small = &policy->queues[GM__CACHE_SMALL], *main = &policy->queues[GM__CACHE_MAIN];
  if (!small->count || !main->count) return small->count > 0;
  return small->weight > (small->weight + main->weight) / CACHE_SMALL_SHARE;
}

gm__cache_entry *gm__cache_policy_seek(gm__cache_policy *policy, uint32_t *looks) {
  if (policy->kind == GM__CACHE_LRU) return policy->queues[GM__CACHE_MAIN].oldest;
  for (; *looks; --*looks) {
    const bool small = cache_small_is_full(policy);
    gm__cache_entry *entry = policy->queues[small ? GM__CACHE_SMALL : GM__CACHE_MAIN].oldest;
    if (!entry || !entry->touches || policy->spared == GM__CACHE_SPARED) return entry;
    policy->spared++;
    entry->touches = small ? 0 : (uint8_t)(entry->touches - 1);
    cache_move(policy, entry, GM__CACHE_MAIN);
  }
  return NULL;
}

gm__cache_entry *gm__cache_policy_victim(gm__cache_policy *policy) {
  uint32_t looks = UINT32_MAX; /* more than all touches that count */
  return gm__cache_policy_seek(policy, &looks);
}

void gm__cache_policy_evict(gm__cache_policy *policy, gm__cache_entry *entry) {
  policy->evictions++;
  policy->spared = 0;
  if (entry->place == GM__CACHE_SMALL) {
    ghost_grow(policy);
    ghost_add(policy, entry->hash);
  }
  cache_unlink(policy, entry);
  entry->back = GM__CACHE_MAIN;
}

void gm__cache_policy_remove(gm__cache_policy *policy, gm__cache_entry *entry) {
  if (entry->place) cache_unlink(policy, entry);
  entry->back = GM__CACHE_MAIN;
}

void gm__cache_policy_pause(gm__cache_policy *policy, gm__cache_entry *entry) {
  entry->back = entry->place;
  cache_unlink(policy, entry);
}
