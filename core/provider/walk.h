/* A walk over all driver allocations of a pool that holds the provider lock for a piece of them at a time. */
#ifndef GM_CORE_PROVIDER_WALK_H
#define GM_CORE_PROVIDER_WALK_H

#include "core/provider/provider.h"

enum { GM__PROVIDER_PIECE = 1024 }; /* so many records are looked at, until other threads may enter */

/* Leaves the provider lock for a moment. */
void gm__provider_breathe(gm__provider *provider);

/* Gives what gm__allocation_next gives. After each piece other threads use the table, so nothing that was known is
 * still true. REQUIRES: provider lock. */
static inline gm__allocation *gm__provider_walk(gm__provider *provider, uint32_t *cursor) {
  if (*cursor && *cursor % GM__PROVIDER_PIECE == 0) gm__provider_breathe(provider);
  return gm__allocation_next(&provider->allocations, cursor);
}

#endif
