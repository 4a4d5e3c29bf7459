/* Warm-up by configuration. */
#ifndef GM_CORE_POOL_WARM_UP_H
#define GM_CORE_POOL_WARM_UP_H

#include "gm/warm_up.h"

/* What the keys ask for, of a pool that was just created. A failure is logged: a pool without it works. */
void gm__warm_up_by_configuration(gm_pool *pool);

#endif
