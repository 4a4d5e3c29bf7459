/* The evictors of a device (gm/evictor.h): their order, and who may call them. Takes the locks it needs. */
#ifndef GM_CORE_DEVICE_EVICTOR_H
#define GM_CORE_DEVICE_EVICTOR_H

#include <stdbool.h>

#include "gm/context.h"
#include "gm/evictor.h"

struct gm_device;

/* A thread that asks evictors. */
typedef struct gm__evict_run {
  struct gm_device *device;
  uint64_t serial;  /* of its mark */
  const void *pool; /* only evictors of this pool, and those of none; NULL: all */
} gm__evict_run;

/* False: the device has no evictor, or the calling thread is inside one. Otherwise gm__evict_run_end follows. */
bool gm__evict_run_begin(gm__evict_run *run, struct gm_device *device);
void gm__evict_run_end(gm__evict_run *run);

/* From now on the run asks only evictors of the pool, and those of none. NULL: all. */
void gm__evict_run_for(gm__evict_run *run, const void *pool);

/* Moves on to the evictor behind `from` (NULL: the first one). It stays until the thread has moved on. NULL: there is
 * none. Call it until then, or gm__evict_run_stop. */
gm_evictor *gm__evict_run_next(gm__evict_run *run, gm_evictor *from);
void gm__evict_run_stop(gm__evict_run *run, gm_evictor *at); /* `at` may be NULL */

/* In an evictor: is the bound of one pool what is short, and not the device? */
bool gm__evict_run_is_of_pool(struct gm_device *device);

/* The bytes that the evictors of the run could free, by their own word. UINT64_MAX: one of them does not say.
 * REQUIRES: no lock
 */
uint64_t gm__evict_run_evictable(gm__evict_run *run);

/* The device behind *id (0: the first) among those of the context that have evictors. It stays open until the unpin.
 * NULL: there is none. */
struct gm_device *gm__evicting_pin(gm_context *ctx, uint64_t *id);
void gm__evicting_unpin(struct gm_device *device);

const char *gm__evictor_name(const gm_evictor *evictor);

/* Asks for `bytes`: how many it freed, by its own word. REQUIRES: no lock, and that the run is at the evictor. */
uint64_t gm__evictor_ask(const gm_evictor *evictor, uint64_t bytes);

#endif
