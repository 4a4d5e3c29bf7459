/* News that an order hears of its streams from others: the host has waited, the engine gives its word, a stream
 * closes. REQUIRES: the order's lock. */
#ifndef GM_CORE_ORDER_ORDER_TOLD_H
#define GM_CORE_ORDER_ORDER_TOLD_H

#include "core/order/order.h"

/* The host has waited for all work of the stream on blocks that were freed up to `clock`. */
void gm__order_note_synced(gm__order *order, const gm_stream *stream, uint64_t clock);

/* The engine says: all work of the stream on blocks freed up to `clock` is done at the point (NULL: is done now). The
 * point is copied. OUT_OF_HOST_MEMORY, NOT_SUPPORTED. */
gm_status gm__order_note_passed(gm__order *order, const gm_stream *stream, uint64_t clock, const gm_point *point,
                                gm_error *err);

/* The stream is done and closes: its points have passed, also those that other slots hold. */
void gm__order_forget_points(gm__order *order, const gm_stream *stream);

/* The live block is about to be freed on the stream of `slot`. At the point that stream is done with it. The last use
 * owns the point from now on. */
void gm__order_give_point(gm__order *order, gm__last_use *use, int slot, const gm_backend_point *point);

#endif
