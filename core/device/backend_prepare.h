/* Making a backend's table safe to call: checked, copied, every hole filled. */
#ifndef GM_CORE_DEVICE_BACKEND_PREPARE_H
#define GM_CORE_DEVICE_BACKEND_PREPARE_H

#include "gm/backend.h"

/* Copy `ops` into *out with stubs that answer GM_ERR_NOT_SUPPORTED where it has NULL. ABI_MISMATCH (another ABI number
 * or struct size); INVALID_ARGUMENT naming a required entry that is missing, the first missing entry of a group that is
 * half there, a reserved entry that is set, or a bad name. */
gm_status gm__backend_prepare(const gm_backend_ops *ops, gm_backend_ops *out, gm_error *err);

/* The capability bits that follow from the groups a prepared table really has. */
uint64_t gm__backend_group_capabilities(const gm_backend_ops *prepared);

#endif
