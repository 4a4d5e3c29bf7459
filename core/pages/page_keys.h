/* The map from keys to pages. Each page has one place in it at most. REQUIRES everywhere: the set's lock. */
#ifndef GM_CORE_PAGES_PAGE_KEYS_H
#define GM_CORE_PAGES_PAGE_KEYS_H

#include "core/pages/pages_state.h"

/* False: no host memory. gm__page_keys_end gives back what there is. */
bool gm__page_keys_begin(gm_pages *set);
void gm__page_keys_end(gm_pages *set);

/* GM_NO_PAGE: there is none. */
gm_page gm__page_key_find(const gm_pages *set, gm_page_key key);

/* REQUIRES: the page has no key, and no other page has this one. */
void gm__page_key_put(gm_pages *set, gm_page page, gm_page_key key);

/* REQUIRES: `keyed` of the page is not 0. */
void gm__page_key_remove(gm_pages *set, gm_page page);

/* Drops all keys. Once in 2^32 calls it looks at every page, as the numbers of generations are used up then. */
void gm__page_keys_drop(gm_pages *set);

/* Asks the processor for the place of a key that is looked for soon. */
void gm__page_key_prefetch(const gm_pages *set, gm_page_key key);

#endif
