/* The state that gm has once in a process: the fork page, with what contexts hold and promise on each device.
 * core/base/dynlib keeps driver handles, core/base/zstd keeps libzstd, and core/track/profiler keeps what a profiler
 * fills. core/staging/convert keeps what it found of the processor. Nothing runs at exit. */
#ifndef GM_CORE_CONTEXT_PROCESS_H
#define GM_CORE_CONTEXT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/context/promises.h"
#include "gm/status.h"

/* A number of this process image, never 0. A forked child has another one: so contexts remember it. The first call
 * sets up the fork page. GM_ERR_SYSTEM: the system gives no page. */
gm_status gm__process_generation(uint64_t *out, gm_error *err);

/* True when `generation` is that of the running process image. One load, no system call. */
bool gm__process_is_current(uint64_t generation);

/* The place of that number, as long as the process is the same one. Where the system cannot keep it from a child,
 * the place never holds one. Lives for ever. */
const _Atomic uint64_t *gm__process_generation_at(void);

/* The bytes that all contexts of the process hold on the device with this key, a hash of its physical identity. All
 * who ask for one key share one counter. Never NULL: keys past the table's 256 share the last one. Lives for ever. */
typedef struct gm__used_bytes gm__used_bytes;
gm__used_bytes *gm__process_used(uint64_t key);
void gm__used_add(gm__used_bytes *used, uint64_t bytes, bool pooled);
void gm__used_sub(gm__used_bytes *used, uint64_t bytes, bool pooled);
/* `leave`: held bytes are about to go back to the driver, and are not held from now on. `left`: the driver has them. */
void gm__used_leave(gm__used_bytes *used, uint64_t bytes);
void gm__used_left(gm__used_bytes *used, uint64_t bytes);
uint64_t gm__used_departures(const gm__used_bytes *used); /* bytes that were ever about to go back */
uint64_t gm__used_total(const gm__used_bytes *used);      /* held: in use and pooled */
uint64_t gm__used_most(const gm__used_bytes *used);       /* and what is on its way back */
uint64_t gm__used_pooled(const gm__used_bytes *used);     /* of that: reclaimable */

/* What the process promises on the device with this key. As gm__process_used. */
gm__promises *gm__process_promises(uint64_t key);

#endif
