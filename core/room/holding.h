/* Promises of a card's bytes: made, bound to a pool, taken by that pool, ended. Thread-safe. */
#ifndef GM_CORE_ROOM_HOLDING_H
#define GM_CORE_ROOM_HOLDING_H

#include "core/room/room.h"

/* Bytes of a card that are held for somebody. Zero-initialised. It must not move while it is kept. */
typedef struct gm__holding {
  uint64_t bytes;
  _Atomic uint64_t taken; /* of them: the pool has them */
  uint64_t untouched;     /* of those: still promised, as their memory may come at its first use. Under the grow lock */
  struct gm__holding *next; /* bound to one pool, oldest first: under the card's grow lock */
} gm__holding;

static inline uint64_t gm__holding_left(const gm__holding *promise) {
  return promise->bytes - atomic_load_explicit(&promise->taken, memory_order_relaxed);
}

/* Promises `bytes` if the card has so much left: free bytes, less what must stay free, less all other promises. The
 * limits are those of `claim`. OVER_LIMIT: there is not enough; *lack: so many bytes more would do, UINT64_MAX where
 * that is not known. NOT_FOUND: the card tells no figure. Where reserve.share is "require", also failures of
 * gm__card_turn_begin. REQUIRES: no lock. */
gm_status gm__holding_make(const gm__claim *claim, uint64_t bytes, gm__holding *promise, uint64_t *lack, const char *op,
                           gm_error *err);

/* Gives what is left of a promise to a claim on the same card. */
void gm__holding_bind(gm__holding *promise, gm__claim *claim);

/* Ends a promise. Its rest is for everybody. `claim`: that it is bound to, or NULL. */
void gm__holding_end(gm__room *room, gm__holding *promise, gm__claim *claim);

/* The owner of a claim is about to take `bytes` of the device. The part that is promised to it is promised no longer.
 * Returns that part, for gm__holding_drawn. REQUIRES: the card's grow lock. */
uint64_t gm__holding_draw(gm__claim *claim, uint64_t bytes);

/* How the pool fared with what it drew. */
typedef enum gm__drawn {
  GM__DRAWN_REFUSED,  /* it got no memory: the bytes are promised to it as before */
  GM__DRAWN_TAKEN,    /* the card has so much less */
  GM__DRAWN_UNTOUCHED /* the card has less once the memory is used: until then others may not have the bytes */
} gm__drawn;

/* REQUIRES: the card's grow lock. */
void gm__holding_drawn(gm__claim *claim, uint64_t bytes, gm__drawn fared);

/* So many bytes that the pool took untouched are there now, and leave the promise. REQUIRES: no lock but PAGES. */
void gm__holding_touched(gm__claim *claim, uint64_t bytes);

/* So many bytes that the pool took untouched could not be had: they are promised to it as before. REQUIRES: no lock but
 * PAGES. */
void gm__holding_untake(gm__claim *claim, uint64_t bytes);

/* So many bytes that the pool took of its promises went back before anybody used them. They are promised to it again,
 * as far as they are free still. REQUIRES: no lock but PAGES. */
void gm__holding_retake(gm__claim *claim, uint64_t bytes);

#endif
