/* How often a buffer was used lately, and when it last left the device. REQUIRES, for each function: the lock of
 * gm_pool.buffers. */
#ifndef GM_CORE_BUFFER_HEAT_H
#define GM_CORE_BUFFER_HEAT_H

#include "core/buffer/buffer.h"

/* Notes a use. */
void gm__heat_use(gm_buffer *buffer);

/* Heat counts uses, and those of a second ago count half. So it ends some time after the last use. Both are in turns of
 * a quarter of a second: a moment, and the end of a buffer's heat as of now. A buffer that ends later is hotter. */
uint64_t gm__heat_turn(uint64_t now);
uint64_t gm__heat_end(const gm_buffer *buffer);

/* Notes that want of memory has put the buffer off the device. */
void gm__heat_demoted(gm_buffer *buffer);

/* Has the buffer been off the device for long enough? `wait_ns` doubles with each time that it was put off. */
bool gm__heat_has_waited(const gm_buffer *buffer, uint64_t now, uint64_t wait_ns);

#endif
