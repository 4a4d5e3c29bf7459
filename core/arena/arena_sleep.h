/* Sleep of a pool's pages: their memory goes back to the driver, and all addresses stay. Blocks that are out stay live,
 * and can be freed meanwhile. REQUIRES, for each function: pages lock. */
#ifndef GM_CORE_ARENA_ARENA_SLEEP_H
#define GM_CORE_ARENA_ARENA_SLEEP_H

#include "core/arena/arena_set.h"

/* From now on the pool says that it sleeps, and nobody is given memory of its pages. It waits a second at most for
 * threads that are about to get a block. BUSY: one still is, or a block is mapped; nothing has changed then. */
gm_status gm__arenas_close_pages(gm__arena_set *set, gm_error *err);

/* The pool is awake. */
void gm__arenas_open_pages(gm__arena_set *set);

typedef struct gm__sleep_params {
  bool keep;           /* the contents of pages that blocks lie in */
  uint64_t host_bytes; /* so much host memory they may take at most */
  gm_stream *stream;   /* for the copies; NULL: the device's own */
} gm__sleep_params;

/* The pages that blocks lie in are copied to host memory if asked, and then all pages give their memory back. *bytes:
 * how much that is. After a failure the pool's pages are as before; or, if they got no memory again, they sleep, and
 * *asleep is set. REQUIRES: gm__arenas_close_pages; no stream uses the pool's memory. */
gm_status gm__arenas_sleep(gm__arena_set *set, const gm__sleep_params *params, uint64_t *bytes, bool *asleep,
                           gm_error *err);

/* All pages get memory again, with what was kept. The provider's answers, and those of a copy. After a failure all of
 * them sleep, as far as the driver lets them. */
gm_status gm__arenas_wake(gm__arena_set *set, gm_stream *stream, gm_error *err);

#endif
