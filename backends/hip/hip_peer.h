/* Between devices. The entries of the seam, group 17. */
#ifndef GM_BACKENDS_HIP_PEER_H
#define GM_BACKENDS_HIP_PEER_H

#include "backends/hip/hip_device.h"

gm_status gm__hip_peer_info(void *device, void *other, gm_peer_info *out, gm_error *err);
gm_status gm__hip_peer_enable(void *device, void *other, gm_error *err);
gm_status gm__hip_peer_disable(void *device, void *other, gm_close_mode mode, gm_error *err);
gm_status gm__hip_peer_access(void *device, void *other, uint64_t address, uint64_t bytes, gm_error *err);
gm_status gm__hip_peer_copy(void *device, void *stream, void *src_device, const gm_copy_item *item,
                            gm_backend_point *out, gm_error *err);

#endif
