/* gm's own kernels on one device. The driver compiles them when somebody first wants one, which takes up to seconds.
 * Every caller must be able to go without. Thread-safe. */
#ifndef GM_BACKENDS_OPENCL_KERNELS_H
#define GM_BACKENDS_OPENCL_KERNELS_H

#include "backends/opencl/opencl_mem.h"

/* Compiles nothing yet. */
void gm__opencl_kernels_open(gm__opencl_device *device);

/* Submits all items as one kernel. False: they do not suit it, or the driver refused; nothing was submitted, and
 * copies do the same. The kernel takes many small items between two buffers, sorted by their targets. */
bool gm__opencl_kernels_copy(gm__opencl_device *device, cl_command_queue queue, const gm_copy_item *items,
                             uint32_t count, cl_event *event);

/* `count` floats of 16 bits, which become floats of 32 bits. Offsets are bytes. */
typedef struct gm__opencl_expansion {
  const gm__opencl_memory *to, *from;
  uint64_t to_offset, from_offset, count;
  bool half; /* fp16, not bf16 */
} gm__opencl_expansion;

/* Submits it. False: it does not suit the kernel, or the driver refused; nothing was submitted. */
bool gm__opencl_kernels_expand(gm__opencl_device *device, cl_command_queue queue, const gm__opencl_expansion *e,
                               cl_event *event);

/* REQUIRES: no kernel runs any more. */
void gm__opencl_kernels_close(gm__opencl_device *device, gm_close_mode mode);

#endif
