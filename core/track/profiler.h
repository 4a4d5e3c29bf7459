/* Names and ranges for profilers and sanitizers: NVTX with its memory extension, and ROCTX. They are loaded at run
 * time where the configuration asks for them (debug.ranges). Thread-safe. */
#ifndef GM_CORE_TRACK_PROFILER_H
#define GM_CORE_TRACK_PROFILER_H

#include <stdbool.h>

#include "gm/context.h"

typedef struct gm__profiler gm__profiler; /* of the process: never given back */

/* Returns the tool that the context's configuration names. NULL: nobody asked, or no tool is there, which the log
 * says. */
const gm__profiler *gm__profiler_of(gm_context *ctx);

/* Begins a range of the calling thread, named by `what`, `name` and `bytes`. gm__profiler_pop ends it. `profiler` may
 * be NULL. */
void gm__profiler_push(const gm__profiler *profiler, const char *what, const char *name, uint64_t bytes);
/* Likewise, and `text` is its whole name. */
void gm__profiler_push_text(const gm__profiler *profiler, const char *text);
void gm__profiler_pop(const gm__profiler *profiler);

/* True when the tool wants to know of memory. Without that the calls below do nothing. `profiler` may be NULL. */
bool gm__profiler_wants_memory(const gm__profiler *profiler);

/* Tells of memory that gm will hand out in regions. NULL: the tool does not follow it. */
void *gm__profiler_heap(const gm__profiler *profiler, const char *name, uint64_t address, uint64_t bytes);
void gm__profiler_heap_end(const gm__profiler *profiler, void *heap);

void gm__profiler_region(const gm__profiler *profiler, void *heap, uint64_t address, uint64_t bytes);
void gm__profiler_region_end(const gm__profiler *profiler, uint64_t address);

#endif
