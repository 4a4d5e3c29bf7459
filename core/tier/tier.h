/* The facts that floors above know of a tier beside gm/tier.h. */
#ifndef GM_CORE_TIER_TIER_H
#define GM_CORE_TIER_TIER_H

#include "gm/tier.h"

/* Where the tier is, as gm_tier_open was told, or the end of that where it is long. It lives as long as the tier. */
const char *gm__tier_where(const gm_tier *tier);

#endif
