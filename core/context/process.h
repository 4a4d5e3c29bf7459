/* The process-wide state of gm, the whole of it: the fork page and the table of contexts (with what each holds on each
 * device). Driver handles are kept by core/base/dynlib, what a profiler fills by core/track/marks. Nothing runs at
 * exit. */
#ifndef GM_CORE_CONTEXT_PROCESS_H
#define GM_CORE_CONTEXT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/status.h"

/* A number of this process image that is never 0 and that a forked child does not share: contexts remember it. Sets up
 * the fork page on first use. GM_ERR_SYSTEM if the system gives no page. */
gm_status gm__process_generation(uint64_t *out, gm_error *err);

/* True if `generation` is that of the running process image: one load, no call into the system. */
bool gm__process_is_current(uint64_t generation);

/* Where that number stands as long as the process is the same one; where the system cannot keep it from a child, a
 * place that never holds one. Lives for ever. */
const _Atomic uint64_t *gm__process_generation_at(void);

/* Bytes that all contexts of the process hold on the device with this key (a hash of its physical identity): a counter
 * shared by everybody who asks for the same key. Never NULL: keys past the table's 256 share the last. Lives for ever.
 */
typedef struct gm__used_bytes gm__used_bytes;
gm__used_bytes *gm__process_used(uint64_t key);
void gm__used_add(gm__used_bytes *used, uint64_t bytes, bool pooled);
void gm__used_sub(gm__used_bytes *used, uint64_t bytes, bool pooled);
/* Held bytes are about to go back to the driver, and are not held from now on; the driver has them. */
void gm__used_leave(gm__used_bytes *used, uint64_t bytes);
void gm__used_left(gm__used_bytes *used, uint64_t bytes);
uint64_t gm__used_departures(const gm__used_bytes *used); /* bytes that were ever about to go back */
uint64_t gm__used_total(const gm__used_bytes *used);      /* held: in use and pooled */
uint64_t gm__used_most(const gm__used_bytes *used);       /* and what is on its way back */
uint64_t gm__used_pooled(const gm__used_bytes *used);     /* of that: reclaimable */

#endif
