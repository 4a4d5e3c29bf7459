/* Driver events as points. Slots live as long as their device. Each has an event of any API and the number of its use.
 * So gm knows that a point has passed when its event serves another point. These functions call no driver: events come
 * in and go out as pointers. Thread-safe but for init and clear. */
#ifndef GM_BACKENDS_SHARED_EVENT_SLOTS_H
#define GM_BACKENDS_SHARED_EVENT_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/thread.h"
#include "gm/services.h"

typedef struct gm__event_slot gm__event_slot;
struct gm__event_slot {
  void *event; /* NULL: none yet, or an engine's that was given back */
  bool lent;   /* the engine's: never destroyed */
  _Atomic uint64_t use;
  gm__event_slot *origin; /* whose event it is: of a copy; NULL: its own */
  uint32_t holds;         /* points that still need the event: its own one, and copies. Under the lock of the slots */
  gm__event_slot *next;   /* of all */
  gm__event_slot *next_spare; /* of those that no point uses */
};

typedef struct gm__event_slots {
  const gm_services *services;
  gm__mutex lock;        /* of what follows */
  gm__event_slot *all;   /* read it only while nothing else runs */
  gm__event_slot *spare; /* unused, with an event */
  gm__event_slot *blank; /* unused, without */
  uint32_t spare_count;
} gm__event_slots;

void gm__event_slots_init(gm__event_slots *slots, const gm_services *services);

/* Give back all host memory. The caller has destroyed or abandoned the events. */
void gm__event_slots_clear(gm__event_slots *slots);

/* Take an unused slot. With `with_event`, a slot with a cached event comes first. NULL: no host memory. */
gm__event_slot *gm__event_slots_take(gm__event_slots *slots, bool with_event);

/* The slot is unused again. Returns a surplus event, which the caller destroys; NULL: there is none. */
void *gm__event_slots_put(gm__event_slots *slots, gm__event_slot *slot);

/* The slot of a point {handle, use} that nobody has given back. NULL: somebody has, or the handle is 0. */
gm__event_slot *gm__event_slot_find(uint64_t handle, uint64_t use);

/* A slot for one more point at the event of the point {handle of `slot`, use}. The caller puts it by itself. On NULL,
 * *out_passed says whether the point was given back; otherwise there is no host memory. */
gm__event_slot *gm__event_slots_copy(gm__event_slots *slots, gm__event_slot *slot, uint64_t use, bool *out_passed);

/* Give a point back. If several callers do, one gets true; that one puts the slot. */
bool gm__event_slot_retire(gm__event_slot *slot, uint64_t use);

#endif
