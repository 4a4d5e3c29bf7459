/* Which entry of a cache goes next. An entry is a member of what the caller keeps; the policy links entries, and owns
 * none. Every call is O(1) over a sequence of calls. The caller synchronises.
 *
 * GM__CACHE_S3FIFO is S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi: "FIFO queues are all you need for cache eviction", 2023).
 * New entries pass a small queue. Those that are touched there, or come back soon after they went, join the main queue.
 * So entries that are used once push nothing else out. Entries that were touched move on, but GM__CACHE_SPARED of them
 * at most: then the next one goes, so that no call pays for all. GM__CACHE_LRU lets go what was touched longest ago. */
#ifndef GM_CORE_ALGO_CACHE_POLICY_H
#define GM_CORE_ALGO_CACHE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/inner.h"
#include "core/base/places.h"

typedef enum gm__cache_kind { GM__CACHE_S3FIFO = 0, GM__CACHE_LRU = 1 } gm__cache_kind;

typedef enum gm__cache_place {
  GM__CACHE_NOWHERE = 0,
  GM__CACHE_SMALL,
  GM__CACHE_MAIN,
  GM__CACHE_PLACES
} gm__cache_place;

enum { GM__CACHE_SPARED = 4096 };

typedef struct gm__cache_entry {
  uint8_t place;                         /* gm__cache_place; 0: not in the policy */
  uint8_t touches;                       /* since it came into its queue, at most 3 */
  uint8_t back;                          /* gm__cache_place: where gm__cache_policy_resume puts it */
  struct gm__cache_entry *newer, *older; /* in its queue */
  uint64_t hash;                         /* of its key: by this the policy knows an entry that comes back */
  uint64_t weight;                       /* its share of the cache, such as its bytes; 1 for all: entries count */
} gm__cache_entry;

typedef struct gm__cache_queue {
  gm__cache_entry *newest, *oldest;
  size_t count;
  uint64_t weight;
} gm__cache_queue;

/* The trace of an entry that went. */
typedef struct gm__cache_ghost {
  uint32_t mark; /* of its hash; 0: none */
  uint32_t when; /* the number of its eviction */
} gm__cache_ghost;

typedef struct gm__cache_policy {
  gm__cache_kind kind;
  gm__cache_queue queues[GM__CACHE_PLACES]; /* by place */
  gm__places ghosts;                        /* each a set of some */
  uint32_t evictions;                       /* wraps */
  uint32_t spared;                          /* touched entries that have moved on since the last one went */
} gm__cache_policy;

/* An empty policy. It has no memory yet. */
GM__INNER void gm__cache_policy_init(gm__cache_policy *policy, gm__cache_kind kind, const gm_services *services);

/* Frees what the policy remembers. Entries may still be linked, and must not be used again. */
GM__INNER void gm__cache_policy_end(gm__cache_policy *policy);

/* Takes a new entry, whose hash and weight are set. REQUIRES: it is in no policy. */
GM__INNER void gm__cache_policy_insert(gm__cache_policy *policy, gm__cache_entry *entry);

/* Takes back an entry that gm__cache_policy_remove or gm__cache_policy_pause put aside while it was in use, or one that
 * gm__cache_policy_evict let go, and that stays after all. */
GM__INNER void gm__cache_policy_resume(gm__cache_policy *policy, gm__cache_entry *entry);

/* The entry was used. It need not be in the policy. */
GM__INNER void gm__cache_policy_touch(gm__cache_policy *policy, gm__cache_entry *entry);

/* Names the entry that should go next, and leaves it where it is. NULL: the policy is empty. */
GM__INNER gm__cache_entry *gm__cache_policy_victim(gm__cache_policy *policy);

/* Does gm__cache_policy_victim with so many looks at the most; those that are left come back. NULL: the policy is
 * empty, or no look is left, and the next call goes on. */
GM__INNER gm__cache_entry *gm__cache_policy_seek(gm__cache_policy *policy, uint32_t *looks);

/* Unlinks an entry that went for want of room, and remembers it. The memory for that grows to two ghosts for each
 * entry, by one set at a time. Where there is no host memory the policy forgets early, and is right all the same. */
GM__INNER void gm__cache_policy_evict(gm__cache_policy *policy, gm__cache_entry *entry);

/* Unlinks an entry, and forgets it: it counts as known if it comes back. An entry that is in no policy stays so. */
GM__INNER void gm__cache_policy_remove(gm__cache_policy *policy, gm__cache_entry *entry);

/* Puts an entry aside before its turn. It comes back into the same queue. REQUIRES: it is in the policy. */
GM__INNER void gm__cache_policy_pause(gm__cache_policy *policy, gm__cache_entry *entry);

#endif
