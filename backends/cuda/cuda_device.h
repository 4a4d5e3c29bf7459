/* One open or adopted device: a context, gm's own stream when it is needed, and the cache of events. Thread-safe;
 * closed by its one owner. */
#ifndef GM_BACKENDS_CUDA_DEVICE_H
#define GM_BACKENDS_CUDA_DEVICE_H

#include <stdatomic.h>

#include "backends/cuda/cuda_driver.h"
#include "core/base/event_slots.h"
#include "core/base/map.h"
#include "core/base/vmm_memory.h"

typedef struct gm__cuda_stream gm__cuda_stream;

typedef struct gm__cuda_device {
  gm__cuda_driver *driver;
  const gm__cuda_syms *cu;
  const gm_services *services;
  CUdevice ordinal;
  CUcontext context;
  bool retained; /* `context` is the primary one, with one reference that is ours */
  gm_device_info info;
  _Atomic(CUstream) own_stream; /* NULL until first needed */
  _Atomic int32_t lost;         /* the code that told; 0: not lost */

  gm__event_slots events;
  gm__vmm_table mapped; /* memory that can be shared as a descriptor, and what was imported so */

  gm__mutex lock;           /* of what follows */
  gm__cuda_stream *adopted; /* streams that an engine may be capturing */
  gm__map registered;       /* host pointer to the bytes registered there, where it took several calls */
  gm__map peers;            /* contexts that this device was given access to */
} gm__cuda_device;

/* The entries of the seam, groups 3 to 6. */
gm_status gm__cuda_device_count(void *driver, uint32_t *out, gm_error *err);
gm_status gm__cuda_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err);
gm_status gm__cuda_device_open(void *driver, uint32_t index, void **out_device, gm_error *err);
gm_status gm__cuda_device_adopt(void *driver, const gm_native_device *native, void **out_device, gm_error *err);
void gm__cuda_device_close(void *device, gm_close_mode mode);
gm_status gm__cuda_device_state(void *device, gm_error *err);
gm_status gm__cuda_device_native(void *device, gm_native_device *out, gm_error *err);
gm_status gm__cuda_device_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err);

/* As gm__cuda_fail; a code that tells of a lost device is remembered. */
gm_status gm__cuda_device_fail(gm__cuda_device *device, CUresult code, const char *op, gm_error *err);

/* What a call that gives something back means to the caller: GM_OK also when the device is lost or the driver has shut
 * down, since then there is nothing left. */
gm_status gm__cuda_device_released(gm__cuda_device *device, CUresult code, const char *op, gm_error *err);

#endif
