/* Which streams keep freed memory from others, and whether gm will hear of them. REQUIRES: the order's lock. */
#ifndef GM_CORE_ORDER_LATE_H
#define GM_CORE_ORDER_LATE_H

#include "core/order/order.h"

/* Ids of streams; 0: none was found. */
typedef struct gm__late {
  uint64_t unsettled; /* gm can ask nothing there: somebody must say gm_stream_passed */
  uint64_t working;   /* a point is under way there: the stream is done with the memory once that has passed */
  bool several;       /* more than one stream is unsettled */
} gm__late;

/* Adds what the streams of a settled last use say. It submits nothing. */
void gm__late_add(const gm__order *order, const gm__last_use *use, gm__late *late);

/* True when a request in the order of `slot` may use the memory, perhaps with a wait. Otherwise the streams in the way
 * are added. */
bool gm__late_lets(const gm__order *order, const gm__last_use *use, int slot, bool insert, gm__late *late);

#endif
