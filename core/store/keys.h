/* Declared prefixes. */
#ifndef GM_CORE_STORE_KEYS_H
#define GM_CORE_STORE_KEYS_H

#include "core/store/entry.h"

/* Forget the prefixes at and below one. REQUIRES: store lock. */
void gm__prefixes_drop(gm_store *store, const gm__store_name *prefix);

#endif
