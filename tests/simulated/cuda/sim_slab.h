/* Handles of one kind, in fixed places. The one given back last is handed out first, so that stale handles meet new
 * objects as they do with a real driver. Wants the lock. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_SLAB_H
#define GM_TESTS_SIMULATED_CUDA_SIM_SLAB_H

#include <stdbool.h>
#include <stddef.h>

enum { SIM_SLAB_CHUNKS = 256, SIM_SLAB_ITEMS = 64 };

typedef struct sim_slab {
  size_t item_bytes;
  unsigned char *chunks[SIM_SLAB_CHUNKS]; /* each with SIM_SLAB_ITEMS items behind their marks */
  int last[SIM_SLAB_CHUNKS * SIM_SLAB_ITEMS];
  int last_count, chunk_count, live_count;
} sim_slab;

/* A zeroed item, NULL when there are too many. */
void *sim_slab_take(sim_slab *slab);
void sim_slab_give(sim_slab *slab, void *item);
bool sim_slab_is_live(const sim_slab *slab, const void *item);

/* The live item of index `*at` or after; moves `*at` behind it. NULL: no more. */
void *sim_slab_next(const sim_slab *slab, int *at);

#endif
