/* The record of an open or adopted device of HIP, and small helpers. hip_open.c makes and closes devices. */
#ifndef GM_BACKENDS_HIP_DEVICE_H
#define GM_BACKENDS_HIP_DEVICE_H

#include "backends/hip/hip_driver.h"

typedef struct gm__hip_range gm__hip_range;

typedef struct gm__hip_device {
  gm__runtime_device base; /* first */
  gm__mutex ranges_lock;   /* of what follows */
  gm__hip_range *ranges;   /* address ranges and what is mapped in them */
} gm__hip_device;

/* HIP's entries. `device` is a gm__hip_device. */
static inline const gm__hip_syms *gm__hip_of(const void *device) {
  return &((const gm__hip_driver *)((const gm__runtime_device *)device)->driver)->hip;
}

/* A pointer that HIP gave, as a number. */
static inline gm__runtime_word gm__hip_word(const void *pointer) { return (uintptr_t)pointer; }

/* An address, as HIP's calls take it. */
static inline void *gm__hip_at(uint64_t address) { return (void *)(uintptr_t)address; }

#endif
