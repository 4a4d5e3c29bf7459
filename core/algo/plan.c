#include "gm/plan.h"

#include <inttypes.h>

#include "core/algo/plan_tries.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

/* Whatever is tried, what counts is a plan that was found: the engine's own is the first, so nothing is worse. */

enum { PLAN_SKYLINE_STEPS = 32, PLAN_CLOSE = 10000 /* that part over what lives at once is close enough */ };
#define PLAN_STEPS (UINT64_C(1) << 24)

/* The units one after another, as the engine would; blocks are freed before those of the next rank are taken. */
static gm_status plan_engine(gm__plan_units *u, gm__plan_found *found, gm_error *err) {
  gm_plan_replay *replay = NULL;
  uint32_t ended = 0;
  gm_status status = gm_plan_replay_open(u->services, u->align, &replay, err);
  for (uint32_t i = 0; i < u->count; i++) u->sorted[i] = (gm__keyed){u->units[i].last, i};
  gm__keyed_sort(u->sorted, u->scratch, u->count);
  for (uint32_t i = 0; i < u->count && status == GM_OK; i++) {
    for (; status == GM_OK && u->sorted[ended].key < u->units[i].first; ended++) {
      uint64_t number = u->sorted[ended].value;
      status = gm_plan_replay_free(replay, found->offsets[number], u->units[number].bytes, err);
    }
    if (status == GM_OK) status = gm_plan_replay_alloc(replay, u->units[i].bytes, &found->offsets[i], err);
  }
  if (status == GM_OK) found->peak = gm_plan_replay_peak(replay);
  gm_plan_replay_close(replay);
  return status;
}

/* The most bytes of units at one rank. */
static uint64_t plan_bound(gm__plan_units *u) {
  uint64_t live = 0, most = 0;
  uint32_t ended = 0;
  for (uint32_t i = 0; i < u->count; i++) u->sorted[i] = (gm__keyed){u->units[i].last, i};
  gm__keyed_sort(u->sorted, u->scratch, u->count);
  for (uint32_t i = 0; i < u->count; i++) {
    for (; u->sorted[ended].key < u->units[i].first; ended++) live -= u->units[u->sorted[ended].value].bytes;
    live = gm__add_sat(live, u->units[i].bytes);
    most = gm__max(most, live);
    if (live == UINT64_MAX) break;
  }
  return most;
}

/* True when the budget pays for one more run from the bottom up. */
static bool plan_afford(gm__plan_budget *budget, uint32_t count) {
  uint64_t steps = (uint64_t)count * PLAN_SKYLINE_STEPS;
  bool enough = steps < budget->steps;
  budget->steps -= enough ? steps : 0;
  return enough;
}

static gm_status plan_best(gm__plan_units *u, gm__plan_found *found) {
  uint64_t bound = plan_bound(u);
  bound = gm__min(gm__add_sat(bound, bound / PLAN_CLOSE), GM_PLAN_MAX_BYTES);
  gm__plan_budget budget = {PLAN_STEPS};
  gm_status status = GM_OK;
  for (gm__plan_order order = 0; order < GM__PLAN_ORDERS && status == GM_OK && found->peak > bound; order++) {
    if (order && !plan_afford(&budget, u->count)) break;
    status = gm__plan_try_skyline(u, order, found);
  }
  if (status == GM_OK && found->peak > bound) status = gm__plan_try_greedy(u, bound, &budget, found);
  return status;
}

static gm_status plan_units(gm__plan_units *u, gm_plan_policy policy, gm__plan_found *found, gm_error *err) {
  const char *op = "gm_plan_make";
  if (!u->count) return GM_OK;
  gm_status status = plan_engine(u, found, err);
  if (status == GM_ERR_OUT_OF_HOST_MEMORY || policy == GM_PLAN_ENGINE) return status;
  if (status != GM_OK) found->peak = GM_PLAN_MAX_BYTES + 1; /* too large, but there may be a smaller one */
  gm_status tried = plan_best(u, found);
  if (tried != GM_OK) return gm__fail(err, tried, op, "no host memory to plan %" PRIu32 " blocks", u->count);
  return found->peak > GM_PLAN_MAX_BYTES ? status : GM_OK;
}

gm_status gm_plan_make(const gm_services *services, gm_plan_policy policy, const gm_plan_tensor *tensors,
                       uint64_t count, uint64_t *out_offsets, uint64_t *out_peak, gm_error *err) {
  const char *op = "gm_plan_make";
  gm__plan_units u;
  gm__plan_found found = {0};
  if (!out_peak || (count && !out_offsets)) return gm__bad_argument(err, op, "an output is NULL");
  if (policy != GM_PLAN_ENGINE && policy != GM_PLAN_BEST) {
    return gm__bad_argument(err, op, "there is no policy %d", (int)policy);
  }
  gm_status status = gm__plan_units_open(op, services, tensors, count, &u, err);
  if (status != GM_OK) return status;
  found.offsets = gm__alloc_array(services, u.count, sizeof *found.offsets);
  if (!found.offsets) {
    status = gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for %" PRIu32 " offsets", u.count);
  } else {
    status = plan_units(&u, policy, &found, err);
  }
  for (uint64_t i = 0; i < count && status == GM_OK; i++) {
    out_offsets[i] = tensors[i].bytes ? found.offsets[u.unit_of[i]] : 0;
  }
  if (status == GM_OK) *out_peak = found.peak;
  gm__release(services, found.offsets, u.count * sizeof *found.offsets);
  gm__plan_units_close(&u);
  return status;
}
