/* The room of a device: how much of its own memory may still be taken, and by whom. It asks for the figures at most
 * once in 10 ms, and counts exactly what gm took and gave back since. All rooms of one physical card share its record.
 * Thread-safe. */
#ifndef GM_CORE_ROOM_ROOM_H
#define GM_CORE_ROOM_ROOM_H

#include "core/base/thread.h"
#include "core/room/card_turn.h"
#include "core/room/claim.h"
#include "gm/memory_info.h"

/* The memory that a question is about. */
typedef enum gm__room_question {
  GM__ROOM_OWN,    /* the device's own memory; what other processes promise is of the last look */
  GM__ROOM_LOOK,   /* the same, and a look at what other processes promise */
  GM__ROOM_MANAGED /* managed allocations */
} gm__room_question;

/* Reads the figures of the owner's device now. */
typedef gm_status (*gm__room_read_fn)(void *owner, gm__room_question question, gm_memory_info *out);

typedef struct gm__room {
  gm_context *ctx;
  gm__card *card;        /* the physical card: what all contexts hold and promise there, with its grow lock */
  bool adopted;          /* the engine's own device: its defaults bound nothing */
  const char *name;      /* the device's, for messages; borrowed */
  gm__room_read_fn read; /* called with `owner` */
  void *owner;
  gm__mutex lock; /* of all below; a leaf */
  struct gm__room_bounds {
    uint64_t at_ns;          /* 0: never read */
    double fraction;         /* of the total; 1: no bound */
    bool auto_free;          /* min_free_bytes follows from the total */
    uint64_t min_free_bytes; /* GM_NO_LIMIT: the free figure is no bound */
    bool alone;              /* promises of other processes are no bound */
  } bounds;                  /* of the configuration */
  struct gm__room_reading {
    uint64_t at_ns;                               /* 0: never read */
    bool failed;                                  /* there was no host memory to read them */
    uint64_t total_bytes, free_bytes, held_bytes; /* as gm_memory_info has them */
    uint64_t used_bytes;                          /* what gm held then */
  } reading;
} gm__room;

enum { GM__HOLDER_TEXT = 96 };

/* Prepares a zeroed room: its owner sets what stands above the lock. Its end needs no call but the lock's. */
void gm__room_init(gm__room *room);
void gm__room_clear(gm__room *room);

/* Returns the bytes that may be taken for the claim now, if nothing is given back first; its cap is no part of it. It
 * is min(memory_fraction * total - used by us, free - min_free_bytes), less what is promised to others. UINT64_MAX
 * where no limit and no promise holds, and where nothing is known. 0 without host memory. The figures are at most 10 ms
 * old, or with `read_now` read for this call. Since then gm counts exactly what it took and gave back. */
uint64_t gm__room_left(const gm__claim *claim, bool read_now);

/* Answers as gm__room_left does with `read_now`, for managed allocations, which promises do not bound. */
uint64_t gm__room_left_managed(const gm__claim *claim);

/* Answers as gm__room_left does for somebody whom no limit binds: what the device has. */
uint64_t gm__room_left_physical(gm__room *room, bool read_now);

/* For a new claim: reads the configuration anew. */
void gm__room_renew(gm__room *room);

/* True if the figures could not be read the last time, because there was no host memory. */
bool gm__room_is_unread(gm__room *room);

/* Returns the aim of a turn of the card that takes bytes. The engine of an adopted device has planned its memory: there
 * promises of other processes hold only if somebody has set reserve.share. */
gm__card_aim gm__room_aim(gm__room *room);

/* Returns the bytes that reservations hold for others than this claim. */
uint64_t gm__room_promised(const gm__claim *claim);

/* Returns how many of those bytes other processes hold. */
uint64_t gm__room_promised_elsewhere(const gm__claim *claim);

/* Names the process that holds most of it: ", 1024 of them process 4711 (name)". "" if no other process holds any.
 * Returns `out`, of GM__HOLDER_TEXT bytes. */
const char *gm__room_holder_text(const gm__claim *claim, char *out);

/* Says how those promises can end: this process can cancel only its own. */
const char *gm__room_promise_advice(const gm__claim *claim);

#endif
