/* OpenCL objects that an engine lends to gm or asks gm for. Handles are cl_* cast to uintptr_t. gm retains what it is
 * given (clRetain...) and releases it when its own object is closed; it destroys nothing. */
#ifndef GM_NATIVE_OPENCL_H
#define GM_NATIVE_OPENCL_H

#include <stdbool.h>

#include "gm/native.h"

GM_BEGIN_DECLS

typedef struct gm_opencl_device {
  gm_native_device head; /* {sizeof(gm_opencl_device), GM_API_OPENCL} */
  bool allow_queue;      /* gm may create a queue of its own on the context (false: copies need an adopted queue) */
  uintptr_t device;      /* cl_device_id; 0: the context's only device */
  uintptr_t context;     /* cl_context, required */
  void *(*get_proc)(void *user, const char *name); /* the engine's loader: the entry of that name (dlsym of its
                                                      library), NULL: it has none. Called while the device is adopted.
                                                      NULL: gm opens the system's libOpenCL.so.1. NULL on output */
  void *get_proc_user;
} gm_opencl_device;

typedef struct gm_opencl_queue {
  gm_native_stream head; /* {sizeof(gm_opencl_queue), GM_API_OPENCL} */
  uintptr_t queue;       /* cl_command_queue of the adopted context and device; in order or out of order: gm asks */
} gm_opencl_queue;

typedef struct gm_opencl_point {
  gm_native_point head; /* {sizeof(gm_opencl_point), GM_API_OPENCL} */
  uintptr_t event;      /* cl_event */
} gm_opencl_point;

/* Either a buffer (`memory`) or an address (`pointer`), the other one 0. A block at an address goes to a kernel by
 * clSetKernelArgSVMPointer, or by clSetKernelArgMemPointerINTEL where `unified` is set. To be wrapped, shared virtual
 * memory needs its `bytes`, since OpenCL does not tell them, and must outlive gm's use of it. */
typedef struct gm_opencl_memory {
  gm_native_memory head; /* {sizeof(gm_opencl_memory), GM_API_OPENCL} */
  bool unified;          /* out: `pointer` is Intel's unified shared memory; in: not read, gm asks */
  uintptr_t memory;      /* cl_mem: the parent buffer */
  uint64_t offset;   /* bytes from the start of `memory`, or from `pointer`, to the block; out of gm 0 with `pointer` */
  uint64_t bytes;    /* of the block, not of `memory`, in which other blocks may lie, also behind one at offset 0; to be
                        wrapped: 0 for all that follow `offset` */
  uintptr_t view;    /* out of gm_block_view_create: the sub-buffer; else 0 */
  uintptr_t pointer; /* of shared virtual memory, or of Intel's unified shared memory */
  uint64_t memory_bytes; /* out: of `memory` as a whole (CL_MEM_SIZE); it is the block alone where `offset` is 0 and
                            this is `bytes`. 0 with `pointer`. In: not read */
} gm_opencl_memory;

GM_END_DECLS

#endif
