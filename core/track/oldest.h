/* The oldest of many entries that come in any order, in an array of limited room. Externally synchronised. */
#ifndef GM_CORE_TRACK_OLDEST_H
#define GM_CORE_TRACK_OLDEST_H

#include "gm/tracker.h"

typedef struct gm__oldest {
  gm_track_entry *entries; /* NULL: they are only counted */
  size_t capacity, kept, seen;
} gm__oldest;

void gm__oldest_add(gm__oldest *oldest, const gm_track_entry *entry);

/* Sorts by age, oldest first. If two have one moment, the smaller id comes first. Nothing may be added afterwards. */
void gm__oldest_sort(gm__oldest *oldest);

#endif
