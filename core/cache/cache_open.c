/* How a cache begins and ends. */
#include <inttypes.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/cache/cache_state.h"
#include "core/context/config.h"
#include "core/context/process.h"

static gm_status cache_params_read(const gm_cache_params *params, gm_cache_params *out, gm_error *err) {
  static const char op[] = "gm_cache_create";
  *out = (gm_cache_params){.struct_size = sizeof *out};
  const gm_status status = params ? gm__sized_in(out, sizeof *out, params, op, "params", err) : GM_OK;
  if (status) return status;
  if ((unsigned)out->policy <= GM_CACHE_LRU) return GM_OK;
  return gm__bad_argument(err, op, "`params->policy` is %u, none of gm_cache_policy", (unsigned)out->policy);
}

gm_status gm_cache_create(gm_context *ctx, const gm_cache_params *params, gm_cache **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_cache_create";
  gm_cache_params asked;
  gm_status status = gm__context_check(ctx, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  status = cache_params_read(params, &asked, err);
  if (!status) status = gm__give_way_check(ctx, asked.pool, op, err);
  if (status) return status;
  gm_cache *cache = gm__object_new(ctx, GM__KIND_CACHE, sizeof *cache);
  if (!cache) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a cache");
  cache->ctx = ctx;
  cache->generation_at = gm__process_generation_at();
  cache->generation = ctx->generation;
  cache->follows = !asked.max_entries;
  cache->followed = cache->follows ? gm__config_changes(ctx) : 0;
  cache->max_entries = asked.max_entries ? asked.max_entries : gm__config_u64(ctx, "gpu.memory.cache_size");
  cache->max_bytes = asked.max_bytes ? asked.max_bytes : UINT64_MAX;
  cache->release = asked.release;
  cache->user = asked.user;
  gm__mutex_init(&cache->lock, GM__RANK_LEAF);
  gm__key_map_init(&cache->map, gm__context_services(ctx));
  gm__cache_policy_init(&cache->policy, asked.policy == GM_CACHE_LRU ? GM__CACHE_LRU : GM__CACHE_S3FIFO,
                        gm__context_services(ctx));
  atomic_fetch_add(&ctx->children, 1);
  status = gm__give_way_begin(&cache->way, asked.pool,
                              &(gm__give_way_calls){gm__cache_evictable, gm__cache_evict, cache}, err);
  if (status)
    (void)gm_cache_destroy(cache, NULL);
  else
    *out = cache;
  return status;
}

gm_status gm_cache_destroy(gm_cache *cache, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_cache_destroy";
  if (!cache) return GM_OK;
  const gm_status status = gm__cache_check(cache, op, err);
  if (status == GM_ERR_INVALID_ARGUMENT) return status;
  const bool forked = status == GM_ERR_FORKED; /* no lock then: nobody is left who could release it */
  if (!forked) gm__mutex_lock(&cache->lock);
  const uint64_t leases = cache->stats.leases;
  if (!forked) gm__mutex_unlock(&cache->lock);
  if (!forked && leases) return gm__fail(err, GM_ERR_BUSY, op, "there are %" PRIu64 " leases", leases);
  gm__give_way_end(&cache->way); /* nobody else is in the cache from now on */
  gm__cache_empty(cache, forked);
  gm__key_map_clear(&cache->map);
  gm__cache_policy_end(&cache->policy);
  if (!forked) gm__mutex_destroy(&cache->lock);
  gm_context *ctx = cache->ctx;
  gm__object_end(ctx, &cache->head);
  atomic_fetch_sub(&ctx->children, 1);
  return GM_OK;
}
