#include "core/device/pressure.h"

#include "core/base/error.h"
#include "core/pool/pool.h"

/* A pool is under pressure by what it handed out, measured by what it may hold at most: blocks it keeps for reuse are
 * free to it. */

gm_status gm_pool_pressure(gm_pool *pool, gm_pressure *out, gm_error *err) {
  static const char op[] = "gm_pool_pressure";
  gm_status status = gm__pool_check(pool, op, err);
  if (!status) status = gm__pressure_check(out, op, err);
  if (status) return status;
  uint64_t limit = gm__pool_limit(pool);
  if (limit == UINT64_MAX) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, 0, op, "pool \"%s\" has no cap and its device does not say what is free",
                    pool->name);
  }
  const gm_stats stats = gm__pool_stats(pool);
  return gm__pressure_fill(pool->device->ctx, stats.in_use_bytes, limit, &pool->pressure, out, err);
}
