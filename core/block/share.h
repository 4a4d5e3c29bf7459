/* Memory that processes share: which pools can share, and which words of a gm_shared fit together. */
#ifndef GM_CORE_BLOCK_SHARE_H
#define GM_CORE_BLOCK_SHARE_H

#include "core/pool/pool.h"
#include "gm/share.h"

/* Can a pool of the device be made to share as the parameters say? INVALID_ARGUMENT. NOT_SUPPORTED names the kinds that
 * the device has. */
gm_status gm__share_check_pool(const gm_device *device, const gm_pool_params *params, gm_error *err);

/* Do the words of a gm_shared fit together? `op` is for the message. INVALID_ARGUMENT. */
gm_status gm__share_check_words(const gm_shared *shared, const char *op, gm_error *err);

#endif
