/* OpenCL objects that an engine lends to gm, or asks gm for. A handle is a cl_* object cast to uintptr_t. gm retains
 * what it receives (clRetain...), and releases it when its own object is closed. gm destroys nothing. */
#ifndef GM_NATIVE_OPENCL_H
#define GM_NATIVE_OPENCL_H

#include <stdbool.h>

#include "gm/native.h"

GM_BEGIN_DECLS

typedef struct gm_opencl_device {
  gm_native_device head; /* {sizeof(gm_opencl_device), GM_API_OPENCL} */
  bool allow_queue;      /* gm may create a queue of its own in the context; false: copies need an adopted queue */
  uintptr_t device;      /* cl_device_id; 0: the context's only device */
  uintptr_t context;     /* cl_context, required */
  void *(*get_proc)(void *user, const char *name); /* the engine's loader (dlsym of its library); it returns the
                                                      entry `name`, or NULL where it has none. gm calls it while it
                                                      adopts the device. It must not throw. NULL: gm opens the system's
                                                      libOpenCL.so.1. NULL on output */
  void *get_proc_user;
} gm_opencl_device;

typedef struct gm_opencl_queue {
  gm_native_stream head; /* {sizeof(gm_opencl_queue), GM_API_OPENCL} */
  uintptr_t queue;       /* cl_command_queue of the adopted context and device; gm asks whether it is in order or out
                            of order */
} gm_opencl_queue;

typedef struct gm_opencl_point {
  gm_native_point head; /* {sizeof(gm_opencl_point), GM_API_OPENCL} */
  uintptr_t event;      /* cl_event */
} gm_opencl_point;

/* A piece of OpenCL memory: a buffer (`memory`), an address (`pointer`), or to wrap, host memory (`mapped`). The others
 * are 0. A kernel gets a
 * block at an address by clSetKernelArgSVMPointer. Where `unified` is set it gets it by clSetKernelArgMemPointerINTEL.
 * To wrap shared virtual memory the caller sets `bytes`, which OpenCL does not tell. That memory must outlive gm's use
 * of it. */
typedef struct gm_opencl_memory {
  gm_native_memory head; /* {sizeof(gm_opencl_memory), GM_API_OPENCL} */
  bool unified;          /* out: `pointer` is Intel's unified shared memory; in: ignored, gm asks */
  uintptr_t memory;      /* cl_mem: the parent buffer */
  uint64_t offset;       /* bytes from the start of `memory` or `pointer` to the block; out: 0 with `pointer` */
  uint64_t bytes;        /* of the block; other blocks may lie in `memory`, too, even behind a block at offset 0. In, to
                            wrap: 0 means all bytes from `offset` on */
  uintptr_t view;        /* out of gm_block_object: a cl_mem of exactly the range, a sub-buffer or `memory` itself; 0
                            with `pointer`. Out of gm_block_native: 0 */
  uintptr_t pointer;     /* shared virtual memory, or Intel's unified shared memory */
  uint64_t memory_bytes; /* out: of `memory` as a whole (CL_MEM_SIZE). The block is alone in it where `offset` is 0
                            and this equals `bytes`. 0 with `pointer`. In: ignored */
  void *mapped; /* in: host memory that becomes a buffer without a copy, on a device whose memory is the host's.
                   It begins at a multiple of the device's alignment, has `bytes`, and outlives gm's use of it;
                   `offset` is 0. gm_free destroys the buffer. Out: NULL */
} gm_opencl_memory;

GM_END_DECLS

#endif
