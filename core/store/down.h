/* Values go down from the device, in the order of the store's victims. The caller does not hold the lock. */
#ifndef GM_CORE_STORE_DOWN_H
#define GM_CORE_STORE_DOWN_H

#include "core/store/entry.h"

/* Take the value of a busy entry, which has one, down to host memory, or to a tier. *out_freed is what this freed on
 * the device, where it succeeds. BUSY: somebody holds it. */
gm_status gm__down_entry(gm_store *store, gm__store_entry *entry, uint64_t *out_freed, gm_error *err);

typedef struct gm__down_result {
  uint64_t gone; /* bytes that are free on the device now */
  int failures;  /* values that no place below took, or that somebody began to hold */
} gm__down_result;

/* Take values down until `bytes` are free or nothing more can go. */
gm__down_result gm__down_some(gm_store *store, uint64_t bytes);

/* Make room for `bytes`. Where nothing can go, but other threads take values down, wait for one of these. False: there
 * is nothing to hope for; *out_held: no value may leave, else no place below takes one. */
bool gm__down_for(gm_store *store, uint64_t bytes, bool *out_held);

/* Take down what nobody refers to, in a store that keeps nothing on the device. */
void gm__down_unused(gm_store *store);

/* Take down what is above the store's bounds. A value that the caller has just put may go, too, once it is released. */
void gm__down_to_bounds(gm_store *store);

#endif
