/* One open or adopted device: a context, and gm's own queue when it is needed. Thread-safe; closed by its one owner. */
#ifndef GM_BACKENDS_OPENCL_DEVICE_H
#define GM_BACKENDS_OPENCL_DEVICE_H

#include "backends/opencl/opencl_driver.h"
#include "core/base/map.h"
#include "core/base/thread.h"

typedef struct gm__opencl_device {
  gm__opencl_driver *driver;
  bool alone; /* the driver is of the engine's loader, for this device only, and goes with it */
  const gm__opencl_syms *cl;
  const gm_services *services;
  cl_device_id id;
  cl_context context; /* one reference is ours */
  bool allow_queue;
  gm_device_info info;
  gm__opencl_kinds kinds;
  _Atomic uint64_t *held;              /* the listed device's counter, or `own_held` */
  _Atomic uint64_t own_held;           /* of a device that is not listed */
  _Atomic(cl_command_queue) own_queue; /* NULL until first needed */
  _Atomic int32_t lost;                /* the code that told; 0: not lost */
  gm__mutex lock;                      /* of `mapped` */
  gm__map mapped;                      /* host address to the sub-buffer that was mapped there: opencl_map.c */
} gm__opencl_device;

/* The entries of the seam, groups 3 to 7. */
gm_status gm__opencl_device_count(void *driver, uint32_t *out, gm_error *err);
gm_status gm__opencl_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err);
gm_status gm__opencl_device_open(void *driver, uint32_t index, void **out_device, gm_error *err);
gm_status gm__opencl_device_adopt(void *driver, const gm_native_device *native, void **out_device, gm_error *err);
gm_status gm__opencl_device_adopt_alone(const gm_backend_host *host, const gm_native_device *native, void **out_device,
                                        gm_error *err);
void gm__opencl_device_close(void *device, gm_close_mode mode);
gm_status gm__opencl_device_state(void *device, gm_error *err);
gm_status gm__opencl_device_native(void *device, gm_native_device *out, gm_error *err);
gm_status gm__opencl_device_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err);

/* `part` is `whole`, or a sub-device of it. Some drivers (PoCL) list the whole in contexts made for a part. */
bool gm__opencl_device_within(const gm__opencl_syms *cl, cl_device_id part, cl_device_id whole);

/* gm's own in-order queue, made on first use; NOT_SUPPORTED where the engine forbids it. Borrowed. */
gm_status gm__opencl_device_queue(gm__opencl_device *device, cl_command_queue *out, gm_error *err);

/* As gm__opencl_fail; a code that tells of a lost device is remembered and becomes DEVICE_LOST. `waited` true: the call
 * waited for work (clFinish, clWaitForEvents, a status of an event), where CL_OUT_OF_RESOURCES on NVIDIA is the sign of
 * a context killed by a faulty kernel. */
gm_status gm__opencl_device_fail(gm__opencl_device *device, cl_int code, bool waited, const char *op, gm_error *err);

#endif
