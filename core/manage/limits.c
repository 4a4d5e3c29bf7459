#include <inttypes.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/manage/lifecycle.h"

/* The cap of a pool, and memory beside the pool that counts against it. */

gm_status gm_pool_set_max_bytes(gm_pool *pool, uint64_t bytes, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__pool_alive(pool, "gm_pool_set_max_bytes", err);
  if (status) return status;
  const uint64_t fixed = bytes ? 0 : pool->heap.dedicated.buckets.fixed.taken;
  atomic_store_explicit(&pool->heap.provider.claim.max_bytes, fixed ? fixed : gm__pool_cap(pool->device->ctx, bytes),
                        memory_order_relaxed);
  return GM_OK;
}

static gm_status limits_record_more(gm__provider *provider, uint64_t bytes, gm_error *err) {
  gm_status status = gm__claim_take(&provider->claim, bytes, "gm_pool_record_allocation", err);
  if (status) return status;
  atomic_fetch_add_explicit(&provider->claim.recorded, bytes, memory_order_relaxed);
  gm__stats_grow(&provider->stats.reserved_bytes, &provider->stats.peak_reserved_bytes, bytes);
  gm__stats_grow(&provider->stats.in_use_bytes, &provider->stats.peak_in_use_bytes, bytes);
  gm__stats_grow(&provider->stats.requested_bytes, &provider->stats.peak_requested_bytes, bytes);
  return GM_OK;
}

static gm_status limits_record_less(gm__provider *provider, uint64_t bytes, gm_error *err) {
  uint64_t recorded = atomic_load_explicit(&provider->claim.recorded, memory_order_relaxed);
  do {
    if (bytes > recorded) {
      return gm__bad_argument(err, "gm_pool_record_allocation",
                              "`bytes` gives back %" PRIu64 ", but only %" PRIu64 " are recorded", bytes, recorded);
    }
  } while (!atomic_compare_exchange_weak_explicit(&provider->claim.recorded, &recorded, recorded - bytes,
                                                  memory_order_relaxed, memory_order_relaxed));
  gm__stats_uncount(&provider->stats.requested_bytes, bytes);
  gm__stats_uncount(&provider->stats.in_use_bytes, bytes);
  gm__stats_uncount(&provider->stats.reserved_bytes, bytes);
  gm__claim_return(&provider->claim, bytes);
  return GM_OK;
}

gm_status gm_pool_record_allocation(gm_pool *pool, int64_t bytes, gm_error *err) {
  gm_status status = gm__pool_alive(pool, "gm_pool_record_allocation", err);
  if (status || bytes == 0) return status;
  return bytes > 0 ? limits_record_more(&pool->heap.provider, (uint64_t)bytes, err)
                   : limits_record_less(&pool->heap.provider, (uint64_t)0 - (uint64_t)bytes, err);
}
