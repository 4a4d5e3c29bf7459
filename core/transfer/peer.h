/* Inside of copies between devices. */
#ifndef GM_CORE_TRANSFER_PEER_H
#define GM_CORE_TRANSFER_PEER_H

#include "core/device/peer.h"
#include "gm/peer.h"

/* Do the driver's copies from `src` bring the bytes? Tried once for each way, with 256 bytes of gm's own on both
 * devices; *out is remembered. A failure says nothing about the copies: the next call tries again. */
gm_status gm__peer_prove(gm__peer_way *way, gm_device *src, gm__peer_proof *out, gm_error *err);

#endif
