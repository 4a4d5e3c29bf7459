/* One pool on each of several devices, seen as one (F75). Thread-safe, but for destroy. */
#ifndef GM_POOL_SET_H
#define GM_POOL_SET_H

#include "gm/pool.h"

GM_BEGIN_DECLS

typedef struct gm_pool_set gm_pool_set;

typedef struct gm_memory_usage {
  gm_device *device; /* borrowed; NULL: the total */
  uint64_t in_use_bytes;
  uint64_t reserved_bytes;
  uint64_t peak_in_use_bytes; /* of a total: the sum of the devices' peaks, which need not have been at the same time */
  uint64_t peak_reserved_bytes;
  uint64_t reserved[2]; /* 0 */
} gm_memory_usage;

/* A pool on each device, all with `params` (NULL: by configuration). Devices are borrowed, each at most once. All or
 * nothing. INVALID_ARGUMENT: no device, one twice, devices of several contexts; errors of gm_pool_create;
 * OUT_OF_HOST_MEMORY. The caller destroys *out. */
GM_API gm_status gm_pool_set_create(gm_device *const *devices, size_t count, const gm_pool_params *params,
                                    gm_pool_set **out, gm_error *err);

/* GM_ERR_BUSY while blocks of any of its pools are out: nothing changes. Other failures of gm_pool_destroy leave the
 * pools that could not be destroyed: call it again. NULL is GM_OK. */
GM_API gm_status gm_pool_set_destroy(gm_pool_set *set, gm_error *err);

/* How many pools, one for each device. 0 for NULL. */
GM_API size_t gm_pool_set_count(const gm_pool_set *set);

/* The pool of a device, or by number in the order of creation: borrowed; NULL: there is none. */
GM_API gm_pool *gm_pool_set_pool(const gm_pool_set *set, size_t index);
GM_API gm_pool *gm_pool_set_find(const gm_pool_set *set, const gm_device *device);

/* What all pools of the set hold together. INVALID_ARGUMENT. */
GM_API gm_status gm_total_memory_usage(const gm_pool_set *set, gm_memory_usage *out, gm_error *err);

/* The same of each device: fills at most `capacity` of `out` and returns how many there are. */
GM_API size_t gm_pool_set_usage(const gm_pool_set *set, gm_memory_usage *out, size_t capacity);

/* The sum of the pools' statistics: peaks are an upper bound. INVALID_ARGUMENT. */
GM_API gm_status gm_pool_set_stats(const gm_pool_set *set, gm_stats *out, gm_error *err);

/* gm_pool_trim on each pool: until at most `keep_bytes` are pooled on each device. The bytes given back. */
GM_API uint64_t gm_pool_set_trim(gm_pool_set *set, uint64_t keep_bytes);

GM_END_DECLS

#endif
