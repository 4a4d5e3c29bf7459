/* How far a sweep over the free chunks of a stream cache has come (settle.c). */
#ifndef GM_CORE_ARENA_SWEEP_H
#define GM_CORE_ARENA_SWEEP_H

#include "core/algo/tlsf.h"

typedef struct gm__sweep {
  bool open, missed; /* it is under way; it has left chunks out */
  uint8_t area;      /* GM__AREAS: it is over */
  uint16_t bin;
  uint32_t next;   /* the chunk of that bin that comes next; 0: the first one of this bin or a smaller one */
  uint64_t passed; /* how far the stream was when it began */
} gm__sweep;

#endif
