/* A pool's side of a tracker, beyond gm/tracker.h. Thread-safe. */
#ifndef GM_CORE_TRACK_TRACKER_H
#define GM_CORE_TRACK_TRACKER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "gm/tracker.h"

typedef struct gm__track_figures {
  uint64_t count, bytes, peak_bytes;
} gm__track_figures;

/* A pool as the tracker asks it. Its arenas keep the entries of their blocks themselves (ledger.h), so that an
 * allocation writes nothing that other threads write. The tracker calls with its lock held. */
typedef struct gm__track_source {
  void *user;
  /* Adds the figures of all arenas. */
  void (*figures)(void *user, gm__track_figures *sum);
  /* Shows every live entry, in any order, and every tag's total of each arena. */
  void (*entries)(void *user, void (*look)(void *looker, const gm_track_entry *entry), void *looker);
  void (*totals)(void *user, void (*look)(void *looker, const gm_tag_total *total), void *looker);
  /* Forgets the entry; false: there is none. */
  bool (*untrack)(void *user, uint64_t id);
  /* gm_tracker_mark was called. */
  void (*marked)(void *user, uint64_t mark);
} gm__track_source;

/* Sets the source, before any other thread knows the tracker. The tracker keeps it. */
void gm__tracker_set_source(gm_tracker *tracker, const gm__track_source *source);

/* The first of `count` ids in a row that nothing else gets. */
uint64_t gm__tracker_draw_ids(gm_tracker *tracker, uint64_t count);

/* The place where the number of gm_tracker_mark calls stands, as long as the tracker lives. */
const _Atomic uint64_t *gm__tracker_marks(const gm_tracker *tracker);

/* Forgets the tracker's own entries of that pool. Peaks begin anew from the rest. */
void gm__tracker_forget(gm_tracker *tracker, uint64_t pool);

/* Adds up what is left of the tag's entries that were born after each of the last `count` finished marks: bytes[0] of
 * the oldest. *all: of the tag's entries born after the first mark and before the last one. False: there were not so
 * many marks. */
bool gm__tracker_left_behind(gm_tracker *tracker, uint32_t tag, uint64_t *bytes, uint32_t count, uint64_t *all);

/* Sets the elements and the location of an entry of the tracker's own. Nothing happens if `id` is 0 or gone. */
void gm__tracker_annotate(gm_tracker *tracker, uint64_t id, uint64_t elements, gm_location location);

#endif
