/* Memory at an address: shared virtual memory (SVM), and Intel's unified shared memory (USM). */
#ifndef GM_BACKENDS_OPENCL_POINTER_H
#define GM_BACKENDS_OPENCL_POINTER_H

#include "backends/opencl/opencl_mem.h"
#include "gm/native_opencl.h"

/* What is asked of the driver for `params`: more than params->bytes where it cannot be told the alignment. */
uint64_t gm__opencl_pointer_padded(const gm__opencl_device *device, gm__opencl_kind kind,
                                   const gm_memory_params *params);

/* Fill a record whose kind is set; on failure nothing is left in it. */
gm_status gm__opencl_pointer_create(gm__opencl_device *device, const gm_memory_params *params,
                                    gm__opencl_memory *record, gm_error *err);

/* A driver allocation of a USM kind; NULL with its code (CL_SUCCESS where the driver says so all the same). */
void *gm__opencl_usm_take(gm__opencl_device *device, gm__opencl_kind kind, size_t bytes, cl_uint align, cl_int *code);

/* `base` as the driver gave it; NULL: nothing. gm has made sure that an SVM pointer is used no more, since clSVMFree
 * does not wait. */
cl_int gm__opencl_pointer_free(gm__opencl_device *device, gm__opencl_kind kind, void *base);

/* An engine's address, into a record. */
gm_status gm__opencl_pointer_wrap(gm__opencl_device *device, const gm_opencl_memory *native, gm__opencl_memory *record,
                                  uint64_t *out_bytes, gm_error *err);

#endif
