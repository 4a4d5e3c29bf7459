/* The state that gm has once in a process: the generation of the process image, and pages that a forked child finds
 * zeroed. core/room/card keeps what contexts hold and promise on each card in such a page. core/base/dynlib keeps
 * driver handles, core/base/zstd keeps libzstd, and core/track/profiler keeps what a profiler fills.
 * core/staging/convert keeps what it found of the processor. Nothing runs at exit. */
#ifndef GM_CORE_CONTEXT_PROCESS_H
#define GM_CORE_CONTEXT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/inner.h"
#include "gm/status.h"

/* A number of this process image, never 0. A forked child has another one: so contexts remember it. The first call
 * sets up the fork page. GM_ERR_SYSTEM: the system gives no page. */
gm_status gm__process_generation(uint64_t *out, gm_error *err);

/* True when `generation` is that of the running process image. One load, no system call. */
bool gm__process_is_current(uint64_t generation);

/* The place of that number, as long as the process is the same one. Where the system cannot keep it from a child,
 * the place never holds one. Lives for ever. */
GM__INNER const _Atomic uint64_t *gm__process_generation_at(void);

/* Zeroed memory that all of the process share, and that a forked child finds zeroed. Zero-initialised. */
typedef struct gm__process_page {
  _Atomic(void *) memory;
} gm__process_page;

/* Its memory, made at the first call. It lives for ever. NULL: the system gives none. Thread-safe. */
void *gm__process_page_get(gm__process_page *page, size_t bytes);

/* A number that tells a child from its parent where the kernel zeroes no pages for it; elsewhere 0. */
uint64_t gm__process_salt(void);

#endif
