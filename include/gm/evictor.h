/* Evictors: a program's own caches that give memory up when a request would fail. */
#ifndef GM_EVICTOR_H
#define GM_EVICTOR_H

#include <stdint.h>

#include "gm/status.h"

GM_BEGIN_DECLS

struct gm_device;
struct gm_pool;

typedef struct gm_evictor gm_evictor;

/* gm calls both functions on the thread whose request lacks memory, or that calls gm_device_cleanup or
 * gm_context_cleanup. gm holds no lock meanwhile, and several threads may call at once. They may call any
 * function of gm for this device, also allocate, free, register and unregister. A request or a clean-up that they make
 * calls no evictor of the device. They may not destroy the pool of the request, and may not wait for a thread that
 * waits for gm_evictor_unregister. They must not throw:
 * what the interrupted call of gm had taken is lost, and gm_evictor_unregister may wait for ever. */
typedef struct gm_evictor_params {
  uint32_t struct_size;
  int32_t priority;     /* lower ones are asked first */
  uint64_t cost;        /* nanoseconds to bring one MiB back; of one priority the cheaper one is asked first */
  const char *name;     /* for profilers, cut to 31 bytes; copied; NULL: "evictor" */
  struct gm_pool *pool; /* whose memory it gives up. NULL: that of any pool. Only compared, never used */
  uint64_t (*evictable)(void *user); /* bytes that `evict` could free now; NULL: unknown, so gm asks `evict` */
  /* Gives up at least `bytes` if it can, or all for GM_NO_LIMIT. It frees blocks or memory of its own. Returns how many
   * bytes it freed; 0 where it could free none. Never NULL. */
  uint64_t (*evict)(void *user, uint64_t bytes);
  void *user; /* of both calls; not used by gm */
} gm_evictor_params;

/* Registers an evictor of a device. gm asks evictors after the idle memory of all pools did not serve a request for
 * memory of the device. It asks one after the other until they freed what the request lacks, and tries the request
 * again. If that fails, it asks them for more: for the size of the request, at last for all. So each is asked at most
 * three times for a request. Where a pool's cap refuses, gm asks only evictors of that pool and those that name none,
 * and never for all.
 *
 * gm asks none where the evictable bytes of all could not serve the request. It asks none for GM_POOLED_ONLY, for a
 * stream that is being captured, and for managed memory. If several are equal, the one that was registered first is
 * asked first. Memory that an evictor freed in a stream's order may serve with a wait, like all pooled memory.
 *
 * The caller owns *out until gm_evictor_unregister. The device answers BUSY to gm_device_close until then. The call is
 * thread-safe. Errors: INVALID_ARGUMENT: an argument, or `evict`, is NULL. FORKED, NOT_SUPPORTED (a newer caller's
 * member), OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_evictor_register(struct gm_device *device, const gm_evictor_params *params, gm_evictor **out,
                                     gm_error *err);

/* Unregisters an evictor, which must not be used again. NULL does nothing. The call waits until no other thread is in
 * the evictor's functions, so hold no lock that they take. Afterwards gm does not use `user` again. From inside an
 * evictor's function of the same device the call waits for nobody: calls that run then may end later. Call it at most
 * once for each evictor. It is thread-safe. Errors: INVALID_ARGUMENT in debug builds: it was unregistered. In a forked
 * child the call only gives host memory back. */
GM_API gm_status gm_evictor_unregister(gm_evictor *evictor, gm_error *err);

GM_END_DECLS

#endif
