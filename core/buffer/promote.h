/* Bringing one buffer back to the device. */
#ifndef GM_CORE_BUFFER_PROMOTE_H
#define GM_CORE_BUFFER_PROMOTE_H

#include "core/base/inner.h"
#include "core/buffer/buffer.h"

/* Bring a buffer back that fell back, as gm_pool_promote would. One whose block somebody got without a lock stays,
 * unless the caller is `alone`. Then nobody has the block any more, and nobody can get it before the call ends. True:
 * the buffer is on the device. */
GM__INNER bool gm__promote_one(gm_buffer *buffer, bool alone);

#endif
