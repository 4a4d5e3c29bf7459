/* What the pool needs of a tracker beyond gm/tracker.h. Thread-safe. */
#ifndef GM_CORE_TRACK_TRACKER_H
#define GM_CORE_TRACK_TRACKER_H

#include "gm/tracker.h"

/* Say how many elements an entry has and where it lives now; nothing happens when `id` is 0 or gone. */
void gm__tracker_annotate(gm_tracker *tracker, uint64_t id, uint64_t elements, gm_location location);

#endif
