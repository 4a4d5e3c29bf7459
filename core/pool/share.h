/* Memory of other processes: what is opened for a device, by whom it is used, and when it is closed. */
#ifndef GM_CORE_POOL_SHARE_H
#define GM_CORE_POOL_SHARE_H

#include "core/pool/pool.h"
#include "gm/share.h"

typedef struct gm__opened gm__opened; /* one allocation of another process's driver, open in ours; counted */

/* Can a pool of the device be made to share so? INVALID_ARGUMENT, NOT_SUPPORTED with the kinds that there are. */
gm_status gm__share_check_pool(const gm_device *device, const gm_pool_params *params, gm_error *err);

/* A gm_shared whose words fit together; `op` for the message. INVALID_ARGUMENT. */
gm_status gm__share_check_words(const gm_shared *shared, const char *op, gm_error *err);

/* Is it a kind that travels as a descriptor? */
static inline bool gm__share_has_descriptor(gm_share_kind kind) {
  return kind == GM_SHARE_FD || kind == GM_SHARE_DMABUF;
}

/* One user less; the last one's release closes it. Not with the pool's lock. In a forked child host memory only. */
void gm__share_release(gm_device *device, gm__opened *opened);

/* Wait until `stream` (NULL: none) and the streams of gm_use_on are done with an imported block. BUSY: one of them is
 * being captured, or nothing can wait for it. Steps out of the pool's lock, so the block may be gone afterwards. */
GM__MUST_USE gm_status gm__share_drain(gm_pool *pool, const gm__node *node, gm_stream *stream, gm_error *err);

#endif
