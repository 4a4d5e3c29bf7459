/* A value gets a key. The caller does not hold the lock. */
#ifndef GM_CORE_STORE_PUT_H
#define GM_CORE_STORE_PUT_H

#include "core/store/entry.h"

typedef enum gm__put_count { GM__PUT_KEEPS_USERS, GM__PUT_ONE_USER } gm__put_count;

/* Put a value that lies where it should. The store adds a reference of its own. The caller releases the value, and then
 * holds the store to its bounds (gm__down_to_bounds). */
gm_status gm__put(gm_store *store, const gm__store_name *key, gm_value *value, gm__put_count count, const char *op,
                  gm_error *err);

gm_status gm__put_no_memory(const char *op, gm_error *err);

#endif
