#include "core/pool/quota.h"

#include "core/arena/observe.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/provider/walk.h"
#include "gm/quota.h"

/* Invariants. Each live block is counted once, under its lock: when it is handed out, or when the first quota of the
 * pool comes. It is taken off when its owner frees it.
 *
 * The first quota comes while threads allocate. Live blocks are counted in pieces, under the provider lock, then under
 * each arena's. A block that comes or goes counts itself once the walk has passed its number. An arena that is made
 * meanwhile begins so. Requests ask only when all is counted: a request that began before is counted when its block is
 * handed out. */

static void quota_count_arenas(gm__quotas *quotas, gm_pool *pool) {
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&pool->heap.arenas, arena));) gm__observe_count(arena, quotas);
}

static void quota_count_dedicated(gm__quotas *quotas, gm_pool *pool) {
  uint32_t cursor = 0;
  gm__mutex_lock(&pool->heap.provider.lock);
  atomic_store_explicit(&pool->heap.observers.quotas, quotas, memory_order_release);
  pool->heap.dedicated.quotas_below = 0;
  for (gm__allocation *allocation; (allocation = gm__provider_walk(&pool->heap.provider, &cursor));) {
    pool->heap.dedicated.quotas_below = allocation->index + 1;
    if (gm__allocation_is_out(allocation)) gm__quota_enter(quotas, allocation->tag, allocation->requested);
  }
  pool->heap.dedicated.quotas_below = UINT32_MAX;
  gm__mutex_unlock(&pool->heap.provider.lock);
}

/* The pool's quotas; NULL: no tag has had one yet, or not all blocks are counted. */
static gm__quotas *quota_of(const gm_pool *pool) {
  gm__quotas *quotas = atomic_load_explicit(&pool->heap.observers.quotas, memory_order_acquire);
  return gm__quotas_are_complete(quotas) ? quotas : NULL;
}

/* Makes the quotas and counts what is live, the first time. REQUIRES: gate lock. */
static gm_status quota_begin(gm_pool *pool, gm_error *err) {
  if (quota_of(pool)) return GM_OK;
  gm__quotas *quotas = gm__quotas_new(pool->device->ctx);
  if (!quotas) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_pool_set_quota", "no host memory for quotas");
  quota_count_dedicated(quotas, pool);
  quota_count_arenas(quotas, pool);
  gm__quotas_complete(quotas);
  return GM_OK;
}

gm_status gm__pool_take_quota(gm_pool *pool, gm__want *want, gm_error *err) {
  gm__quotas *quotas = quota_of(pool);
  if (!quotas) return GM_OK;
  const gm_status status = gm__quota_take(quotas, want->tag, want->bytes, err);
  want->counted = status == GM_OK;
  return status;
}

void gm__pool_return_quota(gm_pool *pool, const gm__want *want) {
  if (want->counted) gm__quota_leave(gm__observers_quotas(&pool->heap.observers), want->tag, want->bytes);
}

gm_status gm__pool_check_quota(gm_pool *pool, const gm__want *want) {
  gm__quotas *quotas = quota_of(pool);
  return quotas ? gm__quota_check(quotas, want->tag, want->bytes, NULL) : GM_OK;
}

/* ---- public ---- */

static gm_status quota_check_tag(const gm_pool *pool, uint32_t tag, const char *op, gm_error *err) {
  gm_status status = gm__pool_alive(pool, op, err);
  if (status || tag < GM_QUOTA_TAGS) return status;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "`tag` is %u, only tags below %d can have a quota", tag,
                  GM_QUOTA_TAGS);
}

gm_status gm_pool_set_quota(gm_pool *pool, uint32_t tag, uint64_t bytes, uint32_t flags, int32_t priority,
                            gm_error *err) {
  static const char op[] = "gm_pool_set_quota";
  gm_status status = quota_check_tag(pool, tag, op, err);
  if (!status && flags & ~(uint32_t)GM_QUOTA_BORROW) {
    status = gm__bad_argument(err, op, "`flags` has unknown bits: 0x%x", flags);
  }
  if (status) return status;
  gm__mutex_lock(&pool->gate);
  status = quota_begin(pool, err);
  gm__mutex_unlock(&pool->gate);
  if (status) return status;
  gm__quota_set(quota_of(pool), tag, bytes, flags, priority);
  return GM_OK;
}

gm_status gm_pool_quota(gm_pool *pool, uint32_t tag, gm_quota *out, gm_error *err) {
  static const char op[] = "gm_pool_quota";
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  gm__quotas *quotas = quota_of(pool);
  gm_quota told = {.struct_size = sizeof told, .bytes = GM_NO_QUOTA};
  if (quotas && tag < GM_QUOTA_TAGS) gm__quota_get(quotas, tag, &told);
  gm__sized_out(out, &told, sizeof told);
  return GM_OK;
}
