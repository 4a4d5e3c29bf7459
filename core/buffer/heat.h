/* How often a buffer was used lately, and when it last left the device. REQUIRES, for each function: the lock of
 * gm_pool.buffers. */
#ifndef GM_CORE_BUFFER_HEAT_H
#define GM_CORE_BUFFER_HEAT_H

#include "core/buffer/buffer.h"

/* Notes a use. */
void gm__heat_use(gm_buffer *buffer);

/* The heat at the time `now`: uses, where those of a second ago count half. */
uint64_t gm__heat_at(const gm_buffer *buffer, uint64_t now);

/* Notes that want of memory has put the buffer off the device. */
void gm__heat_demoted(gm_buffer *buffer);

/* Has the buffer been off the device for long enough? `wait_ns` doubles with each time that it was put off. */
bool gm__heat_has_waited(const gm_buffer *buffer, uint64_t now, uint64_t wait_ns);

#endif
