/* Addresses of a pool's memory, for look-ups by pointer. Steps: at most the logarithm of how many there are. Externally
 * synchronised (the pool's lock). */
#ifndef GM_CORE_POOL_POINTER_H
#define GM_CORE_POOL_POINTER_H

#include "core/algo/anchor.h"
#include "core/algo/pair_set.h"
#include "core/base/map.h"
#include "core/pool/node.h"

typedef struct gm__pointers {
  gm__pair_set order; /* (address, node) */
  gm__map anchors;    /* of their bytes (anchor.h), to the node */
  gm__anchor_levels levels;
} gm__pointers;

void gm__pointers_init(gm__pointers *pointers, const gm_services *services);
void gm__pointers_clear(gm__pointers *pointers);

/* OUT_OF_HOST_MEMORY: unchanged. A driver that hands out an address that overlaps one of its own is told apart by
 * GM_ERR_DRIVER. */
gm_status gm__pointers_insert(gm__pointers *pointers, gm__node *node);
void gm__pointers_remove(gm__pointers *pointers, const gm__node *node);

/* The node whose bytes contain `address`; NULL if none does. */
gm__node *gm__pointers_find(const gm__pointers *pointers, uint64_t address);

#endif
