/* Memory at an address: shared virtual memory (SVM), and Intel's unified shared memory (USM). */
#ifndef GM_BACKENDS_OPENCL_POINTER_H
#define GM_BACKENDS_OPENCL_POINTER_H

#include "backends/opencl/opencl_mem.h"
#include "gm/native_opencl.h"

/* The bytes to ask of the driver for `params`: more than params->bytes where the driver takes no such alignment. */
uint64_t gm__opencl_pointer_padded(const gm__opencl_device *device, gm__opencl_kind kind,
                                   const gm_memory_params *params);

/* Allocate for a record whose kind is set. A failure leaves the record as it was. */
gm_status gm__opencl_pointer_create(gm__opencl_device *device, const gm_memory_params *params,
                                    gm__opencl_memory *record, gm_error *err);

/* Allocate from the driver, for a USM kind. NULL: *code is the driver's code, which may be CL_SUCCESS all the same. */
void *gm__opencl_usm_take(gm__opencl_device *device, gm__opencl_kind kind, size_t bytes, cl_uint align, cl_int *code);

/* Free `base`, as the driver gave it. NULL does nothing. REQUIRES: no work uses the memory any more, because clSVMFree
 * does not wait. */
cl_int gm__opencl_pointer_free(gm__opencl_device *device, gm__opencl_kind kind, void *base);

/* Fill a record for an engine's address. */
gm_status gm__opencl_pointer_wrap(gm__opencl_device *device, const gm_opencl_memory *native, gm__opencl_memory *record,
                                  uint64_t *out_bytes, gm_error *err);

/* Fill a record for host memory of the engine's, which becomes a buffer without a copy. NOT_SUPPORTED: the device would
 * copy it. */
gm_status gm__opencl_pointer_wrap_host(gm__opencl_device *device, const gm_opencl_memory *native,
                                       gm__opencl_memory *record, uint64_t *out_bytes, gm_error *err);

#endif
