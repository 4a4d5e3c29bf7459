#include "core/store/victims.h"

#include "core/base/alloc.h"

enum { VICTIMS_GHOSTS_LEAST = 64 };

void gm__victims_init(gm__victims *victims, const gm_services *services) {
  victims->services = services;
  gm__cache_policy_init(&victims->policy, GM__CACHE_S3FIFO, NULL, 0);
}

void gm__victims_drop(gm__victims *victims) {
  const gm__cache_policy *policy = &victims->policy;
  gm__release(victims->services, policy->ghosts, policy->ghost_places * sizeof *policy->ghosts);
  gm__cache_policy_init(&victims->policy, GM__CACHE_S3FIFO, NULL, 0);
}

/* Two ghosts for each entry, as far as there is memory. Without it the order forgets early. */
static void victims_grow(gm__victims *victims) {
  const gm__cache_policy *policy = &victims->policy;
  const size_t entries = policy->queues[GM__CACHE_SMALL].count + policy->queues[GM__CACHE_MAIN].count;
  gm__cache_ghost *old = policy->ghosts;
  const size_t old_places = policy->ghost_places;
  size_t places = old_places ? old_places : VICTIMS_GHOSTS_LEAST;
  while (places / 2 < entries) places *= 2;
  if (places == old_places) return;
  gm__cache_ghost *ghosts = gm__alloc_array(victims->services, places, sizeof *ghosts);
  if (!ghosts) return;
  gm__cache_policy_ghosts(&victims->policy, ghosts, places);
  gm__release(victims->services, old, old_places * sizeof *old);
}

void gm__victims_insert(gm__victims *victims, gm__victim *entry, uint64_t hash, uint64_t weight) {
  const bool there = entry->turn.place;
  if (there) gm__cache_policy_remove(&victims->policy, &entry->turn);
  entry->turn.hash = hash;
  entry->turn.weight = weight;
  if (there) {
    gm__cache_policy_resume(&victims->policy, &entry->turn);
  } else {
    gm__cache_policy_insert(&victims->policy, &entry->turn);
  }
}

void gm__victims_touch(gm__victims *victims, gm__victim *entry) {
  gm__cache_policy_touch(&victims->policy, &entry->turn);
}

void gm__victims_remove(gm__victims *victims, gm__victim *entry) {
  gm__cache_policy_remove(&victims->policy, &entry->turn);
}

/* An entry that may not leave is out of the queues until the search ends. So a search looks at each entry once. */
gm__victim *gm__victims_leave(gm__victims *victims, bool (*may)(void *user, gm__victim *entry), void *user) {
  gm__victim *entry, *put_off = NULL;
  while ((entry = (gm__victim *)(void *)gm__cache_policy_victim(&victims->policy)) && !may(user, entry)) {
    gm__cache_policy_remove(&victims->policy, &entry->turn);
    entry->put_off = put_off;
    put_off = entry;
  }
  for (gm__victim *other = put_off; other; other = other->put_off) {
    gm__cache_policy_resume(&victims->policy, &other->turn);
  }
  if (!entry) return NULL;
  victims_grow(victims);
  gm__cache_policy_evict(&victims->policy, &entry->turn);
  return entry;
}

void gm__victims_return(gm__victims *victims, gm__victim *entry) {
  gm__cache_policy_resume(&victims->policy, &entry->turn);
}
