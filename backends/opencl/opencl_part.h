/* A range of a buffer, as gm's commands name it. It lies in the buffer, or in a sub-buffer of gm's own where the engine
 * uses sub-buffers too. */
#ifndef GM_BACKENDS_OPENCL_PART_H
#define GM_BACKENDS_OPENCL_PART_H

#include "backends/opencl/opencl_device.h"

typedef struct gm__opencl_part {
  cl_mem buffer;   /* for the command */
  uint64_t offset; /* of the range in `buffer` */
  cl_mem view;     /* a sub-buffer to release after the command is enqueued; NULL: `buffer` is the whole */
} gm__opencl_part;

/* Open [at, at + bytes) of `buffer`. `viewed`: the engine uses sub-buffers of it. A failure leaves nothing open. */
gm_status gm__opencl_part_open(gm__opencl_device *device, cl_mem buffer, bool viewed, uint64_t at, uint64_t bytes,
                               gm__opencl_part *out, gm_error *err);
void gm__opencl_part_close(const gm__opencl_device *device, const gm__opencl_part *part);

/* One side of a copy. */
typedef struct gm__opencl_range {
  cl_mem buffer; /* NULL: the side has no buffer */
  bool viewed;
  uint64_t at, bytes;
} gm__opencl_range;

typedef struct gm__opencl_sides {
  gm__opencl_part to, from;
} gm__opencl_sides;

/* Open both sides of a copy. Ranges of one buffer that share bytes, or lie closer than the alignment, share a part.
 * Close them after the command is enqueued. A failure leaves nothing open. */
gm_status gm__opencl_sides_open(gm__opencl_device *device, const gm__opencl_range *dst, const gm__opencl_range *src,
                                gm__opencl_sides *out, gm_error *err);
void gm__opencl_sides_close(const gm__opencl_device *device, const gm__opencl_sides *sides);

#endif
