/* Everything about keeping values: tiers, and what stands on them. Apart from gm/gm.h, since an engine that only needs
 * memory needs none of it. */
#ifndef GM_STORE_ALL_H
#define GM_STORE_ALL_H

#include "gm/cache.h"
#include "gm/gm.h"
#include "gm/store.h"
#include "gm/store_file.h"
#include "gm/tensor_sets.h"
#include "gm/tier.h"
#include "gm/value.h"

#endif
