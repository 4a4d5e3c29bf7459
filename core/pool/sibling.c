#include "core/pool/sibling.h"

#include "core/base/poll.h"
#include "core/base/saturate.h"
#include "core/pool/supply.h"
#include "gm/cleanup.h"

/* Invariant: a pool with `pins`, which are counted inside the context's lock, stays in the context's list and alive.
 * Two pools that are refused at the same time trim one after the other, by the device's trim_lock. A trim submits, and
 * an engine's hook may wait for a thread that comes here, so nobody waits for that turn for ever. */

static const uint64_t sibling_patience_ns = 1000000000;

static bool sibling_counts(const gm_pool *self, const gm_pool *other) {
  return other != self && other->device == self->device && !other->has_upstream;
}

/* The next sibling in the list behind that one; NULL: the first one, and no more. Inside the context's lock. */
static gm_pool *sibling_behind(const gm_pool *self, const gm_pool *from) {
  gm_pool *next = from ? from->next : self->device->ctx->slots[GM__SLOT_POOLS];
  while (next && !sibling_counts(self, next)) next = next->next;
  return next;
}

/* The same with a pin, which moves on with each step. */
static gm_pool *sibling_next(const gm_pool *self, gm_pool *from) {
  gm_context *ctx = self->device->ctx;
  gm__mutex_lock(&ctx->lock);
  gm_pool *next = sibling_behind(self, from);
  if (next) next->pins++;
  if (from) from->pins--;
  gm__mutex_unlock(&ctx->lock);
  return next;
}

static void sibling_let_go(const gm_pool *self, gm_pool *other) {
  gm__mutex_lock(&self->device->ctx->lock);
  if (other) other->pins--;
  gm__mutex_unlock(&self->device->ctx->lock);
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
  const bool turn = gm__poll_lock(&device->trim_lock, sibling_patience_ns);
  for (gm_pool *other = NULL; (other = sibling_next(pool, other));) {
    if (gm__pool_pooled(other)) bytes += gm_pool_collect(other);
  }
  if (turn) gm__mutex_unlock(&device->trim_lock);
  return gm__min(bytes, atomic_load_explicit(&device->pooled_bytes, memory_order_relaxed)); /* or not the device's */
}

bool gm__siblings_trim(const gm_pool *pool, uint64_t bytes) {
  gm_device *device = pool->device;
  bool any = false;
  gm_pool *other = NULL;
  const bool turn = gm__poll_lock(&device->trim_lock, sibling_patience_ns);
  const uint64_t held = atomic_load_explicit(&device->own_bytes, memory_order_relaxed);
  while ((other = sibling_next(pool, other))) {
    const uint64_t given = gm__sub_sat(held, atomic_load_explicit(&device->own_bytes, memory_order_relaxed));
    const uint64_t pooled = gm__pool_pooled(other);
    if (given >= bytes) break;
    if (pooled) any |= gm__supply_trim(other, gm__sub_sat(pooled, bytes - given), UINT64_MAX) > 0;
  }
  sibling_let_go(pool, other);
  if (turn) gm__mutex_unlock(&device->trim_lock);
  return any;
}
