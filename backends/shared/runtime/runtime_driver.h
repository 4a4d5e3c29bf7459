/* The library: found, loaded, asked what it is, and its list of devices. */
#ifndef GM_BACKENDS_SHARED_RUNTIME_RUNTIME_DRIVER_H
#define GM_BACKENDS_SHARED_RUNTIME_RUNTIME_DRIVER_H

#include "backends/shared/runtime/runtime.h"

/* Fill `infos` with the `count` devices that the driver told by `op`. A count that cannot be is GM_ERR_DRIVER. */
gm_status gm__runtime_driver_list(gm__runtime_driver *driver, int count, const char *op, gm_error *err);

/* The entries `probe` and `init` of the seam. Each backend passes its tables. */
gm_status gm__runtime_probe(const gm__runtime *api, const gm_backend_host *host, gm_probe_level level,
                            gm_driver_info *out, gm_error *err);

gm_status gm__runtime_init(const gm__runtime *api, const gm_backend_ops *ops, const gm_backend_host *host,
                           void **out_driver, gm_error *err);

#endif
