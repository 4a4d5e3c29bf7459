/* The order in which entries leave a place: that of core/algo/cache_policy.h, S3-FIFO. So entries that are used once,
 * as in a scan, push out little. Entries hold the links. The caller synchronises. */
#ifndef GM_CORE_STORE_VICTIMS_H
#define GM_CORE_STORE_VICTIMS_H

#include "core/algo/cache_policy.h"
#include "gm/services.h"

typedef struct gm__victim {
  gm__cache_entry turn;
} gm__victim;

typedef struct gm__victims {
  gm__cache_policy policy;
} gm__victims;

void gm__victims_init(gm__victims *victims, const gm_services *services);
/* Gives back what the order remembers. Entries may still be linked, and must not be used again. */
void gm__victims_drop(gm__victims *victims);

/* Add an entry, or give one that is there another weight: then it counts as used. */
void gm__victims_insert(gm__victims *victims, gm__victim *entry, uint64_t hash, uint64_t weight);
/* Note that an entry was used. */
void gm__victims_touch(gm__victims *victims, gm__victim *entry);
/* Take an entry out. Nothing where it is not there. */
void gm__victims_remove(gm__victims *victims, gm__victim *entry);

typedef enum gm__victim_answer {
  GM__VICTIM_STAYS, /* it counts as used */
  GM__VICTIM_GOES,
  GM__VICTIM_IS_OUT /* `may` has removed it from the order */
} gm__victim_answer;

/* Take out the first to go of those that may, and remember it: it comes back as known. NULL: none may go. */
gm__victim *gm__victims_leave(gm__victims *victims, gm__victim_answer (*may)(void *user, gm__victim *entry),
                              void *user);
/* An entry that was to leave stays. */
void gm__victims_return(gm__victims *victims, gm__victim *entry);

#endif
