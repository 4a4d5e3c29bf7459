/* Transfers by the host, for a device where calls without a stream have none. */
#ifndef GM_CORE_BLOCK_BY_HOST_H
#define GM_CORE_BLOCK_BY_HOST_H

#include "core/block/access.h"

/* Writes, reads or fills memory that the host can map; nothing else uses the range. NOT_SUPPORTED: the memory is not
 * host-visible, the API maps on a queue, or it is a copy between blocks. */
gm_status gm__access_by_host(const gm__access *access, const gm__transfer *what, const char *op, gm_error *err);

#endif
