/* Moving one buffer. REQUIRES, for each function: the buffer is seized, or nobody else has it. */
#ifndef GM_CORE_BUFFER_MOVE_H
#define GM_CORE_BUFFER_MOVE_H

#include "core/buffer/buffer.h"

/* Counts a buffer that is not where it was wanted, or no longer. */
void gm__buffer_note_place(gm_buffer *buffer);

/* Moves the buffer's bytes. After a failure it is where it was. */
gm_status gm__buffer_go(gm_buffer *buffer, gm_location where, gm_stream *stream, const char *op, gm_error *err);

/* Like gm__buffer_go, to a place that is taken. After a failure the place is given back. */
gm_status gm__buffer_move_in(gm_buffer *buffer, gm__place *to, gm_stream *stream, const char *op, gm_error *err);

#endif
