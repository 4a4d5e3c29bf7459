/* Memory that the system maps for gm, in whole pages. It is zero at first, and costs a page when somebody writes there.
 * It grows without a copy. Thread-safe. */
#ifndef GM_CORE_BASE_MAPPING_H
#define GM_CORE_BASE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL: the system refuses. gm__mapping_release frees it. */
void *gm__mapping_new(size_t bytes);

/* Makes the mapping larger. It may move. The contents stay, and the rest is zero. NULL: the system refuses, and nothing
 * has changed. */
void *gm__mapping_grow(void *mapping, size_t bytes, size_t more);

/* From now on its pages come from that NUMA node, while the node has some. Pages that are there stay. False: the system
 * refuses, and they come from where they would anyway. */
bool gm__mapping_prefer(void *mapping, size_t bytes, uint32_t node);

/* Linux' mbind: -1 and errno where it fails. `nodes` has a bit for each of `node_count` nodes, a multiple of 64. */
int gm__mapping_bind(void *mapping, size_t bytes, int mode, const uint64_t *nodes, size_t node_count);

/* Whole pages become zero, and take no memory until somebody writes there again. */
void gm__mapping_unback(void *at, size_t bytes);

void gm__mapping_release(void *mapping, size_t bytes);

#endif
