#include "tests/simulated/cuda/sim_slab.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static size_t slab_stride(const sim_slab *slab) { return slab->item_bytes + 16; }

static unsigned char *slab_place(const sim_slab *slab, int index) {
  return slab->chunks[index / SIM_SLAB_ITEMS] + (size_t)(index % SIM_SLAB_ITEMS) * slab_stride(slab);
}

static bool slab_grow(sim_slab *slab) {
  if (slab->chunk_count == SIM_SLAB_CHUNKS) return false;
  unsigned char *chunk = calloc(SIM_SLAB_ITEMS, slab_stride(slab));
  if (!chunk) return false;
  int first = slab->chunk_count * SIM_SLAB_ITEMS;
  slab->chunks[slab->chunk_count++] = chunk;
  for (int i = SIM_SLAB_ITEMS; i-- > 0;) slab->last[slab->last_count++] = first + i;
  return true;
}

/* Before each item: 8 bytes that say whether it is live, and its index. */
void *sim_slab_take(sim_slab *slab) {
  if (!slab->last_count && !slab_grow(slab)) return NULL;
  int index = slab->last[--slab->last_count];
  unsigned char *place = slab_place(slab, index);
  uint64_t mark = (uint64_t)index + 1;
  memcpy(place, &mark, sizeof mark);
  memset(place + 16, 0, slab->item_bytes);
  slab->live_count++;
  return place + 16;
}

void sim_slab_give(sim_slab *slab, void *item) {
  uint64_t mark = 0;
  unsigned char *place = (unsigned char *)item - 16;
  memcpy(&mark, place, sizeof mark);
  slab->last[slab->last_count++] = (int)mark - 1;
  memset(place, 0, sizeof mark);
  slab->live_count--;
}

bool sim_slab_is_live(const sim_slab *slab, const void *item) {
  uintptr_t at = (uintptr_t)item;
  for (int i = 0; i < slab->chunk_count; i++) {
    uintptr_t first = (uintptr_t)slab->chunks[i];
    if (at < first + 16 || at >= first + SIM_SLAB_ITEMS * slab_stride(slab)) continue;
    if ((at - first - 16) % slab_stride(slab)) return false;
    uint64_t mark = 0;
    memcpy(&mark, (const unsigned char *)item - 16, sizeof mark);
    return mark != 0;
  }
  return false;
}

void *sim_slab_next(const sim_slab *slab, int *at) {
  while (*at < slab->chunk_count * SIM_SLAB_ITEMS) {
    unsigned char *item = slab_place(slab, (*at)++) + 16;
    if (sim_slab_is_live(slab, item)) return item;
  }
  return NULL;
}
