#include "core/store/victims.h"

#include <stddef.h>

void gm__victims_init(gm__victims *victims) { victims->ends = (gm__victim){&victims->ends, &victims->ends}; }

void gm__victims_insert(gm__victims *victims, gm__victim *entry) {
  gm__victim *last = victims->ends.prev;
  *entry = (gm__victim){&victims->ends, last};
  last->next = victims->ends.prev = entry;
}

void gm__victims_remove(gm__victim *entry) {
  if (!entry->next) return;
  entry->prev->next = entry->next;
  entry->next->prev = entry->prev;
  *entry = (gm__victim){NULL, NULL};
}

void gm__victims_touch(gm__victims *victims, gm__victim *entry) {
  if (!entry->next) return;
  gm__victims_remove(entry);
  gm__victims_insert(victims, entry);
}

gm__victim *gm__victims_next(gm__victims *victims, const gm__victim *last) {
  gm__victim *next = last ? last->next : victims->ends.next;
  return next == &victims->ends ? NULL : next;
}
