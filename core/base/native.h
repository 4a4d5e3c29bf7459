/* Native structs that an engine and a backend pass to each other: each begins with a head of struct_size and API, and
 * may be older or newer than gm's (core/base/sized.h). Thread-safe: touches only what the caller passes. */
#ifndef GM_CORE_BASE_NATIVE_H
#define GM_CORE_BASE_NATIVE_H

#include <stddef.h>

#include "gm/native.h"
#include "gm/status.h"

/* The caller's native struct `theirs`, in gm `bytes` long, is one of `api`, with a size that can be. INVALID_ARGUMENT.
 */
gm_status gm__native_check(const void *theirs, size_t bytes, gm_api api, const char *op, const char *name,
                           gm_error *err);

/* `to` becomes what it says, in gm's size. INVALID_ARGUMENT as gm__native_check; NOT_SUPPORTED as gm__sized_in. */
gm_status gm__native_in(void *to, size_t bytes, const void *from, gm_api api, const char *op, const char *name,
                        gm_error *err);

#endif
