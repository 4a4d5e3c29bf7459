/* Inside of copies between devices. */
#ifndef GM_CORE_TRANSFER_PEER_H
#define GM_CORE_TRANSFER_PEER_H

#include "core/block/access.h"
#include "core/device/peer.h"
#include "gm/peer.h"

/* Proves whether the driver's copies from `src` bring the bytes. Each way is tried once, with 256 bytes of gm's own on
 * both devices, and *out is remembered. A failure says nothing about the copies: the next call tries again. */
gm_status gm__peer_prove(gm__peer_way *way, gm_device *src, gm__peer_proof *out, gm_error *err);

#endif
