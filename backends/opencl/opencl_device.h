/* One open or adopted device: a context, and gm's own queue as soon as a call needs it. Thread-safe. Its one owner
 * closes it. */
#ifndef GM_BACKENDS_OPENCL_DEVICE_H
#define GM_BACKENDS_OPENCL_DEVICE_H

#include "backends/opencl/opencl_driver.h"
#include "core/base/map.h"
#include "core/base/thread.h"

/* gm's kernels: opencl_kernels.c. */
typedef struct gm__opencl_kernels {
  _Atomic int state;
  cl_program program;
  cl_kernel copy, expand;
  gm__mutex lock; /* of the arguments */
} gm__opencl_kernels;

/* opencl_host.c. */
typedef struct gm__opencl_host_range gm__opencl_host_range;

typedef struct gm__opencl_device {
  gm__opencl_driver *driver;
  bool alone; /* the driver serves this device alone, with the engine's loader, and closes with it */
  const gm__opencl_syms *cl;
  const gm_services *services;
  cl_device_id id;
  cl_context context; /* gm holds one reference */
  bool allow_queue;
  bool drops_copies;   /* the driver takes some copies for done that are not (opencl_move.c) */
  bool crashes_on_box; /* the driver crashes when it copies a box from or to a sub-buffer */
  gm_device_info info;
  gm__opencl_kinds kinds;
  _Atomic uint64_t *held;              /* the counter of the listed device, or `own_held` */
  _Atomic uint64_t own_held;           /* for a device that the driver does not list */
  _Atomic(cl_command_queue) own_queue; /* NULL until first needed */
  _Atomic int32_t lost;                /* the code that reported the loss; 0: not lost */
  gm__opencl_kernels kernels;
  gm__mutex lock; /* guards the members below */
  gm__map mapped; /* from a host address to the sub-buffer that is mapped there (opencl_map.c) */
  gm__opencl_host_range *host_ranges;
} gm__opencl_device;

/* Is `part` the device `whole`, or a sub-device of it? Some drivers (PoCL) list the whole device in contexts that were
 * made for a part. */
bool gm__opencl_device_within(const gm__opencl_syms *cl, cl_device_id part, cl_device_id whole);

/* Fill `err` as gm__opencl_fail does. A code that reports a lost device marks the device as lost and becomes
 * DEVICE_LOST. `waited`: the call waited for work (clFinish, clWaitForEvents, the state of an event). There
 * CL_OUT_OF_RESOURCES from NVIDIA means that a faulty kernel has killed the context. */
gm_status gm__opencl_device_fail(gm__opencl_device *device, cl_int code, bool waited, const char *op, gm_error *err);

/* GM_OK for CL_SUCCESS, else gm__opencl_device_fail for a call that did not wait. */
gm_status gm__opencl_check(gm__opencl_device *device, cl_int code, const char *op, gm_error *err);

#endif
