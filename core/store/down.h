/* Values go down from the device, in the order of the store's victims. The caller does not hold the lock. */
#ifndef GM_CORE_STORE_DOWN_H
#define GM_CORE_STORE_DOWN_H

#include "core/store/entry.h"

/* Take the value of a busy entry, which has one, down to host memory, or to a tier. BUSY: somebody holds it. */
gm_status gm__down_entry(gm_store *store, gm__store_entry *entry, gm_error *err);

/* Take values down until `bytes` of them are gone or nothing more can go. The result is what went. */
uint64_t gm__down_some(gm_store *store, uint64_t bytes);

/* Make room for `bytes`. Where nothing can go, but other threads take values down, wait for one of these. False: there
 * is nothing to hope for. */
bool gm__down_for(gm_store *store, uint64_t bytes);

/* Take down what is above the store's bounds. */
void gm__down_to_bounds(gm_store *store);

#endif
