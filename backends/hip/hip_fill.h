/* Fills with patterns of 8 and 16 bytes by gm's own kernel. */
#ifndef GM_BACKENDS_HIP_FILL_H
#define GM_BACKENDS_HIP_FILL_H

#include <stdbool.h>
#include <stdint.h>

/* set_ring of HIP's table. A failed launch has done nothing. Unless the device is lost, the fill goes on with copies.
 */
int gm__hip_fill_ring(void *user, uint64_t at, const uint8_t *ring, uint64_t bytes, bool *out_done);

#endif
