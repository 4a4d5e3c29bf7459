/* A key ends. The caller does not hold the lock. */
#ifndef GM_CORE_STORE_REMOVE_H
#define GM_CORE_STORE_REMOVE_H

#include "core/store/entry.h"

/* Remove a busy entry, in the tiers too. After a failure of a tier it is there, and no longer busy. */
gm_status gm__remove_entry(gm_store *store, gm__store_entry *entry, gm_error *err);

/* Remove a key. NOT_FOUND: there is none. */
gm_status gm__remove(gm_store *store, const gm__store_name *key, const char *op, gm_error *err);

#endif
