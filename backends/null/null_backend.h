/* The border of the null backend: simulated devices of any capacity, with addresses and no memory. Time passes only
 * while somebody waits. For planning, replaying traces and tests. null_options.h lists the options. */
#ifndef GM_BACKENDS_NULL_NULL_BACKEND_H
#define GM_BACKENDS_NULL_NULL_BACKEND_H

#include "gm/backend.h"

extern const gm_backend_ops gm__null_backend;

/* Let `ns` of virtual time pass on a device of this backend. Every point up to that moment has then passed. `device` is
 * the handle behind the seam. For tests that set the option `latency`. Thread-safe. */
void gm__null_advance(void *device, uint64_t ns);

#endif
