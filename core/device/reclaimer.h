/* Reclaimers of a device: each keeps idle bytes of it, and gives them back when another one lacks memory. A pool over
 * the device's own memory is one. Takes the locks it needs; none may be held. */
#ifndef GM_CORE_DEVICE_RECLAIMER_H
#define GM_CORE_DEVICE_RECLAIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/device.h"

typedef struct gm__reclaimer {
  struct gm__reclaimer *prev, *next; /* of the device: under the context's lock, with `listed` and `pins` */
  bool listed;                       /* between add and remove */
  _Atomic uint32_t resting;          /* 1: it has no memory, so it is in no list until it takes some */
  uint32_t pins;                     /* threads that work with it: it stays until they are done */
  void *user;
  uint64_t (*held)(void *user);   /* bytes that it has, in use or not. Takes no lock */
  uint64_t (*pooled)(void *user); /* bytes that it keeps, in whatever pieces and busy or not. Takes no lock */
  uint64_t (*idle)(void *user);   /* bytes that it could give back now. Asks streams how far they are */
  uint64_t (*give)(void *user, uint64_t keep_bytes); /* gives idle bytes back, down to `keep_bytes`: how many */
} gm__reclaimer;

void gm__device_add_reclaimer(gm_device *device, gm__reclaimer *reclaimer);
/* False: another thread works with it for longer than a second. */
bool gm__device_remove_reclaimer(gm_device *device, gm__reclaimer *reclaimer);

/* The reclaimer has taken memory; `held` says so already. REQUIRES: no lock but turns. */
void gm__reclaimer_took(gm_device *device, gm__reclaimer *reclaimer);

/* Pins a reclaimer that is listed, so that it stays until the pin goes. False: it is not listed. REQUIRES: context
 * lock. */
bool gm__reclaimer_pin(gm__reclaimer *reclaimer);
void gm__reclaimer_unpin(gm__reclaimer *reclaimer);

/* The bytes that all but `self` keep: never more can be had of them. It stops once they are `enough`. Those that keep
 * nothing come behind the others, and those that have nothing are looked at no more. */
uint64_t gm__reclaimers_pooled(gm_device *device, const gm__reclaimer *self, uint64_t enough);

/* How often bytes of the device came from the driver or went back. */
uint64_t gm__reclaimers_moves(const gm_device *device);

/* Bytes of the device that all but `self` could give back now. No more are asked once these are `enough`. */
uint64_t gm__reclaimers_idle(gm_device *device, const gm__reclaimer *self, uint64_t enough);

/* All but `self` give back what is idle, until the device has `bytes` more. Returns the bytes that they gave. */
uint64_t gm__reclaimers_trim(gm_device *device, const gm__reclaimer *self, uint64_t bytes);

#endif
