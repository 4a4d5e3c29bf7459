/* Tensors made ready for planning: those that share a place are one unit, and operations are numbered densely. Pure but
 * for host memory. Externally synchronised. */
#ifndef GM_CORE_ALGO_PLAN_UNITS_H
#define GM_CORE_ALGO_PLAN_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/algo/keyed.h"
#include "core/base/saturate.h"
#include "gm/plan.h"

/* A unit: one place, kept from `first` to `last`, which are ranks as below. */
typedef struct gm__plan_unit {
  uint64_t bytes, align; /* of bytes, at least 1 */
  uint32_t first, last;
} gm__plan_unit;

/* Units are sorted by `first`; of equal ones, the tensor that came first comes first. A rank is the number of the
 * distinct first operations before; two units live at once exactly when their ranges of ranks touch. */
typedef struct gm__plan_units {
  const gm_services *services; /* borrowed, may be NULL */
  const gm_plan_tensor *tensors;
  uint64_t tensor_count;
  uint64_t align;    /* the largest of all tensors */
  uint32_t *unit_of; /* of each tensor; UINT32_MAX: of no bytes */
  bool *taken_over;  /* of each tensor: its place goes on to another one */
  gm__plan_unit *units;
  uint32_t count, ranks;
  uint32_t *begins;            /* units before those of a rank; [ranks] is all of them */
  gm__keyed *sorted, *scratch; /* tensor_count of each, free for use */
} gm__plan_units;

/* Check all tensors. GM_ERR_INVALID_ARGUMENT with the number of the tensor. */
gm_status gm__plan_check_tensors(const char *op, const gm_plan_tensor *tensors, uint64_t count, gm_error *err);

/* Check and prepare. On failure nothing is left open. */
gm_status gm__plan_units_open(const char *op, const gm_services *services, const gm_plan_tensor *tensors,
                              uint64_t count, gm__plan_units *out, gm_error *err);

void gm__plan_units_close(gm__plan_units *units);

/* `value` at the next multiple of `align`; both at most 2^63. */
uint64_t gm__plan_align(uint64_t value, uint64_t align);

/* Orders in which units are placed: most bytes times life first, most bytes first, longest life first. The first
 * order has made the smallest plans of large sets. */
typedef enum gm__plan_order {
  GM__PLAN_BY_AREA = 0,
  GM__PLAN_BY_BYTES = 1,
  GM__PLAN_BY_LIFE = 2,
  GM__PLAN_ORDERS = 3
} gm__plan_order;

/* The value by which an order sorts; a larger one comes earlier. */
static inline uint64_t gm__plan_value(const gm__plan_unit *unit, gm__plan_order order) {
  uint64_t life = (uint64_t)unit->last - unit->first + 1;
  switch (order) {
    case GM__PLAN_BY_AREA: return gm__mul_sat(unit->bytes, life);
    case GM__PLAN_BY_LIFE: return life << 7 | (64 - (uint64_t)__builtin_clzll(unit->bytes));
    default: return unit->bytes;
  }
}

/* True when units that fill `offset` and `bytes` end below `peak`. */
static inline bool gm__plan_below(uint64_t offset, uint64_t bytes, uint64_t peak) {
  return offset < peak && bytes < peak - offset;
}

#endif
