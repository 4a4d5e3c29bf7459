/* An idle policy: a pool that nobody has used for some time gives memory back, and then goes to sleep. A server of
 * several models so unloads the ones that nobody asks for. */
#ifndef GM_IDLE_H
#define GM_IDLE_H

#include "gm/relocation.h"

GM_BEGIN_DECLS

/* How an unused pool goes to sleep. This list never changes its numbers.
 * - NO: it stays awake.
 * - BUFFERS: as gm_pool_sleep, with contents kept.
 * - BUFFERS_DROPPED: as gm_pool_sleep, with contents dropped.
 * - WHOLE: as gm_pool_sleep_whole, with contents kept.
 * - WHOLE_DROPPED: as gm_pool_sleep_whole, with contents dropped. */
typedef enum gm_idle_sleep {
  GM_IDLE_NO_SLEEP = 0,
  GM_IDLE_SLEEP_BUFFERS,
  GM_IDLE_SLEEP_BUFFERS_DROPPED,
  GM_IDLE_SLEEP_WHOLE,
  GM_IDLE_SLEEP_WHOLE_DROPPED
} gm_idle_sleep;

typedef struct gm_idle_params {
  uint32_t struct_size; /* set by the caller: sizeof(gm_idle_params) */
  gm_idle_sleep sleep;  /* how it goes to sleep */
  uint64_t trim_ns;     /* idle memory goes back to the driver when the pool was unused for so long. 0: not by time */
  uint64_t sleep_ns;    /* the pool goes to sleep when it was unused for so long. 0 exactly where it stays awake */
} gm_idle_params;

/* Has gm_context_poll, and so the monitor's thread, look whether the pool is used, and trim it or put it to sleep as
 * `params` say. NULL: no longer. The time begins with the first poll that finds nothing new, so it is exact to the time
 * between polls. It begins anew after each request to the pool, each free and each gm_pool_wake, and after each lock,
 * read and write of a buffer. Requests that are refused count, too. gm does not see what streams do with blocks.
 *
 * So a program that lets a whole pool sleep calls gm_pool_wake before it gives streams work on the pool's memory. That
 * call waits for a sleep that has just begun, and costs little where the pool is awake. Work that may take longer than
 * sleep_ns needs one now and then.
 *
 * While the pool stays unused, gm trims it again after each trim_ns, and tries a sleep that failed again after each
 * sleep_ns. The log has the reason of the failure. A locked buffer keeps its pool awake. Thread-safe. Errors:
 * INVALID_ARGUMENT: also for two times of 0, and for a time and a `sleep` that contradict each other. NOT_SUPPORTED:
 * the pool has an upstream, gives no memory to others, or cannot sleep as a whole. FORKED. */
GM_API gm_status gm_pool_idle_on_poll(gm_pool *pool, const gm_idle_params *params, gm_error *err);

GM_END_DECLS

#endif
