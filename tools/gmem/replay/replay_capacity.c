#include "tools/gmem/replay/replay_capacity.h"

#include "tools/gmem/output/progress.h"

enum { CAPACITY_PARTS = 1024 };

/* A capacity that is enough, from `guess` up to `most`; 0: none. *low: the last that was not. */
static gm_status capacity_enough(replay_trial trial, void *user, uint64_t guess, uint64_t most, uint64_t *low,
                                 uint64_t *out, gm_error *err) {
  bool enough = false;
  uint64_t capacity = guess < most ? guess : most;
  *out = 0;
  while (capacity > *low) {
    progress_show("looking for enough", capacity, most);
    gm_status status = trial(user, capacity, &enough, err);
    if (status != GM_OK) return status;
    if (enough) {
      *out = capacity;
      return GM_OK;
    }
    *low = capacity;
    capacity = most - capacity > capacity / 2 ? capacity + capacity / 2 + 1 : most;
  }
  return GM_OK;
}

gm_status replay_min_capacity(replay_trial trial, void *user, uint64_t floor, uint64_t guess, uint64_t most,
                              uint64_t *out, gm_error *err) {
  uint64_t low = floor, high = floor, step = floor / CAPACITY_PARTS + 1;
  bool least = false;
  *out = 0;
  if (floor > most) return GM_OK;
  if (most / REPLAY_CAPACITY_TIMES > floor) most = floor * REPLAY_CAPACITY_TIMES;
  if (guess <= floor) guess = floor + step;
  gm_status status = trial(user, floor, &least, err);
  if (status == GM_OK && !least) status = capacity_enough(trial, user, guess, most, &low, &high, err);
  for (uint64_t turn = 0; status == GM_OK && high > low && high - low > step; turn++) {
    bool enough;
    uint64_t middle = low + (high - low) / 2;
    progress_show("bisecting", turn, CAPACITY_PARTS);
    status = trial(user, middle, &enough, err);
    if (status != GM_OK) break;
    if (enough) {
      high = middle;
    } else {
      low = middle;
    }
  }
  progress_clear();
  if (status == GM_OK) *out = high;
  return status;
}
