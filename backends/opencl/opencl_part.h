/* A range of a buffer as a command of gm's names it: in the buffer or, where the engine uses sub-buffers of that, in a
 * sub-buffer of its own. */
#ifndef GM_BACKENDS_OPENCL_PART_H
#define GM_BACKENDS_OPENCL_PART_H

#include "backends/opencl/opencl_device.h"

typedef struct gm__opencl_part {
  cl_mem buffer;   /* for the command */
  uint64_t offset; /* of the range in it */
  cl_mem view;     /* to be let go of when the command is enqueued; NULL: the buffer itself is named */
} gm__opencl_part;

/* [at, at + bytes) of `buffer`; `viewed`: the engine uses sub-buffers of it. A failure leaves nothing. */
gm_status gm__opencl_part_open(gm__opencl_device *device, cl_mem buffer, bool viewed, uint64_t at, uint64_t bytes,
                               gm__opencl_part *out, gm_error *err);
void gm__opencl_part_close(const gm__opencl_device *device, const gm__opencl_part *part);

#endif
