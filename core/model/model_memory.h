/* Host memory of the model reader: growing arrays and sorted orders, all of it from the caller's services. */
#ifndef GM_CORE_MODEL_MODEL_MEMORY_H
#define GM_CORE_MODEL_MODEL_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/inner.h"
#include "gm/services.h"
#include "gm/status.h"

/* `count` items of `item_bytes`, all zero; for count 0 *out is NULL. */
GM__INNER gm_status gm__model_alloc(const gm_services *services, uint64_t count, size_t item_bytes, void **out,
                                    gm_error *err);

/* Give that back. NULL is harmless. */
GM__INNER void gm__model_release(const gm_services *services, void *items, uint64_t count, size_t item_bytes);

/* Make room for one item more than `count`, doubling. `items_at` is a T **. On failure nothing has changed. */
gm_status gm__model_grow(const gm_services *services, void *items_at, uint64_t *capacity, uint64_t count,
                         size_t item_bytes, gm_error *err);

/* Compare items `a` and `b`: below zero, zero or above zero. */
typedef int (*gm__model_compare)(const void *items, uint32_t a, uint32_t b);

/* The numbers 0 to count - 1, sorted by `compare`; equal items stay in their order. In count × log(count) comparisons
 * whatever a file holds. The result is gm__model_alloc'ed: `count` of sizeof(uint32_t). */
gm_status gm__model_order(const gm_services *services, const void *items, uint32_t count, gm__model_compare compare,
                          uint32_t **out, gm_error *err);

#endif
