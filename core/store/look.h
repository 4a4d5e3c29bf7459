/* The value of a key for other floors that read it, and leave the store as it is. */
#ifndef GM_CORE_STORE_LOOK_H
#define GM_CORE_STORE_LOOK_H

#include "gm/services.h"
#include "gm/store.h"

/* GM_OK, or why a store or a prefix cannot be used. NULL and the root are prefixes, too. Writes the prefix in its
 * normal form to `out`, which has room for GM_STORE_KEY_MOST + 1 bytes. */
gm_status gm__store_look_prefix(const gm_store *store, const char *prefix, char *out, const char *op, gm_error *err);

/* The services of the context. */
const gm_services *gm__store_look_services(const gm_store *store);

/* The value of a key. Where it is not on the device, *out is a copy in host memory, and the value stays below. It
 * counts as no use. The caller releases *out. Errors: those of gm_store_get but for the device's. */
gm_status gm__store_look(gm_store *store, const char *key, gm_value **out, gm_error *err);

#endif
