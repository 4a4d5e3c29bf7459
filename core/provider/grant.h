/* A grant: memory on its way from a pool to a caller. It is an allocation, or a chunk of an arena. */
#ifndef GM_CORE_PROVIDER_GRANT_H
#define GM_CORE_PROVIDER_GRANT_H

#include "core/provider/allocation.h"

typedef struct gm__grant {
  gm__allocation *allocation; /* NULL: it is a chunk */
  struct gm__arena *arena;    /* of the chunk */
  uint32_t chunk;             /* 0, without an allocation: the grant is empty */
  bool done;                  /* handed out already */
  bool same_stream;           /* pooled, and the request's stream freed it last */
  bool zeroed;                /* all its bytes are 0, and nobody has had it */
  bool mapped;                /* all of its memory has an address of the host for as long as it lives */
  bool from_all;              /* pooled, but not for the request's own stream (core/heap/keep.h) */
  gm_memory memory;           /* the memory that it lies in, from `offset` on */
  uint64_t offset, address, bytes;
} gm__grant;

#endif
