/* The other pools of a pool's device, but those over an upstream, whose memory is somebody's else: what they keep
 * serves where the device has no more. Takes the locks it needs; none may be held. */
#ifndef GM_CORE_POOL_SIBLING_H
#define GM_CORE_POOL_SIBLING_H

#include "core/pool/pool.h"

typedef struct gm__siblings {
  uint64_t pooled; /* bytes that they keep, in whatever pieces and busy or not: never more can be had of them */
  uint64_t calls;  /* of the driver's, ever: bytes of the device changed hands with each */
} gm__siblings;

gm__siblings gm__siblings_read(const gm_pool *pool);

/* Bytes of the device that they could give back now. Asks their streams how far they are, as a trim does. */
uint64_t gm__siblings_idle(const gm_pool *pool);

/* They give back what is idle until the device has so many bytes more, or there are none. False: nothing was. */
bool gm__siblings_trim(const gm_pool *pool, uint64_t bytes);

#endif
