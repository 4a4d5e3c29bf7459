/* What the pool needs of a tracker beyond gm/tracker.h. Thread-safe. */
#ifndef GM_CORE_TRACK_TRACKER_H
#define GM_CORE_TRACK_TRACKER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "gm/tracker.h"

typedef struct gm__track_figures {
  uint64_t count, bytes, peak_bytes;
} gm__track_figures;

/* A pool, whose arenas keep the entries of their blocks themselves (ledger.h), so that an allocation writes nothing
 * that other threads write. It is asked with the tracker's lock held. */
typedef struct gm__track_source {
  void *user;
  /* Add the figures of all. */
  void (*figures)(void *user, gm__track_figures *sum);
  /* Show every live entry, in any order, and every tag's total of each arena. */
  void (*entries)(void *user, void (*look)(void *looker, const gm_track_entry *entry), void *looker);
  void (*totals)(void *user, void (*look)(void *looker, const gm_tag_total *total), void *looker);
  /* Forget the entry; false: there is none. */
  bool (*untrack)(void *user, uint64_t id);
  /* gm_tracker_mark was called. */
  void (*marked)(void *user, uint64_t mark);
} gm__track_source;

/* Before anybody else knows the tracker; the source is kept. */
void gm__tracker_set_source(gm_tracker *tracker, const gm__track_source *source);

/* The first of so many ids that nothing else will get. */
uint64_t gm__tracker_draw_ids(gm_tracker *tracker, uint64_t count);

/* Where the number of gm_tracker_mark calls is, as long as the tracker lives. */
const _Atomic uint64_t *gm__tracker_marks(const gm_tracker *tracker);

/* Forget the tracker's own entries of that pool; peaks begin anew from what is left. */
void gm__tracker_forget(gm_tracker *tracker, uint64_t pool);

/* Say how many elements an entry of the tracker's own has and where it lives now; nothing happens when `id` is 0 or
 * gone. */
void gm__tracker_annotate(gm_tracker *tracker, uint64_t id, uint64_t elements, gm_location location);

#endif
