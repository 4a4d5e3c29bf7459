/* One open or adopted device: HIP's one context of it, gm's own stream when it is needed, and the cache of events.
 * Thread-safe; closed by its one owner. */
#ifndef GM_BACKENDS_HIP_DEVICE_H
#define GM_BACKENDS_HIP_DEVICE_H

#include <stdatomic.h>

#include "backends/hip/hip_driver.h"
#include "core/base/event_slots.h"
#include "core/base/map.h"
#include "core/base/vmm_memory.h"

typedef struct gm__hip_stream gm__hip_stream;
typedef struct gm__hip_range gm__hip_range;

typedef enum gm__hip_program_state {
  GM__HIP_PROGRAM_NONE, /* nobody wanted it yet */
  GM__HIP_PROGRAM_BUSY, /* one thread compiles */
  GM__HIP_PROGRAM_READY,
  GM__HIP_PROGRAM_REFUSED
} gm__hip_program_state;

/* gm's kernels; hip_program.c has the rules. */
typedef struct gm__hip_program {
  _Atomic int state; /* gm__hip_program_state */
  hipModule_t module;
  hipFunction_t fill;
} gm__hip_program;

typedef struct gm__hip_device {
  gm__hip_driver *driver;
  const gm__hip_syms *hip;
  const gm_services *services;
  gm_device_info info;             /* its index is HIP's ordinal */
  _Atomic(hipStream_t) own_stream; /* NULL until first needed */
  _Atomic int32_t lost;            /* the code that told; 0: not lost */
  gm__hip_program program;
  gm__event_slots events;
  gm__vmm_table mapped; /* memory that can be shared as a descriptor, and what was imported so */

  gm__mutex lock;          /* of what follows */
  gm__hip_stream *adopted; /* streams that an engine may be capturing */
  gm__map peers;           /* ordinals that this device was given access to */

  gm__mutex ranges_lock; /* of what follows */
  gm__hip_range *ranges; /* address ranges and what is mapped in them */
} gm__hip_device;

/* The entries of the seam, groups 3 to 6. */
gm_status gm__hip_device_count(void *driver, uint32_t *out, gm_error *err);
gm_status gm__hip_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err);
gm_status gm__hip_device_open(void *driver, uint32_t index, void **out_device, gm_error *err);
gm_status gm__hip_device_adopt(void *driver, const gm_native_device *native, void **out_device, gm_error *err);
void gm__hip_device_close(void *device, gm_close_mode mode);
gm_status gm__hip_device_state(void *device, gm_error *err);
gm_status gm__hip_device_native(void *device, gm_native_device *out, gm_error *err);
gm_status gm__hip_device_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err);

/* As gm__hip_fail; a code that tells of a lost device is remembered. */
gm_status gm__hip_device_fail(gm__hip_device *device, hipError_t code, const char *op, gm_error *err);

/* What a call that gives something back means to the caller: GM_OK also when the device is lost or HIP has shut down,
 * since then there is nothing left. */
gm_status gm__hip_device_released(gm__hip_device *device, hipError_t code, const char *op, gm_error *err);

#endif
