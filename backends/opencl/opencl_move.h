/* One copy command between two places. A place is a buffer, an address or host memory. */
#ifndef GM_BACKENDS_OPENCL_MOVE_H
#define GM_BACKENDS_OPENCL_MOVE_H

#include "backends/opencl/opencl_mem.h"

typedef struct gm__opencl_place {
  cl_mem buffer; /* NULL: only an address, of the host or of unified shared memory */
  uint64_t offset;
  uintptr_t pointer; /* 0: only a buffer */
  bool viewed;       /* the engine uses sub-buffers of `buffer` */
} gm__opencl_place;

gm__opencl_place gm__opencl_place_of(const gm_memory *memory, uint64_t offset);
gm__opencl_place gm__opencl_place_of_host(const void *host);

/* Enqueue the copy. `event` may be NULL. REQUIRES: the ranges do not overlap. */
gm_status gm__opencl_move(gm__opencl_device *device, cl_command_queue queue, const gm__opencl_place *dst,
                          const gm__opencl_place *src, uint64_t bytes, cl_event *event, gm_error *err);

#endif
