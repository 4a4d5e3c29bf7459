/* A bar on standard error, only when that is a terminal. */
#ifndef GM_TOOLS_GMEM_OUTPUT_PROGRESS_H
#define GM_TOOLS_GMEM_OUTPUT_PROGRESS_H

#include <stdint.h>

/* Draws when the percentage has changed. */
void progress_show(const char *what, uint64_t done, uint64_t total);

/* Takes the bar away, if there is one. */
void progress_clear(void);

#endif
