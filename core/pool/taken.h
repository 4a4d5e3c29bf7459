/* A piece of a pool's memory on its way to a caller: a driver allocation of its own, or a span of an arena. */
#ifndef GM_CORE_POOL_TAKEN_H
#define GM_CORE_POOL_TAKEN_H

#include "core/pool/node.h"
#include "core/pool/segment.h"

typedef struct gm__taken {
  gm__node *node;   /* NULL: a span */
  gm__arena *arena; /* of the span */
  uint32_t span;    /* 0, and no node: nothing */
  bool done;        /* handed out already */
  bool same_stream; /* pooled, and freed last on the request's stream */
  bool zeroed;      /* all of it is 0, and nobody has had it */
  bool from_all;    /* pooled, and not in what the request's own stream keeps (cache.h) */
  gm_memory memory; /* where it lies, from `offset` on */
  uint64_t offset, address, bytes;
} gm__taken;

#endif
