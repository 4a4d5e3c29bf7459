/* The record of an open or adopted device of CUDA, and small helpers. cuda_open.c makes and closes devices. */
#ifndef GM_BACKENDS_CUDA_DEVICE_H
#define GM_BACKENDS_CUDA_DEVICE_H

#include "backends/cuda/cuda_driver.h"

typedef struct gm__cuda_device {
  gm__runtime_device base; /* first */
  bool retained;           /* `base.context` is the primary one, with one reference that is ours */
} gm__cuda_device;

/* The driver's entries. `device` is a gm__cuda_device. */
static inline const gm__cuda_syms *gm__cuda_of(const void *device) {
  return &((const gm__cuda_driver *)((const gm__runtime_device *)device)->driver)->cu;
}

#endif
