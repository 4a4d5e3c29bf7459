#include "core/store/victims.h"

void gm__victims_init(gm__victims *victims, const gm_services *services) {
  gm__cache_policy_init(&victims->policy, GM__CACHE_S3FIFO, services);
}

void gm__victims_drop(gm__victims *victims) { gm__cache_policy_end(&victims->policy); }

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

/* An entry that stays is out of the queues until the search ends. So a search looks at each entry once. */
gm__victim *gm__victims_leave(gm__victims *victims, gm__victim_answer (*may)(void *user, gm__victim *entry),
                              void *user) {
  gm__victim *entry;
  gm__cache_entry *put_off = NULL;
  while ((entry = (gm__victim *)(void *)gm__cache_policy_victim(&victims->policy))) {
    const gm__victim_answer answer = may(user, entry);
    if (answer == GM__VICTIM_GOES) break;
    if (answer == GM__VICTIM_IS_OUT) continue;
    gm__cache_policy_remove(&victims->policy, &entry->turn);
    entry->turn.older = put_off; /* in no queue now, it has links to spare */
    put_off = &entry->turn;
  }
  for (gm__cache_entry *other = put_off, *next; other; other = next) {
    next = other->older;
    gm__cache_policy_resume(&victims->policy, other);
  }
  if (entry) gm__cache_policy_evict(&victims->policy, &entry->turn);
  return entry;
}

void gm__victims_return(gm__victims *victims, gm__victim *entry) {
  gm__cache_policy_resume(&victims->policy, &entry->turn);
}
