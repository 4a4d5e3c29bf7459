/* A bar on standard error, only when that is a terminal. One thread draws. */
#ifndef GM_TOOLS_GMEM_OUTPUT_PROGRESS_H
#define GM_TOOLS_GMEM_OUTPUT_PROGRESS_H

#include <stdint.h>

/* Draws at most ten times a second. A new `what` begins anew. */
void progress_show(const char *what, uint64_t done, uint64_t total);

/* These bars say how many bytes, or events, pass in a second. They say how long the rest will take at that rate. */
void progress_show_bytes(const char *what, uint64_t done, uint64_t total);
void progress_show_events(const char *what, uint64_t done, uint64_t total);

/* Takes the bar away, if there is one. */
void progress_clear(void);

#endif
