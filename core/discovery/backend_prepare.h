/* A backend's table of entries, made safe to call: checked, copied, every missing entry filled. */
#ifndef GM_CORE_DISCOVERY_BACKEND_PREPARE_H
#define GM_CORE_DISCOVERY_BACKEND_PREPARE_H

#include "gm/backend.h"

/* Copy `ops` into *out. Where it has NULL, *out has stubs that answer GM_ERR_NOT_SUPPORTED. ABI_MISMATCH: another
 * ABI number or struct size. INVALID_ARGUMENT names what is wrong: a required entry that is missing, the first
 * missing entry of a half group, a reserved entry, a bad name. */
gm_status gm__backend_prepare(const gm_backend_ops *ops, gm_backend_ops *out, gm_error *err);

/* The capability bits that follow from the groups a prepared table really has. */
uint64_t gm__backend_group_capabilities(const gm_backend_ops *prepared);

#endif
