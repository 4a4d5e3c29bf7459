/* Names and ranges for profilers and sanitizers: NVTX (with its memory extension) and ROCTX, loaded at run time where
 * the configuration asks for them (debug.ranges). Thread-safe. */
#ifndef GM_CORE_TRACK_MARKS_H
#define GM_CORE_TRACK_MARKS_H

#include <stdbool.h>

#include "gm/context.h"

typedef struct gm__marks gm__marks; /* of the process: never given back */

/* By the context's configuration. NULL: nobody asked, or no tool is there, which the log says. */
const gm__marks *gm__marks_of(gm_context *ctx);

/* A range of the calling thread, named by `what`, `name` and `bytes`; ends with gm__marks_pop. `marks` may be NULL. */
void gm__marks_push(const gm__marks *marks, const char *what, const char *name, uint64_t bytes);
void gm__marks_pop(const gm__marks *marks);

/* True when the tool wants to know of memory: only then the rest does anything. `marks` may be NULL. */
bool gm__marks_wants_memory(const gm__marks *marks);

/* Memory that is going to be handed out in regions. NULL: the tool does not follow it. */
void *gm__marks_heap(const gm__marks *marks, const char *name, uint64_t address, uint64_t bytes);
void gm__marks_heap_end(const gm__marks *marks, void *heap);

void gm__marks_region(const gm__marks *marks, void *heap, uint64_t address, uint64_t bytes);
void gm__marks_region_end(const gm__marks *marks, uint64_t address);

#endif
