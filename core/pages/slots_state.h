/* The structs of a set of slots. An entry is what a key names, and a slot is a place. An entry without a slot is about
 * to be loaded, or its load failed. */
#ifndef GM_CORE_PAGES_SLOTS_STATE_H
#define GM_CORE_PAGES_SLOTS_STATE_H

#include "core/algo/cache_policy.h"
#include "core/base/error.h"
#include "core/base/key_map.h"
#include "core/base/thread.h"
#include "core/context/object.h"
#include "core/pages/page_pieces.h"
#include "gm/slots.h"

enum { GM__NO_SLOT = -1 };

typedef enum gm__slots_phase {
  GM__SLOTS_LOADING,
  GM__SLOTS_THERE,
  GM__SLOTS_FAILED, /* the loader said so */
  GM__SLOTS_REFUSED /* there was no slot: those that wait try themselves */
} gm__slots_phase;

typedef struct gm__slots_entry {
  gm__key_entry head;
  gm__cache_entry turn;
  gm__slots_phase phase;
  bool known; /* the map has it */
  int32_t slot;
  uint32_t leases;
  const void *loader;                /* the thread that loads it */
  struct gm__slots_entry *next_load; /* among those that are loaded */
  gm_status status;                  /* FAILED */
  gm_error *why;                     /* FAILED; NULL: no host memory for it */
  unsigned char key[];
} gm__slots_entry;

/* A slot that is claimed belongs to a thread that looks for one. It is neither free nor in the policy. */
typedef struct gm__slot_room {
  gm__slots_entry *entry; /* NULL: none */
  bool claimed;
  int32_t next; /* of the free ones; of those that a thread put aside */
  gm_point ready;
  gm_point points[GM_SLOT_POINTS_MOST];
  uint32_t count, away; /* points in `points`; those that a thread asks about, without the lock */
} gm__slot_room;

typedef struct gm__slot_lease {
  gm__slots_entry *entry; /* NULL: not open */
  uint32_t generation, next;
} gm__slot_lease;

struct gm_slots {
  gm__object head;
  gm_context *ctx;
  gm_pool *pool;
  gm_device *device;
  gm_slots_load load;
  void *user;
  gm_block block;
  uint64_t slot_bytes, stride;
  uint32_t count;
  gm__mutex lock;
  gm__cond changed; /* a load ended, or a claim */
  gm__slot_room *slots;
  int32_t free_first;
  uint32_t claims;
  gm__key_map map;
  gm__cache_policy policy;
  gm__slots_entry *loads;
  gm__page_pieces lease_table;
  uint32_t leases_made, lease_unused, lease_turn; /* lease_unused: the first one plus one */
  gm_slots_stats stats;
};

static inline const gm_services *gm__slots_services(const gm_slots *set) { return gm__context_services(set->ctx); }

/* OK: the set lives, in this process. */
gm_status gm__slots_check(const gm_slots *set, const char *op, gm_error *err);

#endif
