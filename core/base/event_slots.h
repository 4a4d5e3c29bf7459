/* Driver events as points: slots that live as long as their device, each with an event of whatever API and the number
 * of its use. So a point that was given back, and whose event serves another one by now, is known to have passed. Calls
 * no driver: events come in and go out as pointers. Thread-safe but for init and clear. */
#ifndef GM_CORE_BASE_EVENT_SLOTS_H
#define GM_CORE_BASE_EVENT_SLOTS_H

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
  uint32_t holds;         /* points that still need the event: its own one, and copies. With the lock of the slots */
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

/* Gives back all host memory; the events have been destroyed, or abandoned, by the caller. */
void gm__event_slots_clear(gm__event_slots *slots);

/* A slot that no point uses, with a cached event where `with_event` asks for one and there is one. NULL: no host
 * memory.
 */
gm__event_slot *gm__event_slots_take(gm__event_slots *slots, bool with_event);

/* The slot is unused again. Returns the event that is one too many, for the caller to destroy; NULL: none. */
void *gm__event_slots_put(gm__event_slots *slots, gm__event_slot *slot);

/* The slot of a point {handle, use} that has not been given back; NULL: it was, or the handle is 0. */
gm__event_slot *gm__event_slot_find(uint64_t handle, uint64_t use);

/* The slot of one more point for the event of the point {handle of `slot`, use}: put by itself. NULL, and *out_passed
 * says whether the point was given back, or there is no host memory. */
gm__event_slot *gm__event_slots_copy(gm__event_slots *slots, gm__event_slot *slot, uint64_t use, bool *out_passed);

/* Of all that give back the same point one gets true, and then puts the slot. */
bool gm__event_slot_retire(gm__event_slot *slot, uint64_t use);

#endif
