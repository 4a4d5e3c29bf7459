/* The border of the null backend: simulated devices of any capacity, with addresses and no memory. Time passes only
 * while somebody waits. For planning, replaying traces and tests. null_options.h lists the options. */
#ifndef GM_BACKENDS_NULL_NULL_BACKEND_H
#define GM_BACKENDS_NULL_NULL_BACKEND_H

#include "backends/shared/link_model.h"
#include "gm/backend.h"

extern const gm_backend_ops gm__null_backend;

/* Let `ns` of virtual time pass on a device of this backend. Every point up to that moment has then passed. `device` is
 * the handle behind the seam. For tests that set the option `latency`. Thread-safe. */
void gm__null_advance(void *device, uint64_t ns);

/* The link model on a null device, for tests. Copies take the time that the links of a card take, on engines that run
 * beside each other. It is off until a test switches it on. There is no memory behind a null device: what comes down
 * are bytes 0xcd, at the end of the copy. `device` and `stream` are handles behind the seam. Thread-safe. */

/* From now on `spec` (gm__link_read) holds, with an empty journal; NULL: no model. Work that was submitted before ends
 * first. INVALID_ARGUMENT names the wrong word; OUT_OF_HOST_MEMORY; the old state stays then. */
gm_status gm__null_link(void *device, const char *spec, gm_error *err);

/* Submit a kernel to `stream`. It costs what its name costs, and uses the ranges `to` and `from` of `bytes` each (0:
 * none). `name` must live until the kernel has ended. NOT_SUPPORTED without a model; OUT_OF_HOST_MEMORY. */
gm_status gm__null_launch(void *device, void *stream, const char *name, uint64_t to, uint64_t from, uint64_t bytes,
                          gm_backend_point *out, gm_error *err);

/* The host reads or writes memory now: see gm__link_use. True without a model. */
bool gm__null_use(void *device, const void *at, uint64_t bytes, bool writes);

/* How much was used too early since the model was switched on. */
uint64_t gm__null_early(void *device);

/* Copy the newest lines of the journal, oldest first, at most `capacity`. Returns how many were ever written. */
uint64_t gm__null_journal(void *device, gm__link_entry *out, uint64_t capacity);

#endif
