#include "core/algo/plan_units.h"

#include <inttypes.h>

#include "core/base/alloc.h"
#include "core/base/error.h"

#define PLAN_NONE UINT32_MAX
#define PLAN_MOST_TENSORS (UINT64_C(1) << 31)

uint64_t gm__plan_align(uint64_t value, uint64_t align) { return (value + (align - 1)) & ~(align - 1); }

gm_status gm__plan_check_tensors(const char *op, const gm_plan_tensor *tensors, uint64_t count, gm_error *err) {
  if (count && !tensors) return gm__bad_argument(err, op, "`tensors` must not be NULL");
  if (count > PLAN_MOST_TENSORS || count > SIZE_MAX / sizeof *tensors) {
    return gm__bad_argument(err, op, "%" PRIu64 " tensors are more than 2^31", count);
  }
  for (uint64_t i = 0; i < count; i++) {
    const gm_plan_tensor *tensor = &tensors[i];
    if (tensor->bytes > GM_PLAN_MAX_BYTES) {
      return gm__bad_argument(err, op, "tensor %" PRIu64 " has %" PRIu64 " bytes, over 2^63", i, tensor->bytes);
    }
    if (tensor->align & (tensor->align - 1)) {
      return gm__bad_argument(err, op, "tensor %" PRIu64 ": `align` must be a power of two, is %" PRIu64, i,
                              tensor->align);
    }
    if (tensor->last_op < tensor->first_op) {
      return gm__bad_argument(err, op,
                              "tensor %" PRIu64 " ends with operation %" PRIu64 ", before it begins (%" PRIu64 ")", i,
                              tensor->last_op, tensor->first_op);
    }
    if (tensor->take_over > i) {
      return gm__bad_argument(err, op,
                              "tensor %" PRIu64 ": `take_over` is %" PRIu64 ", no earlier tensor's number plus 1", i,
                              tensor->take_over);
    }
  }
  return GM_OK;
}

static bool units_allocate(gm__plan_units *u) {
  size_t count = (size_t)u->tensor_count;
  u->unit_of = gm__alloc_array(u->services, count, sizeof *u->unit_of);
  u->taken_over = gm__alloc_array(u->services, count, sizeof *u->taken_over);
  u->units = gm__alloc_array(u->services, count, sizeof *u->units);
  u->begins = gm__alloc_array(u->services, count + 1, sizeof *u->begins);
  u->sorted = gm__alloc_array(u->services, count, sizeof *u->sorted);
  u->scratch = gm__alloc_array(u->services, count, sizeof *u->scratch);
  return u->unit_of && u->taken_over && u->units && u->begins && u->sorted && u->scratch;
}

void gm__plan_units_close(gm__plan_units *u) {
  size_t count = (size_t)u->tensor_count;
  gm__release(u->services, u->unit_of, count * sizeof *u->unit_of);
  gm__release(u->services, u->taken_over, count * sizeof *u->taken_over);
  gm__release(u->services, u->units, count * sizeof *u->units);
  gm__release(u->services, u->begins, (count + 1) * sizeof *u->begins);
  gm__release(u->services, u->sorted, count * sizeof *u->sorted);
  gm__release(u->services, u->scratch, count * sizeof *u->scratch);
}

static bool units_takes_over(const gm__plan_units *u, const gm_plan_tensor *tensor) {
  if (!tensor->take_over || !tensor->bytes) return false;
  uint64_t number = tensor->take_over - 1;
  const gm_plan_tensor *other = &u->tensors[number];
  return other->last_op == tensor->first_op && other->first_op < other->last_op && !u->taken_over[number] &&
         gm__plan_align(other->bytes, u->align) == gm__plan_align(tensor->bytes, u->align);
}

/* Afterwards unit_of has, for a tensor that takes a place over, the number of the one that had it first. */
static void units_take_over(gm__plan_units *u) {
  for (uint64_t i = 0; i < u->tensor_count; i++) {
    if (u->tensors[i].align > u->align) u->align = u->tensors[i].align;
  }
  for (uint64_t i = 0; i < u->tensor_count; i++) {
    bool takes = units_takes_over(u, &u->tensors[i]);
    uint64_t other = u->tensors[i].take_over - 1;
    u->unit_of[i] = takes ? u->unit_of[other] : (uint32_t)i;
    if (takes) u->taken_over[other] = true;
  }
}

/* Number the owners of places by their first operation; then unit_of has the numbers of units. */
static void units_number(gm__plan_units *u) {
  uint32_t *unit_of = u->unit_of;
  uint32_t owners = 0;
  for (uint32_t i = 0; i < u->tensor_count; i++) {
    if (unit_of[i] == i && u->tensors[i].bytes) u->sorted[owners++] = (gm__keyed){u->tensors[i].first_op, i};
  }
  gm__keyed_sort(u->sorted, u->scratch, owners);
  u->count = owners;
  /* An owner comes before those that take its place, so theirs is read before it is needed anew. */
  for (uint32_t i = 0; i < u->tensor_count; i++) u->scratch[i].value = unit_of[i];
  for (uint32_t i = 0; i < u->tensor_count; i++) unit_of[i] = PLAN_NONE;
  for (uint32_t unit = 0; unit < owners; unit++) unit_of[u->sorted[unit].value] = unit;
  for (uint32_t i = 0; i < u->tensor_count; i++) unit_of[i] = unit_of[u->scratch[i].value];
}

/* Sizes, and `first`; the last operation of each goes to sorted[unit].key. */
static void units_fill(gm__plan_units *u) {
  uint64_t before = 0;
  for (uint32_t unit = 0; unit < u->count; unit++) {
    uint64_t first = u->sorted[unit].key;
    if (unit == 0 || first != before) u->begins[u->ranks++] = unit;
    before = first;
    u->units[unit] = (gm__plan_unit){.align = 1, .first = u->ranks - 1};
    u->scratch[unit].key = first; /* by unit; the loop below overwrites sorted */
  }
  u->begins[u->ranks] = u->count;
  for (uint32_t unit = 0; unit < u->count; unit++) u->sorted[unit] = (gm__keyed){0, unit};
  for (uint64_t i = 0; i < u->tensor_count; i++) {
    const gm_plan_tensor *tensor = &u->tensors[i];
    if (u->unit_of[i] == PLAN_NONE) continue;
    gm__plan_unit *unit = &u->units[u->unit_of[i]];
    gm__keyed *last = &u->sorted[u->unit_of[i]];
    if (tensor->bytes > unit->bytes) unit->bytes = tensor->bytes;
    if (tensor->align > unit->align) unit->align = tensor->align;
    if (tensor->last_op > last->key) last->key = tensor->last_op;
  }
}

/* The last rank whose operation is not behind a unit's last one. Most lives are short: so first in growing steps. */
static void units_rank_ends(gm__plan_units *u) {
  const gm__keyed *firsts = u->scratch;
  for (uint32_t unit = 0; unit < u->count; unit++) {
    uint64_t last = u->sorted[unit].key;
    uint32_t low = u->units[unit].first, high = low + 1; /* of `low` it holds */
    for (uint32_t step = 1; high < u->ranks && firsts[u->begins[high]].key <= last; step *= 2) {
      low = high;
      high = u->ranks - high > step ? high + step : u->ranks;
    }
    while (high - low > 1) {
      uint32_t middle = low + (high - low) / 2;
      bool before = firsts[u->begins[middle]].key <= last;
      *(before ? &low : &high) = middle;
    }
    u->units[unit].last = low;
  }
}

gm_status gm__plan_units_open(const char *op, const gm_services *services, const gm_plan_tensor *tensors,
                              uint64_t count, gm__plan_units *out, gm_error *err) {
  gm_status status = gm__services_check(services, err);
  if (status == GM_OK) status = gm__plan_check_tensors(op, tensors, count, err);
  if (status != GM_OK) return status;
  *out = (gm__plan_units){.services = services, .tensors = tensors, .tensor_count = count, .align = 1};
  if (!units_allocate(out)) {
    gm__plan_units_close(out);
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory to plan %" PRIu64 " tensors", count);
  }
  units_take_over(out);
  units_number(out);
  units_fill(out);
  units_rank_ends(out);
  return GM_OK;
}
