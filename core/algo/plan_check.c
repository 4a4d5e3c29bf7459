#include <inttypes.h>

#include "core/algo/pair_set.h"
#include "core/algo/plan_units.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

/* A line sweeps over the operations. Living tensors are kept by offset, and by what came before nothing there
 * overlaps: so only the neighbours of a newcomer can. The way from lifetimes to offsets is not used here: this is the
 * proof. */

typedef struct sweep {
  const gm_plan_tensor *tensors;
  const uint64_t *offsets;
  gm__keyed *begins, *ends, *scratch; /* operation, tensor */
  uint64_t *tops;   /* the end of each tensor's range; of a taker, that of the place until it is its own */
  uint64_t *takers; /* 1 + the tensor that took a tensor's place */
  uint64_t count;
  gm__pair_set live; /* offset, tensor */
  uint64_t align;
} sweep;

static bool sweep_open(sweep *s, const gm_services *services) {
  size_t count = (size_t)s->count;
  s->live.services = services;
  s->begins = gm__alloc_array(services, count, sizeof *s->begins);
  s->ends = gm__alloc_array(services, count, sizeof *s->ends);
  s->scratch = gm__alloc_array(services, count, sizeof *s->scratch);
  s->tops = gm__alloc_array(services, count, sizeof *s->tops);
  s->takers = gm__alloc_array(services, count, sizeof *s->takers);
  return s->begins && s->ends && s->scratch && s->tops && s->takers;
}

static void sweep_close(sweep *s, const gm_services *services) {
  size_t count = (size_t)s->count;
  gm__release(services, s->begins, count * sizeof *s->begins);
  gm__release(services, s->ends, count * sizeof *s->ends);
  gm__release(services, s->scratch, count * sizeof *s->scratch);
  gm__release(services, s->tops, count * sizeof *s->tops);
  gm__release(services, s->takers, count * sizeof *s->takers);
  gm__pair_set_close(&s->live);
}

static void sweep_sort(sweep *s) {
  for (uint64_t i = 0; i < s->count; i++) {
    s->begins[i] = (gm__keyed){s->tensors[i].first_op, i};
    s->ends[i] = (gm__keyed){s->tensors[i].last_op, i};
    s->align = gm__max(s->align, s->tensors[i].align);
  }
  gm__keyed_sort(s->begins, s->scratch, (size_t)s->count);
  gm__keyed_sort(s->ends, s->scratch, (size_t)s->count);
}

/* Find out which tensor takes whose place, in the order of the array. Without offsets every tensor that may does. */
static void sweep_resolve(sweep *s) {
  for (uint64_t i = 0; i < s->count; i++) {
    const gm_plan_tensor *tensor = &s->tensors[i];
    if (!tensor->take_over || !tensor->bytes) continue;
    uint64_t other = tensor->take_over - 1;
    const gm_plan_tensor *place = &s->tensors[other];
    if (s->takers[other] || place->last_op != tensor->first_op || place->first_op == place->last_op) continue;
    if (s->offsets && s->offsets[other] != s->offsets[i]) continue;
    if (gm__plan_align(place->bytes, s->align) != gm__plan_align(tensor->bytes, s->align)) continue;
    s->takers[other] = i + 1;
  }
}

/* The tensor whose place number `i` takes; UINT64_MAX: none. */
static uint64_t sweep_place(const sweep *s, uint64_t i) {
  uint64_t other = s->tensors[i].take_over - 1;
  return s->tensors[i].take_over && s->takers[other] == i + 1 ? other : UINT64_MAX;
}

static gm_status sweep_begin(sweep *s, uint64_t i, gm_error *err) {
  const char *op = "gm_plan_check";
  uint64_t offset = s->offsets[i], place = sweep_place(s, i);
  gm__pair before = {0, UINT64_MAX}, after = {UINT64_MAX, UINT64_MAX};
  if (place != UINT64_MAX) {
    gm__pair_set_take(&s->live, offset, place);
    s->tops[i] = gm__max(s->tops[i], s->tops[place]); /* the operation still reads the operand */
  }
  gm__pair_set_around(&s->live, offset, 0, &before, &after);
  bool low = before.value != UINT64_MAX && s->tops[before.value] > offset;
  if (low || after.key < s->tops[i]) {
    return gm__fail(err, GM_ERR_FORMAT, op, "tensors %" PRIu64 " and %" PRIu64 " overlap at operation %" PRIu64,
                    low ? before.value : after.value, i, s->tensors[i].first_op);
  }
  if (gm__pair_set_put(&s->live, offset, i)) return GM_OK;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory to check a plan");
}

static void sweep_end(sweep *s, uint64_t i) {
  if (!s->takers[i]) {
    gm__pair_set_take(&s->live, s->offsets[i], i);
    return;
  }
  uint64_t taker = s->takers[i] - 1;
  s->tops[taker] = s->offsets[taker] + s->tensors[taker].bytes;
}

static gm_status sweep_run(sweep *s, gm_error *err) {
  gm_status status = GM_OK;
  uint64_t ended = 0;
  for (uint64_t i = 0; i < s->count && status == GM_OK; i++) {
    for (; s->ends[ended].key < s->begins[i].key; ended++) {
      if (s->tensors[s->ends[ended].value].bytes) sweep_end(s, s->ends[ended].value);
    }
    if (s->tensors[s->begins[i].value].bytes) status = sweep_begin(s, s->begins[i].value, err);
  }
  return status;
}

/* Alignment and range of each, and the highest end. */
static gm_status sweep_ranges(sweep *s, uint64_t *out_peak, gm_error *err) {
  const char *op = "gm_plan_check";
  *out_peak = 0;
  for (uint64_t i = 0; i < s->count; i++) {
    const gm_plan_tensor *tensor = &s->tensors[i];
    if (!tensor->bytes) continue;
    if (tensor->align && s->offsets[i] & (tensor->align - 1)) {
      return gm__fail(err, GM_ERR_FORMAT, op, "tensor %" PRIu64 " at %" PRIu64 " is not aligned to %" PRIu64, i,
                      s->offsets[i], tensor->align);
    }
    if (s->offsets[i] > GM_PLAN_MAX_BYTES - tensor->bytes) {
      return gm__fail(err, GM_ERR_FORMAT, op, "tensor %" PRIu64 " at %" PRIu64 " ends above 2^63", i, s->offsets[i]);
    }
    s->tops[i] = s->offsets[i] + tensor->bytes;
    *out_peak = gm__max(*out_peak, s->tops[i]);
  }
  return GM_OK;
}

/* Check the arguments and make ready. On failure there is nothing to close. */
static gm_status sweep_start(sweep *s, const char *op, const gm_services *services, gm_error *err) {
  gm_status status = gm__services_check(services, err);
  if (status == GM_OK) status = gm__plan_check_tensors(op, s->tensors, s->count, err);
  if (status != GM_OK) return status;
  if (!sweep_open(s, services)) {
    sweep_close(s, services);
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for %" PRIu64 " tensors", s->count);
  }
  sweep_sort(s);
  sweep_resolve(s);
  return GM_OK;
}

gm_status gm_plan_check(const gm_services *services, const gm_plan_tensor *tensors, uint64_t count,
                        const uint64_t *offsets, uint64_t *out_peak, gm_error *err) {
  const char *op = "gm_plan_check";
  sweep s = {.tensors = tensors, .offsets = offsets, .count = count, .align = 1};
  uint64_t peak = 0;
  if (count && !offsets) return gm__bad_argument(err, op, "`offsets` must not be NULL");
  gm_status status = sweep_start(&s, op, services, err);
  if (status != GM_OK) return status;
  status = sweep_ranges(&s, &peak, err);
  if (status == GM_OK) status = sweep_run(&s, err);
  if (status == GM_OK && out_peak) *out_peak = peak;
  sweep_close(&s, services);
  return status;
}

/* A place that is taken over counts once. */
static uint64_t sweep_most(const sweep *s) {
  uint64_t live = 0, most = 0, ended = 0;
  for (uint64_t i = 0; i < s->count; i++) {
    for (; s->ends[ended].key < s->begins[i].key; ended++) {
      uint64_t number = s->ends[ended].value;
      if (!s->takers[number]) live -= s->tensors[number].bytes;
    }
    uint64_t place = sweep_place(s, s->begins[i].value);
    if (place != UINT64_MAX) live -= s->tensors[place].bytes;
    live = gm__add_sat(live, s->tensors[s->begins[i].value].bytes);
    if (live > GM_PLAN_MAX_BYTES) return live;
    most = gm__max(most, live);
  }
  return most;
}

gm_status gm_plan_peak_live(const gm_services *services, const gm_plan_tensor *tensors, uint64_t count,
                            uint64_t *out_bytes, gm_error *err) {
  const char *op = "gm_plan_peak_live";
  sweep s = {.tensors = tensors, .count = count, .align = 1};
  if (!out_bytes) return gm__bad_argument(err, op, "`out_bytes` must not be NULL");
  gm_status status = sweep_start(&s, op, services, err);
  if (status != GM_OK) return status;
  uint64_t most = sweep_most(&s);
  sweep_close(&s, services);
  if (most > GM_PLAN_MAX_BYTES) return gm__bad_argument(err, op, "over 2^63 bytes live at once");
  *out_bytes = most;
  return GM_OK;
}
