#include "core/pool/sibling.h"

#include "core/base/saturate.h"
#include "core/pool/supply.h"
#include "gm/cleanup.h"

/* Invariant: who holds the device's trim_lock may use its pools that are in the context's list, because none leaves the
 * list meanwhile. It is taken before all locks of pools, and by nobody who holds one; so two pools that are refused at
 * the same time trim one after the other. */

static bool sibling_counts(const gm_pool *self, const gm_pool *other) {
  return other != self && other->device == self->device && !other->has_upstream;
}

/* The next sibling in the list behind that one; NULL: the first one, and no more. Inside the context's lock. */
static gm_pool *sibling_behind(const gm_pool *self, const gm_pool *from) {
  gm_pool *next = from ? from->next : self->device->ctx->slots[GM__SLOT_POOLS];
  while (next && !sibling_counts(self, next)) next = next->next;
  return next;
}

/* The same inside the trim_lock. */
static gm_pool *sibling_next(const gm_pool *self, const gm_pool *from) {
  gm_context *ctx = self->device->ctx;
  gm__mutex_lock(&ctx->lock);
  gm_pool *next = sibling_behind(self, from);
  gm__mutex_unlock(&ctx->lock);
  return next;
}

gm__siblings gm__siblings_read(const gm_pool *pool) {
  gm_context *ctx = pool->device->ctx;
  gm__siblings out = {0};
  gm__mutex_lock(&ctx->lock);
  for (gm_pool *other = NULL; (other = sibling_behind(pool, other));) {
    out.pooled += gm__pool_pooled(other);
    out.calls += atomic_load_explicit(&other->stats.driver_allocs, memory_order_relaxed) +
                 atomic_load_explicit(&other->stats.driver_frees, memory_order_relaxed);
  }
  gm__mutex_unlock(&ctx->lock);
  return out;
}

uint64_t gm__siblings_idle(const gm_pool *pool) {
  gm_device *device = pool->device;
  uint64_t bytes = 0;
  gm__mutex_lock(&device->trim_lock);
  for (gm_pool *other = NULL; (other = sibling_next(pool, other));) {
    if (gm__pool_pooled(other)) bytes += gm_pool_collect(other);
  }
  gm__mutex_unlock(&device->trim_lock);
  return gm__min(bytes, atomic_load_explicit(&device->pooled_bytes, memory_order_relaxed)); /* or not the device's */
}

bool gm__siblings_trim(const gm_pool *pool, uint64_t bytes) {
  gm_device *device = pool->device;
  bool any = false;
  gm__mutex_lock(&device->trim_lock);
  const uint64_t held = atomic_load_explicit(&device->own_bytes, memory_order_relaxed);
  for (gm_pool *other = NULL; (other = sibling_next(pool, other));) {
    const uint64_t given = gm__sub_sat(held, atomic_load_explicit(&device->own_bytes, memory_order_relaxed));
    const uint64_t pooled = gm__pool_pooled(other);
    if (given >= bytes) break;
    if (pooled) any |= gm__supply_trim(other, gm__sub_sat(pooled, bytes - given), UINT64_MAX) > 0;
  }
  gm__mutex_unlock(&device->trim_lock);
  return any;
}
