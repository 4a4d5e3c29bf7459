/* A ring: bounded host memory in equal slots, which a device reads and writes directly. A slot gets memory of the
 * device's stock (stock.h) when it is first needed. A slot that comes back with a point is handed out again after the
 * point has passed. Slots without a point go first, then the one that came back first.
 *
 * All rings of a device together have no more than the stock's bound. One ring takes slots at rest from another that
 * has more than its share. A ring without any slot gets one in any case.
 *
 * Where the system locks no more memory, the ring stays as small as it is. Where it locks none, or the device can use
 * none, the slots are pageable. gm__ring_figures says why.
 *
 * Thread-safe, but for create and destroy. No lock is held while the backend is called. */
#ifndef GM_CORE_STAGING_RING_H
#define GM_CORE_STAGING_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/inner.h"
#include "gm/device.h"
#include "gm/stream.h"

typedef struct gm__ring gm__ring;

/* One of several users of a ring. In the user's memory from gm__ring_join to gm__ring_leave. */
typedef struct gm__ring_user {
  /* Set by the user. Another one waits for a slot, in its own thread. Give one back, as soon as the device is done with
   * it, and no later than `deadline`. False: this user cannot. No lock is held. It must not leave the ring. */
  bool (*help)(struct gm__ring_user *user, uint64_t deadline);
  bool all;               /* set by the user: it may have all slots, because there is no other user */
  uint32_t held, helpers; /* of the ring: slots in its hands; threads in `help` */
  struct gm__ring_user *next;
} gm__ring_user;

/* One slot, of the ring. Its user reads these members, and changes the bytes. */
typedef struct gm__ring_slot {
  unsigned char *host; /* at a page */
  uint64_t bytes;
  bool pinned; /* false: copies from and to it wait */
  gm_point point;
  gm__ring_user *user;           /* who has it; NULL: nobody, or a user without a name */
  struct gm__stock_chunk *chunk; /* whose memory it is */
  struct gm__ring_slot *next;
} gm__ring_slot;

typedef struct gm__ring_info {
  uint32_t most;       /* slots that the ring may have; fewer than asked for where the system refused more */
  uint32_t made;       /* slots that it has */
  uint32_t pinned;     /* of these */
  uint32_t taken;      /* in the hands of users */
  uint64_t bytes;      /* of all that it has */
  uint64_t slot_bytes; /* of one; other rings may have taken all that it had */
  char why[256];       /* why it is or was smaller, or is pageable; "": neither */
} gm__ring_info;

/* A ring of at most `slots` slots of `slot_bytes` each; it has none yet. The device must outlive it.
 * INVALID_ARGUMENT: a number is 0. OUT_OF_HOST_MEMORY. */
GM__INNER gm_status gm__ring_create(gm_device *device, uint32_t slots, uint64_t slot_bytes, gm__ring **out,
                                    gm_error *err);

/* Bytes of a slot of a device's ring (staging.h). The fault sweep puts small ones in their place. */
uint64_t gm__ring_usual_bytes(void);

/* Waits for the points of all slots, and gives the memory back. NULL does nothing. BUSY: a slot is taken. Other answers
 * are those of the wait; then the ring is still there. In a forked child it waits for nothing, and gives back what the
 * child has of it. */
GM__INNER gm_status gm__ring_destroy(gm__ring *ring, gm_error *err);

/* Make slots until the ring has `slots` (at most what it may have), their memory touched by several threads. GM_OK also
 * where the system refused some of them. OUT_OF_HOST_MEMORY: there is not even one. DEVICE_LOST. */
gm_status gm__ring_grow(gm__ring *ring, uint32_t slots, gm_error *err);

/* A slot for the caller: one that has come to rest, else a new one, else the first that comes to rest. TIMEOUT: none
 * did in time (0: without a wait; GM__NEVER). Other errors are those of gm__ring_grow, and of the wait for a point. */
GM__INNER gm_status gm__ring_take(gm__ring *ring, uint64_t timeout_ns, gm__ring_slot **out, gm_error *err);

/* A user joins. Its first slot is any; for a further one, it leaves a slot for each user without any, and one at
 * least. Otherwise the others help it. So nobody waits for a user that sleeps with slots in its hands. */
void gm__ring_join(gm__ring *ring, gm__ring_user *user);

/* Waits until nobody is in its `help`. REQUIRES: it has no slot. */
void gm__ring_leave(gm__ring *ring, gm__ring_user *user);

/* Asks each other user that has slots to give one back. False: none of them can. */
bool gm__ring_help(gm__ring *ring, const gm__ring_user *user, uint64_t deadline);

/* Does what gm__ring_take does, for a user that has joined. TIMEOUT also: the slots at rest are left for others.
 * TIMEOUT at once: there is no further memory, and all slots are in the user's hands. */
gm_status gm__ring_take_as(gm__ring *ring, gm__ring_user *user, uint64_t timeout_ns, gm__ring_slot **out,
                           gm_error *err);

/* Give a slot back. It is used until `point` has passed; the ring has the point then. NULL: it is at rest. */
GM__INNER void gm__ring_give(gm__ring *ring, gm__ring_slot *slot, const gm_point *point);

/* The number of a slot: below `asked` of gm__ring_create. */
uint32_t gm__ring_number(const gm__ring *ring, const gm__ring_slot *slot);

GM__INNER void gm__ring_figures(gm__ring *ring, gm__ring_info *out);

#endif
