/* The need of a request that was refused: a dry run of the way that gm__heap_alloc goes. Nothing is taken, moved or
 * given back, and no stream gets work. */
#ifndef GM_CORE_HEAP_NEED_H
#define GM_CORE_HEAP_NEED_H

#include "core/arena/survey.h"
#include "core/heap/heap.h"

/* Bytes that are missing in a bound, if every other bound left enough. 0: that bound leaves enough. */
typedef struct gm__lacks {
  uint64_t cap;    /* the pool's cap */
  uint64_t limits; /* memory_fraction, min_free_bytes and promises */
  uint64_t device; /* the device itself */
} gm__lacks;

typedef struct gm__need {
  bool serves;       /* pooled memory serves by now */
  uint64_t idle;     /* what a trim gives back */
  gm__lacks lacks;   /* for new memory, after a trim */
  bool in_one;       /* the driver gives so much at a time */
  bool counted;      /* the limits leave something; else they may lack more than `lacks.limits` */
  uint64_t promised; /* what others' reservations hold, within `lacks.limits` */
  bool serves_later; /* pooled memory or a trim will do once streams have done their work */
  gm__late late;     /* these streams */
  bool streams;      /* work of streams may keep memory that is freed */
  uint64_t part;     /* bytes of the largest equal pieces for which there is room; 0: there are none */
  bool part_is_new;  /* they need all that the device's figures leave, and a driver may round */
  bool part_waits;   /* some of them need a wait for streams */
  uint64_t most;     /* the largest request that is served; 0: none */
  bool most_is_sure;
} gm__need;

/* `want` is of the refused request, with its stream if that is open. `extra`: bytes that a guard adds to each block.
 * REQUIRES: no lock. */
void gm__need_read(gm__heap *heap, const gm__want *want, uint64_t extra, gm__need *out);

#endif
