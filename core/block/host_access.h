/* What the host may do with the memory of a block, and the range that it must flush or invalidate. */
#ifndef GM_CORE_BLOCK_HOST_ACCESS_H
#define GM_CORE_BLOCK_HOST_ACCESS_H

#include "core/block/access.h"

/* True when host and device see each other's bytes without flush and invalidate. */
bool gm__host_access_is_coherent(const gm__access *access);

/* Widens the range to whole atoms, inside the memory: those bytes belong to this block alone. */
gm__access gm__host_access_widen(const gm__access *access);

/* NOT_SUPPORTED: the host cannot reach the memory at all. */
gm_status gm__host_access_check(const gm__access *access, const char *op, gm_error *err);

#endif
