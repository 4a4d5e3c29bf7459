#include "gm/pool_set.h"

#include <inttypes.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/manage/fragmentation.h"
#include "core/manage/lifecycle.h"

/* Invariant: pools[0, count) are alive until destroy, one for each device. Pools that destroy could not end move to the
 * front, so that it can be called again. The set knows nothing that its pools do not: figures are read when asked
 * for. */

struct gm_pool_set {
  const gm_services *services;
  size_t count, capacity;
  gm_pool *pools[];
};

static const char pool_set_op[] = "gm_pool_set_create";

static size_t pool_set_bytes(size_t count) { return sizeof(gm_pool_set) + count * sizeof(gm_pool *); }

static gm_status pool_set_check(gm_device *const *devices, size_t count, gm_error *err) {
  if (!devices || count == 0) return gm__bad_argument(err, pool_set_op, "`devices` has none");
  for (size_t i = 0; i < count; i++) {
    gm_status status = gm__device_check(devices[i], pool_set_op, err);
    if (status) return status;
    if (devices[i]->ctx != devices[0]->ctx) {
      return gm__bad_argument(err, pool_set_op, "`devices[%zu]` is of another context", i);
    }
    for (size_t k = 0; k < i; k++) {
      if (devices[k] == devices[i]) return gm__bad_argument(err, pool_set_op, "`devices[%zu]` comes twice", i);
    }
  }
  return GM_OK;
}

static gm_status pool_set_end(gm_pool_set *set, gm_error *err) {
  gm_status status = GM_OK;
  size_t kept = 0;
  for (size_t i = 0; i < set->count; i++) {
    const bool lives = gm__pool_lives(set->pools[i]); /* or it was ended by force */
    gm_status ended = lives ? gm_pool_destroy(set->pools[i], status ? NULL : err) : GM_OK;
    if (ended) set->pools[kept++] = set->pools[i];
    if (!status) status = ended;
  }
  set->count = kept;
  if (kept == 0) gm__release(set->services, set, pool_set_bytes(set->capacity));
  return status;
}

gm_status gm_pool_set_create(gm_device *const *devices, size_t count, const gm_pool_params *params, gm_pool_set **out,
                             gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = pool_set_check(devices, count, err);
  if (!status && !out) status = gm__bad_argument(err, pool_set_op, "`out` is NULL");
  if (status) return status;
  const gm_services *services = gm__context_services(devices[0]->ctx);
  gm_pool_set *set = gm__alloc(services, pool_set_bytes(count));
  if (!set) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, pool_set_op, "no host memory for a set of pools");
  set->services = services;
  set->capacity = count;
  for (size_t i = 0; i < count && !status; i++) {
    status = gm_pool_create(devices[i], params, &set->pools[i], err);
    set->count += !status;
  }
  if (status) {
    pool_set_end(set, NULL);
    return status;
  }
  *out = set;
  return GM_OK;
}

gm_status gm_pool_set_destroy(gm_pool_set *set, gm_error *err) {
  GM__UNCANCELLED();
  for (size_t i = 0; set && i < set->count; i++) {
    const uint64_t live = gm__pool_live(set->pools[i]);
    if (live == 0) continue;
    return gm__fail(err, GM_ERR_BUSY, "gm_pool_set_destroy",
                    "%" PRIu64 " blocks of the pool on device \"%s\" are still out", live,
                    set->pools[i]->device->info.name);
  }
  return set ? pool_set_end(set, err) : GM_OK;
}

size_t gm_pool_set_count(const gm_pool_set *set) { return set ? set->count : 0; }

gm_pool *gm_pool_set_pool(const gm_pool_set *set, size_t index) {
  return index < gm_pool_set_count(set) ? set->pools[index] : NULL;
}

gm_pool *gm_pool_set_find(const gm_pool_set *set, const gm_device *device) {
  for (size_t i = 0; i < gm_pool_set_count(set); i++) {
    if (set->pools[i]->device == device) return set->pools[i];
  }
  return NULL;
}

static gm_memory_usage pool_set_usage_of(const gm_stats *stats, gm_device *device) {
  return (gm_memory_usage){.device = device,
                           .in_use_bytes = stats->in_use_bytes,
                           .reserved_bytes = stats->reserved_bytes,
                           .peak_in_use_bytes = stats->peak_in_use_bytes,
                           .peak_reserved_bytes = stats->peak_reserved_bytes};
}

size_t gm_pool_set_usage(const gm_pool_set *set, gm_memory_usage *out, size_t capacity) {
  const size_t count = gm_pool_set_count(set);
  for (size_t i = 0; out && i < count && i < capacity; i++) {
    const gm_stats stats = gm__heap_stats(&set->pools[i]->heap);
    out[i] = pool_set_usage_of(&stats, set->pools[i]->device);
  }
  return count;
}

static gm_stats pool_set_stats(const gm_pool_set *set) {
  gm_stats sum = {.struct_size = sizeof sum};
  for (size_t i = 0; i < set->count; i++) {
    const gm_stats one = gm__pool_stats(set->pools[i]);
    gm__stats_add(&sum, &one);
  }
  return sum;
}

gm_status gm_pool_set_stats(const gm_pool_set *set, gm_stats *out, gm_error *err) {
  static const char op[] = "gm_pool_set_stats";
  if (!set) return gm__bad_argument(err, op, "`set` is NULL");
  const gm_status status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  const gm_stats sum = pool_set_stats(set);
  gm__sized_out(out, &sum, sizeof sum);
  return GM_OK;
}

gm_status gm_total_memory_usage(const gm_pool_set *set, gm_memory_usage *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_total_memory_usage";
  if (!set || !out) return gm__bad_argument(err, op, "`%s` is NULL", set ? "out" : "set");
  const gm_stats stats = pool_set_stats(set);
  *out = pool_set_usage_of(&stats, NULL);
  return GM_OK;
}

uint64_t gm_pool_set_trim(gm_pool_set *set, uint64_t keep_bytes) {
  GM__UNCANCELLED();
  uint64_t bytes = 0;
  for (size_t i = 0; i < gm_pool_set_count(set); i++) {
    bytes = gm__add_sat(bytes, gm_pool_trim(set->pools[i], keep_bytes));
  }
  return bytes;
}
