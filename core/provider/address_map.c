#include "core/provider/address_map.h"

/* Invariant: `order` and `anchors` hold every allocation with memory behind it, live or pooled. No two of them overlap.
 * Chunks are found through their segment. The map changes only when memory is taken from the backend or goes back to
 * it. So a request that the pool serves pays nothing for it. */

void gm__address_map_init(gm__address_map *map, const gm_services *services) {
  *map = (gm__address_map){.order = {.services = services}};
  gm__map_init(&map->anchors, services);
}

void gm__address_map_clear(gm__address_map *map) {
  gm__map_clear(&map->anchors);
  gm__pair_set_close(&map->order);
  map->levels = (gm__anchor_levels){0};
}

static uint64_t address_anchor(const gm__allocation *allocation) {
  return gm__anchor(allocation->address, allocation->address + allocation->bytes - 1);
}

/* Only a neighbour can overlap the new allocation, because those in the map do not overlap each other. */
static bool address_overlaps(const gm__address_map *map, const gm__allocation *allocation) {
  gm__pair below = {0}, above = {0};
  gm__pair_set_around(&map->order, allocation->address, 0, &below, &above);
  const gm__allocation *low = (const gm__allocation *)(uintptr_t)below.value;
  return (low && allocation->address - low->address < low->bytes) ||
         (above.value && above.key - allocation->address < allocation->bytes);
}

gm_status gm__address_map_insert(gm__address_map *map, gm__allocation *allocation) {
  if (allocation->bytes - 1 > UINT64_MAX - allocation->address || address_overlaps(map, allocation))
    return GM_ERR_DRIVER;
  if (gm__map_insert(&map->anchors, address_anchor(allocation), (uintptr_t)allocation))
    return GM_ERR_OUT_OF_HOST_MEMORY;
  if (!gm__pair_set_put(&map->order, allocation->address, (uintptr_t)allocation)) {
    gm__map_remove(&map->anchors, address_anchor(allocation), NULL);
    return GM_ERR_OUT_OF_HOST_MEMORY;
  }
  gm__anchor_levels_add(&map->levels, address_anchor(allocation));
  return GM_OK;
}

void gm__address_map_remove(gm__address_map *map, const gm__allocation *allocation) {
  if (!gm__pair_set_take(&map->order, allocation->address, (uintptr_t)allocation))
    return; /* it overlapped another allocation, and was never entered */
  gm__map_remove(&map->anchors, address_anchor(allocation), NULL);
  gm__anchor_levels_remove(&map->levels, address_anchor(allocation));
}

gm__allocation *gm__address_map_find(const gm__address_map *map, uint64_t address) {
  for (uint64_t left = map->levels.used; left; left &= left - 1) {
    uint64_t found;
    if (!gm__map_find(&map->anchors, gm__anchor_at(address, __builtin_ctzll(left)), &found)) continue;
    gm__allocation *allocation = (gm__allocation *)(uintptr_t)found;
    if (address - allocation->address < allocation->bytes) return allocation;
  }
  return NULL;
}
