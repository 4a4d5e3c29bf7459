/* The value of a key. The caller does not hold the lock. */
#ifndef GM_CORE_STORE_GET_H
#define GM_CORE_STORE_GET_H

#include "core/store/entry.h"

/* Get a value with one reference for the caller, and add `users` to the count of the key. */
gm_status gm__get(gm_store *store, const gm__store_name *key, uint64_t users, const char *op, gm_value **out,
                  gm_error *err);

#endif
