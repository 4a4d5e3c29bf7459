/* A key ends. The caller does not hold the lock. */
#ifndef GM_CORE_STORE_REMOVE_H
#define GM_CORE_STORE_REMOVE_H

#include "core/store/entry.h"

/* Remove a busy entry, in the tiers too. After a failure of a tier it is there, and no longer busy. */
gm_status gm__remove_entry(gm_store *store, gm__store_entry *entry, gm_error *err);

/* Give back a busy entry whose value was read with `status`, which is the answer. The entry ends for NOT_FOUND: its
 * value is nowhere any more. */
gm_status gm__remove_lost(gm_store *store, gm__store_entry *entry, gm_status status, const gm__store_name *key,
                          const char *op, gm_error *err);

/* Remove a key. NOT_FOUND: there is none. */
gm_status gm__remove(gm_store *store, const gm__store_name *key, const char *op, gm_error *err);

#endif
