/* Shared USM, which migrates. The entries of the seam, group 19. */
#ifndef GM_BACKENDS_OPENCL_MANAGED_H
#define GM_BACKENDS_OPENCL_MANAGED_H

#include "backends/opencl/opencl_device.h"

gm_status gm__opencl_managed_prefetch(void *device, void *stream, const gm_memory *memory, uint64_t offset,
                                      uint64_t bytes, gm_managed_place place, gm_backend_point *out, gm_error *err);

/* Checked and then ignored: the extension has a call for advice, and defines none to give. */
gm_status gm__opencl_managed_advise(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                    gm_managed_advice advice, gm_managed_place place, bool give, gm_error *err);

#endif
