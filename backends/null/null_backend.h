/* Devices of any capacity that have addresses and no memory, and a time that only passes when somebody waits: for
 * planning, replaying traces and tests. Simulated, and says so. Options: null_options.h. */
#ifndef GM_BACKENDS_NULL_NULL_BACKEND_H
#define GM_BACKENDS_NULL_NULL_BACKEND_H

#include "gm/backend.h"

extern const gm_backend_ops gm__null_backend;

/* Let `ns` of virtual time pass on a device of this backend (the handle behind the seam): points up to then have
 * passed. For tests that set the option latency. Thread-safe. */
void gm__null_advance(void *device, uint64_t ns);

#endif
