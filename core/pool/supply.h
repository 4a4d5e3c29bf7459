/* Where a pool's memory comes from and goes back to: the device's backend, or the user's callbacks. No lock of the pool
 * is held while they are called. */
#ifndef GM_CORE_POOL_SUPPLY_H
#define GM_CORE_POOL_SUPPLY_H

#include "core/pool/pool.h"
#include "core/pool/request.h"

/* `bytes` for the request, in a node that is AWAY. OVER_LIMIT, OUT_OF_DEVICE_MEMORY and the backend's other answers. */
gm_status gm__supply_take(gm_pool *pool, const gm__want *want, uint64_t bytes, gm__node **out, gm_error *err);

/* A node, AWAY, for memory that is there already, wrapped or imported: want->bytes at `offset` of it. `opened`: what
 * gives it back, or NULL. OVER_LIMIT, OUT_OF_HOST_MEMORY, INVALID_ARGUMENT (it overlaps other memory of the pool, and
 * is not opened); the memory stays the caller's then. */
gm_status gm__supply_adopt(gm_pool *pool, const gm__want *want, const gm_memory *memory, uint64_t offset,
                           struct gm__opened *opened, gm__node **out, gm_error *err);

/* For a trim to learn from the driver that an idle stream is idle: some drivers answer a point only after a round trip.
 * So all streams together get a moment, a millisecond at most, while no lock is held. */
void gm__supply_await(gm_pool *pool);

/* Make a range of addresses known that a segment stands for, in a node of its own; and forget it. OUT_OF_HOST_MEMORY,
 * DRIVER. */
gm_status gm__supply_enter_range(gm_pool *pool, const gm_memory *memory, gm__segment *segment, gm_error *err);
void gm__supply_leave_range(gm_pool *pool, gm__segment *segment);

/* Nodes on their way back, linked by links[GM__BY_BUCKET].next. */
typedef struct gm__leaving {
  gm__node *first;
  uint64_t bytes;
} gm__leaving;

/* Take a pooled node that is idle out of the pool and put it on the list. With the pool's lock. */
void gm__supply_detach(gm_pool *pool, gm__leaving *leaving, gm__node *node);

/* The same for a node that was never pooled. With the pool's lock. */
void gm__supply_leave(gm_pool *pool, gm__leaving *leaving, gm__node *node);

/* Give all on the list back. Without the lock. */
void gm__supply_return(gm_pool *pool, gm__leaving *leaving);

/* Fill with zeros, and wait for that. */
gm_status gm__supply_zero(gm_pool *pool, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err);

/* A failure that less, or another kind of, memory might not have. */
bool gm__supply_is_shortage(gm_status status);

/* Give idle pooled memory back, oldest first, until at most `keep_bytes` are pooled: only what was freed last by that
 * time of the device's clock (gm__freed_by). The bytes given back. */
uint64_t gm__supply_trim(gm_pool *pool, uint64_t keep_bytes, uint64_t freed_by);

/* At the end of a pool: give back every node, waiting for nothing; in a forked child only the host memory of it. */
void gm__supply_end(gm_pool *pool);

#endif
