/* The address map of a pool: from an address to the allocation that contains it. A look-up takes at most as many steps
 * as an address has bits. REQUIRES: provider lock, for all of it. */
#ifndef GM_CORE_PROVIDER_ADDRESS_MAP_H
#define GM_CORE_PROVIDER_ADDRESS_MAP_H

#include "core/algo/anchor.h"
#include "core/algo/pair_set.h"
#include "core/base/map.h"
#include "core/provider/allocation.h"

typedef struct gm__address_map {
  gm__pair_set order; /* from an address to its allocation, sorted */
  gm__map anchors;    /* from the anchor of its bytes (anchor.h) to the allocation */
  gm__anchor_levels levels;
} gm__address_map;

void gm__address_map_init(gm__address_map *map, const gm_services *services);
void gm__address_map_clear(gm__address_map *map);

/* OUT_OF_HOST_MEMORY: nothing has changed. DRIVER: the allocation overlaps another one. */
gm_status gm__address_map_insert(gm__address_map *map, gm__allocation *allocation);
void gm__address_map_remove(gm__address_map *map, const gm__allocation *allocation);

/* The allocation whose bytes contain `address`; NULL: there is none. */
gm__allocation *gm__address_map_find(const gm__address_map *map, uint64_t address);

#endif
