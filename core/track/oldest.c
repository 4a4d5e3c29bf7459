#include "core/track/oldest.h"

#include <stdbool.h>

/* Invariant: until it is sorted, the array is a heap with the youngest entry on top. That entry goes when there is no
 * room. */

static bool oldest_is_younger(const gm_track_entry *a, const gm_track_entry *b) {
  return a->born_ns != b->born_ns ? a->born_ns > b->born_ns : a->id > b->id;
}

/* Puts the entry at `at`, or further down. */
static void oldest_sink(gm_track_entry *entries, size_t count, size_t at, gm_track_entry entry) {
  for (size_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && oldest_is_younger(&entries[child + 1], &entries[child])) child++;
    if (!oldest_is_younger(&entries[child], &entry)) break;
    entries[at] = entries[child];
  }
  entries[at] = entry;
}

static void oldest_rise(gm_track_entry *entries, size_t at, const gm_track_entry *entry) {
  for (size_t parent; at > 0 && oldest_is_younger(entry, &entries[parent = (at - 1) / 2]); at = parent) {
    entries[at] = entries[parent];
  }
  entries[at] = *entry;
}

void gm__oldest_add(gm__oldest *oldest, const gm_track_entry *entry) {
  oldest->seen++;
  if (!oldest->entries || !oldest->capacity) return;
  if (oldest->kept < oldest->capacity) {
    oldest_rise(oldest->entries, oldest->kept++, entry);
  } else if (oldest_is_younger(&oldest->entries[0], entry)) {
    oldest_sink(oldest->entries, oldest->kept, 0, *entry);
  }
}

void gm__oldest_sort(gm__oldest *oldest) {
  for (size_t count = oldest->kept; count > 1; count--) {
    const gm_track_entry last = oldest->entries[count - 1];
    oldest->entries[count - 1] = oldest->entries[0];
    oldest_sink(oldest->entries, count - 1, 0, last);
  }
}
