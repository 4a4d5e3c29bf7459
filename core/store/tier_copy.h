/* Copies of values in a store's tiers. The entries are busy of the calling thread, which does not hold the lock. */
#ifndef GM_CORE_STORE_TIER_COPY_H
#define GM_CORE_STORE_TIER_COPY_H

#include "core/store/entry.h"

/* Put the value of an entry, whose image it is, into the nearest tier that takes it. A full tier moves others down to
 * the next one. OVER_LIMIT: the store has no tier. Other errors are those of the last tier. */
gm_status gm__tier_copy_put(gm_store *store, gm__store_entry *entry, const gm__image *image, gm_error *err);

/* Put it into the lowest tier. REQUIRES: there is a tier. */
gm_status gm__tier_copy_put_lowest(gm_store *store, gm__store_entry *entry, const gm__image *image, gm_error *err);

/* Read the value from the nearest tier that has it whole. DAMAGED: none has. NOT_FOUND, without a message: a removal of
 * it, which had no answer, was done. */
gm_status gm__tier_copy_read(gm_store *store, gm__store_entry *entry, gm__image **out, gm_error *err);

/* Remove all copies of an entry, the one of now last. After a failure it is still there. */
gm_status gm__tier_copy_remove(gm_store *store, gm__store_entry *entry, gm_error *err);

/* Flush each tier that was changed since its last flush, the nearest first: what a nearer tier has is what a new store
 * takes. It goes on after a failure, and answers the first. */
gm_status gm__tier_copy_flush(gm_store *store, gm_error *err);

/* Make entries of what the tiers have. REQUIRES: no other thread knows the store. */
gm_status gm__tier_copy_list(gm_store *store, gm_error *err);

#endif
