/* A pool set is one pool on each of several devices, used as one. Thread-safe, except gm_pool_set_destroy. */
#ifndef GM_POOL_SET_H
#define GM_POOL_SET_H

#include "gm/dtype.h"
#include "gm/pool.h"

GM_BEGIN_DECLS

typedef struct gm_pool_set gm_pool_set;

typedef struct gm_memory_usage {
  gm_device *device; /* borrowed; NULL: the total */
  uint64_t in_use_bytes;
  uint64_t reserved_bytes;
  uint64_t peak_in_use_bytes; /* in a total: the sum of the devices' peaks, which may be of different times */
  uint64_t peak_reserved_bytes;
  uint64_t reserved[2]; /* 0 */
} gm_memory_usage;

/* Creates a pool on each device, all with `params`. NULL means: by configuration. The devices are borrowed. All or
 * nothing. The caller destroys *out. Errors: OUT_OF_HOST_MEMORY, and those of gm_pool_create. INVALID_ARGUMENT: there
 * is no device, one comes twice, or they belong to several contexts. */
GM_API gm_status gm_pool_set_create(gm_device *const *devices, size_t count, const gm_pool_params *params,
                                    gm_pool_set **out, gm_error *err);

/* Destroys a set and its pools. NULL is GM_OK. BUSY: a caller holds blocks of one of the pools, and nothing has
 * changed. After another failure of gm_pool_destroy the remaining pools stay: call again. */
GM_API gm_status gm_pool_set_destroy(gm_pool_set *set, gm_error *err);

/* Returns the number of pools, one for each device. 0 for NULL. */
GM_API size_t gm_pool_set_count(const gm_pool_set *set);

/* Returns pool number `index`, in the order of creation. Borrowed. NULL: there is no such pool. */
GM_API gm_pool *gm_pool_set_pool(const gm_pool_set *set, size_t index);
/* Returns the pool of a device. Borrowed. NULL: there is no such pool. */
GM_API gm_pool *gm_pool_set_find(const gm_pool_set *set, const gm_device *device);

/* Returns what all pools of the set hold together. INVALID_ARGUMENT. */
GM_API gm_status gm_total_memory_usage(const gm_pool_set *set, gm_memory_usage *out, gm_error *err);

/* Returns what the pool of each device holds. It fills at most `capacity` entries of `out`, and returns the number of
 * devices. */
GM_API size_t gm_pool_set_usage(const gm_pool_set *set, gm_memory_usage *out, size_t capacity);

/* Returns the sum of the pools' statistics. Peaks are an upper bound. INVALID_ARGUMENT. */
GM_API gm_status gm_pool_set_stats(const gm_pool_set *set, gm_stats *out, gm_error *err);

/* Trims each pool as gm_pool_trim does, until at most `keep_bytes` are pooled on each device. Returns the bytes given
 * back. */
GM_API uint64_t gm_pool_set_trim(gm_pool_set *set, uint64_t keep_bytes);

/* Allocates `count` elements of a type from pool number `device`, as gm_alloc does in host order. The caller gives the
 * block back. Deprecated: gm_buffer_create with gm_buffer_release counts users, and can fall back. It works as long as
 * the API has this version. Errors: INVALID_ARGUMENT, and those that gm_explain gives. Thread-safe. */
GM_DEPRECATED("use gm_buffer_create")
GM_API gm_status gm_pool_set_get(gm_pool_set *set, size_t device, uint64_t count, gm_dtype precision, gm_block *out,
                                 gm_error *err);
/* Gives back a block of gm_pool_set_get, in host order. `device`, `count` and `precision` are those of the get.
 * Deprecated: see there. Errors: INVALID_ARGUMENT: also for a block that is smaller. Those of gm_free. Thread-safe. */
GM_DEPRECATED("use gm_buffer_release")
GM_API gm_status gm_pool_set_return(gm_pool_set *set, size_t device, const gm_block *block, uint64_t count,
                                    gm_dtype precision, gm_error *err);

GM_END_DECLS

#endif
