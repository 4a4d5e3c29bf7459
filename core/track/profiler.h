/* Names and ranges for profilers and sanitizers: NVTX with its memory extension, and ROCTX. They are loaded at run
 * time where the configuration asks for them (debug.ranges). Thread-safe. */
#ifndef GM_CORE_TRACK_MARKS_H
#define GM_CORE_TRACK_MARKS_H

#include <stdbool.h>

#include "gm/context.h"

typedef struct gm__marks gm__marks; /* of the process: never given back */

/* Returns the tool that the context's configuration names. NULL: nobody asked, or no tool is there, which the log
 * says. */
const gm__marks *gm__marks_of(gm_context *ctx);

/* Begins a range of the calling thread, named by `what`, `name` and `bytes`. gm__marks_pop ends it. `marks` may be
 * NULL. */
void gm__marks_push(const gm__marks *marks, const char *what, const char *name, uint64_t bytes);
void gm__marks_pop(const gm__marks *marks);

/* True when the tool wants to know of memory. Without that the calls below do nothing. `marks` may be NULL. */
bool gm__marks_wants_memory(const gm__marks *marks);

/* Tells of memory that gm will hand out in regions. NULL: the tool does not follow it. */
void *gm__marks_heap(const gm__marks *marks, const char *name, uint64_t address, uint64_t bytes);
void gm__marks_heap_end(const gm__marks *marks, void *heap);

void gm__marks_region(const gm__marks *marks, void *heap, uint64_t address, uint64_t bytes);
void gm__marks_region_end(const gm__marks *marks, uint64_t address);

#endif
