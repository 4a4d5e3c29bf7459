/* The bound of a cache changes while it lives. */
#ifndef GM_CORE_CACHE_CACHE_H
#define GM_CORE_CACHE_CACHE_H

#include "gm/cache.h"

/* Is the bound of a cache older than the configuration of gm__config_changes? */
bool gm__cache_is_behind(const gm_cache *cache, uint64_t changes);

/* Bound the entries of a cache, as the configuration said at `changes`. Nothing changes if the bound is newer. Entries
 * above the bound are evicted, but not those that are held. */
void gm__cache_bound(gm_cache *cache, uint64_t max_entries, uint64_t changes);

#endif
