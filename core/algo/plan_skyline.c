#include <string.h>

#include "core/algo/pair_set.h"
#include "core/algo/plan_tries.h"
#include "core/base/alloc.h"
#include "core/base/saturate.h"

/* The skyline: for each rank the height up to which memory is given away, as runs of equal height. A run is named by
 * its first rank. Always the lowest run is filled; when nothing that is left lives within it, it rises to its lower
 * neighbour. Each step places a unit or ends a run, so there are at most three steps for each unit. (The idea is that
 * of T. Sekiyama and others, Profile-guided memory optimization for deep neural networks, 2018.) The trees over the
 * units in their order hold those that are left: `most` the largest value, `soonest` the first end. */

enum { SKYLINE_STACK = 72, SKYLINE_LOOKS = 256 };
#define SKYLINE_NONE UINT32_MAX

typedef struct skyline {
  const gm__plan_units *units;
  uint64_t *most;
  uint32_t *soonest;
  uint32_t size;
  uint64_t *heights;       /* by run, as the two below */
  uint32_t *lasts;         /* the last rank of a run */
  uint32_t *befores;       /* the run before */
  gm__pair_set lowest;     /* height, run */
  uint64_t *offsets, peak; /* of this try */
  uint64_t limit;          /* what is not below is of no use */
} skyline;

static bool skyline_open(skyline *s) {
  const gm_services *services = s->units->services;
  size_t count = s->units->count, ranks = s->units->ranks;
  for (s->size = 1; s->size < count;) s->size *= 2;
  s->lowest.services = services;
  s->most = gm__alloc_array(services, (size_t)s->size * 2, sizeof *s->most);
  s->soonest = gm__alloc_array(services, (size_t)s->size * 2, sizeof *s->soonest);
  s->heights = gm__alloc_array(services, ranks, sizeof *s->heights);
  s->lasts = gm__alloc_array(services, ranks, sizeof *s->lasts);
  s->befores = gm__alloc_array(services, ranks, sizeof *s->befores);
  s->offsets = gm__alloc_array(services, count, sizeof *s->offsets);
  return s->most && s->soonest && s->heights && s->lasts && s->befores && s->offsets;
}

static void skyline_close(skyline *s) {
  const gm_services *services = s->units->services;
  size_t count = s->units->count, ranks = s->units->ranks;
  gm__release(services, s->most, (size_t)s->size * 2 * sizeof *s->most);
  gm__release(services, s->soonest, (size_t)s->size * 2 * sizeof *s->soonest);
  gm__release(services, s->heights, ranks * sizeof *s->heights);
  gm__release(services, s->lasts, ranks * sizeof *s->lasts);
  gm__release(services, s->befores, ranks * sizeof *s->befores);
  gm__release(services, s->offsets, count * sizeof *s->offsets);
  gm__pair_set_close(&s->lowest);
}

static void left_join(skyline *s, uint32_t node) {
  const uint32_t a = node * 2, b = a + 1;
  s->most[node] = gm__max(s->most[a], s->most[b]);
  s->soonest[node] = s->soonest[a] < s->soonest[b] ? s->soonest[a] : s->soonest[b];
}

static void left_fill(skyline *s, bool by_life) {
  for (uint32_t i = 0; i < s->size; i++) s->soonest[s->size + i] = UINT32_MAX;
  for (uint32_t i = 0; i < s->units->count; i++) {
    const gm__plan_unit *unit = &s->units->units[i];
    uint64_t life = (uint64_t)unit->last - unit->first + 1;
    uint64_t bits = 64 - (uint64_t)__builtin_clzll(unit->bytes);
    s->most[s->size + i] = by_life ? life << 7 | bits : unit->bytes;
    s->soonest[s->size + i] = unit->last;
  }
  for (uint32_t node = s->size - 1; node > 0; node--) left_join(s, node);
}

static void left_take(skyline *s, uint32_t unit) {
  uint32_t node = s->size + unit;
  s->most[node] = 0;
  s->soonest[node] = UINT32_MAX;
  while (node /= 2) left_join(s, node);
}

typedef struct left_node {
  uint32_t node, from, count; /* the units below it */
} left_node;

/* Of the units that are left and live from `first` to `last` or within, the one of the largest value. After many looks
 * the best so far has to do. */
static uint32_t left_find(const skyline *s, uint32_t first, uint32_t last) {
  uint32_t begin = s->units->begins[first], end = s->units->begins[last + 1], best = SKYLINE_NONE, depth = 1;
  uint32_t looks = 0;
  uint64_t most = 0;
  left_node stack[SKYLINE_STACK] = {{1, 0, s->size}};
  while (depth > 0) {
    left_node at = stack[--depth];
    if (at.from >= end || at.from + at.count <= begin) continue;
    if (s->most[at.node] <= most || s->soonest[at.node] > last) continue;
    if (best != SKYLINE_NONE && ++looks > SKYLINE_LOOKS) break;
    if (at.count == 1) {
      best = at.from;
      most = s->most[at.node];
      continue;
    }
    left_node low = {at.node * 2, at.from, at.count / 2};
    left_node high = {low.node + 1, low.from + low.count, low.count};
    bool high_first = s->most[high.node] > s->most[low.node];
    stack[depth++] = high_first ? low : high;
    stack[depth++] = high_first ? high : low;
  }
  return best;
}

static bool run_put(skyline *s, uint32_t run, uint32_t last, uint64_t height, uint32_t before) {
  s->heights[run] = height;
  s->lasts[run] = last;
  s->befores[run] = before;
  if (last + 1 < s->units->ranks) s->befores[last + 1] = run;
  return gm__pair_set_put(&s->lowest, height, run);
}

/* Fill the run, or the part of it in which the unit lives. */
static gm_status skyline_place(skyline *s, uint32_t run, uint32_t number) {
  const gm__plan_unit *unit = &s->units->units[number];
  uint64_t height = s->heights[run], offset = gm__plan_align(height, unit->align);
  uint32_t last = s->lasts[run], before = s->befores[run];
  if (!gm__plan_below(offset, unit->bytes, s->limit)) return GM_ERR_OVER_LIMIT;
  s->offsets[number] = offset;
  s->peak = gm__max(s->peak, offset + unit->bytes);
  left_take(s, number);
  gm__pair_set_take(&s->lowest, height, run);
  bool put = true;
  if (unit->first > run) {
    put = run_put(s, run, unit->first - 1, height, before);
    before = run;
  }
  put = put && run_put(s, unit->first, unit->last, offset + unit->bytes, before);
  if (put && unit->last < last) put = run_put(s, unit->last + 1, last, height, unit->first);
  return put ? GM_OK : GM_ERR_OUT_OF_HOST_MEMORY;
}

/* The run becomes part of its lower neighbour, or of both. */
static gm_status skyline_rise(skyline *s, uint32_t run) {
  uint32_t before = s->befores[run], last = s->lasts[run], next = last + 1;
  bool has_next = next < s->units->ranks, has_before = before != SKYLINE_NONE;
  uint64_t left = has_before ? s->heights[before] : UINT64_MAX;
  uint64_t right = has_next ? s->heights[next] : UINT64_MAX, height = gm__min(left, right);
  gm__pair_set_take(&s->lowest, s->heights[run], run);
  if (has_next && right == height) {
    gm__pair_set_take(&s->lowest, right, next);
    last = s->lasts[next];
  }
  if (has_before && left == height) {
    gm__pair_set_take(&s->lowest, left, before);
    run = before;
    before = s->befores[run];
  }
  return run_put(s, run, last, height, before) ? GM_OK : GM_ERR_OUT_OF_HOST_MEMORY;
}

static gm_status skyline_fill(skyline *s) {
  gm_status status = run_put(s, 0, s->units->ranks - 1, 0, SKYLINE_NONE) ? GM_OK : GM_ERR_OUT_OF_HOST_MEMORY;
  for (uint32_t placed = 0; status == GM_OK && placed < s->units->count;) {
    gm__pair low = {0, 0};
    gm__pair_set_from(&s->lowest, 0, 0, &low);
    uint32_t run = (uint32_t)low.value, number = left_find(s, run, s->lasts[run]);
    if (number == SKYLINE_NONE) {
      status = skyline_rise(s, run);
    } else {
      status = skyline_place(s, run, number);
      placed++;
    }
  }
  return status;
}

gm_status gm__plan_try_skyline(const gm__plan_units *units, bool by_life, gm__plan_found *found) {
  skyline s = {.units = units, .limit = found->peak};
  gm_status status = skyline_open(&s) ? GM_OK : GM_ERR_OUT_OF_HOST_MEMORY;
  if (status == GM_OK) {
    left_fill(&s, by_life);
    status = skyline_fill(&s);
  }
  if (status == GM_OK) {
    memcpy(found->offsets, s.offsets, units->count * sizeof *s.offsets);
    found->peak = s.peak;
  }
  skyline_close(&s);
  return status == GM_ERR_OVER_LIMIT ? GM_OK : status;
}
