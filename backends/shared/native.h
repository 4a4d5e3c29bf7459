/* Native structs that an engine and a backend exchange. Each begins with a head of struct_size and API, and may be
 * older or newer than gm's (core/base/sized.h). Thread-safe: these functions touch only the caller's arguments. */
#ifndef GM_BACKENDS_SHARED_NATIVE_H
#define GM_BACKENDS_SHARED_NATIVE_H

#include <stddef.h>

#include "gm/native.h"
#include "gm/status.h"

/* Check that the caller's struct `theirs` is of `api` and has a possible size. gm's own has `bytes`. INVALID_ARGUMENT.
 */
gm_status gm__native_check(const void *theirs, size_t bytes, gm_api api, const char *op, const char *name,
                           gm_error *err);

/* Check `from`, and copy it to `to` in gm's size. INVALID_ARGUMENT as gm__native_check. NOT_SUPPORTED as gm__sized_in.
 */
gm_status gm__native_in(void *to, size_t bytes, const void *from, gm_api api, const char *op, const char *name,
                        gm_error *err);

#endif
