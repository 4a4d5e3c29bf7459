/* The order in which entries leave a place: the one that was used longest ago first. Another order would stand behind
 * these calls. Entries hold the links. The caller synchronises. */
#ifndef GM_CORE_STORE_VICTIMS_H
#define GM_CORE_STORE_VICTIMS_H

#include <stdbool.h>

typedef struct gm__victim {
  struct gm__victim *next, *prev; /* NULL, NULL: in no list */
} gm__victim;

typedef struct gm__victims {
  gm__victim ends; /* a ring: next is the first to go */
} gm__victims;

void gm__victims_init(gm__victims *victims);
static inline bool gm__victims_has(const gm__victim *entry) { return entry->next; }

/* Add an entry that is in no list, as used now. */
void gm__victims_insert(gm__victims *victims, gm__victim *entry);
/* Note that an entry was used. Nothing where it is in no list. */
void gm__victims_touch(gm__victims *victims, gm__victim *entry);
/* Take an entry out. Nothing where it is in no list. */
void gm__victims_remove(gm__victim *entry);

/* The first to go, or the one after `last`. NULL: there are no more. */
gm__victim *gm__victims_next(gm__victims *victims, const gm__victim *last);

#endif
