/* Sleep of a heap whose pages are mapped: see core/arena/arena_sleep.h. */
#ifndef GM_CORE_HEAP_HEAP_SLEEP_H
#define GM_CORE_HEAP_HEAP_SLEEP_H

#include "core/arena/arena_sleep.h"
#include "core/heap/heap.h"

typedef struct gm__heap_sleep {
  bool begun;     /* gm__heap_sleep_end must follow. False after GM_OK: the heap sleeps already */
  bool asleep;    /* the heap sleeps from now on */
  uint64_t bytes; /* went back to the driver */
} gm__heap_sleep;

/* Waits for `stream` (may be NULL) and for all streams that requests and frees of the heap have named. Gives idle
 * memory back. Then the heap says that it sleeps, and hands nothing out. NOT_SUPPORTED: it maps no pages. BUSY: gm
 * cannot wait for a stream, or those of gm__arenas_close_pages. REQUIRES: no lock. LOCKS: pages lock, if *out says
 * `begun`. */
gm_status gm__heap_sleep_begin(gm__heap *heap, gm_stream *stream, gm__heap_sleep *out, gm_error *err);

/* All pages give their memory back; see gm__arenas_sleep. */
gm_status gm__heap_sleep_run(gm__heap *heap, const gm__sleep_params *params, gm__heap_sleep *sleep, gm_error *err);

/* The heap sleeps, or it is awake as before. RELEASES: pages lock. */
void gm__heap_sleep_end(gm__heap *heap, const gm__heap_sleep *sleep);

/* Wakes the heap, if it sleeps. Where memory is short, it and the device's other pools give idle memory back first. The
 * provider's answers, and those of a copy; BUSY: the stream is captured. The heap sleeps on then. REQUIRES: no lock. */
gm_status gm__heap_wake(gm__heap *heap, gm_stream *stream, gm_error *err);

#endif
