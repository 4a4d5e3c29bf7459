#include "core/manage/fixed.h"

#include <inttypes.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "gm/warm_up.h"

_Static_assert(GM__FIXED_SIZES == GM_FIXED_SIZES_MOST, "buckets have room for every list");

static const char fixed_op[] = "gm_pool_create";

enum { FIXED_MIB = 1 << 20, FIXED_DEFAULT_SIZES = 3 };

static const gm_warm_up fixed_default[FIXED_DEFAULT_SIZES] = {
    {FIXED_MIB, 16}, {UINT64_C(16) * FIXED_MIB, 4}, {UINT64_C(256) * FIXED_MIB, 1}};

static const gm_warm_up *fixed_list(const gm_pool_params *params, uint64_t *out_count) {
  *out_count = params->sizes ? params->size_count : FIXED_DEFAULT_SIZES;
  return params->sizes ? params->sizes : fixed_default;
}

static gm_status fixed_check_sizes(const gm_pool_params *params, gm_error *err) {
  uint64_t below = 0, all = 0;
  for (uint64_t i = 0; i < params->size_count; i++) {
    const gm_warm_up *size = &params->sizes[i];
    if (size->bytes <= below) {
      return gm__bad_argument(err, fixed_op,
                              "`params->sizes[%" PRIu64 "].bytes` is %" PRIu64 ", must be above %" PRIu64, i,
                              size->bytes, below);
    }
    below = size->bytes;
    all = gm__add_sat(all, gm__mul_sat(size->bytes, size->count));
    if (all == UINT64_MAX) return gm__bad_argument(err, fixed_op, "`params->sizes` ask for more than 2^64-1 bytes");
  }
  return GM_OK;
}

gm_status gm__fixed_check(const gm_pool_params *params, gm_error *err) {
  if (!params->sizes && !params->size_count) return GM_OK;
  if (params->strategy != GM_STRATEGY_FIXED) {
    return gm__bad_argument(err, fixed_op, "`params->sizes` need the strategy GM_STRATEGY_FIXED");
  }
  if (!params->sizes || params->size_count < 1 || params->size_count > GM_FIXED_SIZES_MOST) {
    return gm__bad_argument(err, fixed_op,
                            "`params->sizes` must have 1 to %d entries, and `params->size_count` is %" PRIu64,
                            GM_FIXED_SIZES_MOST, params->size_count);
  }
  return fixed_check_sizes(params, err);
}

void gm__fixed_read(const gm_pool *pool, const gm_device *device, const gm_pool_params *params, gm__fixed_sizes *out) {
  const uint64_t unit = device->info.alignment ? device->info.alignment : 1;
  uint64_t count;
  const gm_warm_up *list = fixed_list(params, &count);
  if (params->strategy != GM_STRATEGY_FIXED) return;
  out->count = (uint32_t)count;
  out->takes_larger = (params->flags & GM_POOL_TAKE_LARGER) != 0;
  out->passes_larger = (params->flags & GM_POOL_PASS_LARGER) != 0;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t bytes = pool->guard ? gm__guard_bytes(pool->guard, list[i].bytes, unit) : list[i].bytes;
    out->bytes[i] = gm__round_up(bytes, unit);
  }
}

gm_status gm__fixed_take(gm_pool *pool, const gm_pool_params *params, gm_error *err) {
  gm__claim *claim = &pool->heap.provider.claim;
  uint64_t *taken = &pool->heap.dedicated.buckets.fixed.taken, count;
  const gm_warm_up *list = fixed_list(params, &count);
  if (params->strategy != GM_STRATEGY_FIXED) return GM_OK;
  const gm_status status = gm_pool_warm_up(pool, list, (size_t)count, NULL, NULL, err);
  if (status) return gm__error_of(fixed_op, status, err);
  *taken = gm__claim_used(claim);
  if (!params->max_bytes) atomic_store_explicit(&claim->max_bytes, *taken, memory_order_relaxed);
  return GM_OK;
}
