#include <inttypes.h>

#include "core/algo/pair_set.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "gm/plan.h"

/* Invariants: every gap is in both sets; no two gaps touch, and none touches `end`, above which all is free. Among
 * gaps of one size the later one comes first in `by_size`, because its offset is kept negated. */

struct gm_plan_replay {
  gm_services services;
  gm__pair_set by_offset; /* offset, bytes */
  gm__pair_set by_size;   /* bytes, ~offset */
  uint64_t align, end, peak;
};

gm_status gm_plan_replay_open(const gm_services *services, uint64_t align, gm_plan_replay **out, gm_error *err) {
  const char *op = "gm_plan_replay_open";
  if (!out) return gm__bad_argument(err, op, "`out` must not be NULL");
  gm_status status = gm__services_check(services, err);
  if (status != GM_OK) return status;
  if (!align || align & (align - 1)) {
    return gm__bad_argument(err, op, "`align` must be a power of two, is %" PRIu64, align);
  }
  if (!services) services = gm__default_services();
  gm_plan_replay *replay = gm__alloc(services, sizeof *replay);
  if (!replay) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a plan");
  replay->services = *services;
  replay->by_offset.services = replay->by_size.services = &replay->services;
  replay->align = align;
  *out = replay;
  return GM_OK;
}

/* Both sets have room: see replay_reserve. */
static void replay_put(gm_plan_replay *replay, uint64_t offset, uint64_t bytes) {
  gm__pair_set_put(&replay->by_offset, offset, bytes);
  gm__pair_set_put(&replay->by_size, bytes, ~offset);
}

static void replay_take(gm_plan_replay *replay, uint64_t offset, uint64_t bytes) {
  gm__pair_set_take(&replay->by_offset, offset, bytes);
  gm__pair_set_take(&replay->by_size, bytes, ~offset);
}

/* A gap gets other ends; it stays between its neighbours. */
static void replay_change(gm_plan_replay *replay, gm__pair from, gm__pair to) {
  gm__pair_set_change(&replay->by_offset, from, to);
  gm__pair_set_take(&replay->by_size, from.value, ~from.key);
  gm__pair_set_put(&replay->by_size, to.value, ~to.key);
}

static bool replay_reserve(gm_plan_replay *replay) {
  return gm__pair_set_reserve(&replay->by_offset, 1) && gm__pair_set_reserve(&replay->by_size, 1);
}

/* `bytes` padded; 0 when that is more than a plan may have. */
static uint64_t replay_pad(const gm_plan_replay *replay, uint64_t bytes) {
  if (bytes > GM_PLAN_MAX_BYTES) return 0;
  return (bytes + replay->align - 1) & ~(replay->align - 1);
}

gm_status gm_plan_replay_alloc(gm_plan_replay *replay, uint64_t bytes, uint64_t *out_offset, gm_error *err) {
  const char *op = "gm_plan_replay_alloc";
  gm__pair smaller, gap = {0, 0};
  if (!replay || !out_offset) return gm__bad_argument(err, op, "an argument is NULL");
  uint64_t padded = replay_pad(replay, bytes);
  if (padded) gm__pair_set_around(&replay->by_size, padded, 0, &smaller, &gap);
  if (!bytes) {
    *out_offset = 0;
  } else if (gap.key) {
    *out_offset = ~gap.value;
    if (gap.key > padded) {
      replay_change(replay, (gm__pair){*out_offset, gap.key}, (gm__pair){*out_offset + padded, gap.key - padded});
    } else {
      replay_take(replay, *out_offset, gap.key);
    }
  } else {
    if (!padded || replay->end > GM_PLAN_MAX_BYTES - padded) {
      return gm__bad_argument(err, op, "%" PRIu64 " bytes more are over 2^63 in all", bytes);
    }
    *out_offset = replay->end;
    replay->end += padded;
    if (replay->end > replay->peak) replay->peak = replay->end;
  }
  return GM_OK;
}

/* Join a range that is free from now on with the gaps beside it: `before` ends, `after` begins no later. */
static void replay_join(gm_plan_replay *replay, uint64_t offset, uint64_t end, gm__pair before, gm__pair after) {
  bool joins_before = before.value && before.key + before.value == offset, joins_after = after.key == end;
  gm__pair gap = {joins_before ? before.key : offset, 0};
  gap.value = (joins_after ? end + after.value : end) - gap.key;
  if (end == replay->end) {
    replay->end = gap.key;
    if (joins_before) replay_take(replay, before.key, before.value);
  } else if (joins_before) {
    if (joins_after) replay_take(replay, after.key, after.value);
    replay_change(replay, before, gap);
  } else if (joins_after) {
    replay_change(replay, after, gap);
  } else {
    replay_put(replay, gap.key, gap.value);
  }
}

gm_status gm_plan_replay_free(gm_plan_replay *replay, uint64_t offset, uint64_t bytes, gm_error *err) {
  const char *op = "gm_plan_replay_free";
  gm__pair before = {0, 0}, after = {UINT64_MAX, 0};
  if (!replay) return gm__bad_argument(err, op, "`replay` must not be NULL");
  if (!bytes) return GM_OK;
  uint64_t padded = replay_pad(replay, bytes);
  bool inside = padded && offset % replay->align == 0 && offset <= replay->end && padded <= replay->end - offset;
  gm__pair_set_around(&replay->by_offset, offset, 0, &before, &after);
  if (!inside || before.key + before.value > offset || after.key < offset + padded) {
    return gm__bad_argument(err, op, "%" PRIu64 " bytes at %" PRIu64 " are not taken", bytes, offset);
  }
  if (!replay_reserve(replay)) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a gap of a plan");
  }
  replay_join(replay, offset, offset + padded, before, after);
  return GM_OK;
}

uint64_t gm_plan_replay_peak(const gm_plan_replay *replay) { return replay ? replay->peak : 0; }

void gm_plan_replay_close(gm_plan_replay *replay) {
  if (!replay) return;
  gm_services services = replay->services;
  gm__pair_set_close(&replay->by_offset);
  gm__pair_set_close(&replay->by_size);
  gm__release(&services, replay, sizeof *replay);
}
