#include <string.h>

#include "core/algo/plan_tries.h"
#include "core/base/alloc.h"
#include "core/base/saturate.h"

/* The skyline: for each rank the height up to which memory is given away, as runs of equal height. A run is named by
 * its first rank. The run that is filled next is always lower than its neighbours. It takes units that live within it.
 * When none is left, it rises to its lower neighbour. Tensors placed in one such run do not change what can be placed
 * in another. So any will do, and the nearest is taken. No order of runs by height has to be kept, and what is looked
 * at lies close together. Each step places a unit, ends a run, or goes to a lower one. (The idea of the skyline is
 * that of T. Sekiyama and others, Profile-guided memory optimization for deep neural networks, 2018.) */

enum { SKYLINE_STACK = 72, SKYLINE_LOOKS = 256 };
#define SKYLINE_NONE UINT32_MAX

/* A node of a tree over the units in their order, of those below it that are left. */
typedef struct skyline_left {
  uint64_t most;    /* the largest value, 0: none is left */
  uint32_t soonest; /* the first end */
} skyline_left;

typedef struct skyline {
  const gm__plan_units *units;
  skyline_left *left;
  uint32_t size;
  uint64_t *heights;       /* by run, as the two below */
  uint32_t *lasts;         /* the last rank of a run */
  uint32_t *befores;       /* the run before */
  uint64_t *offsets, peak; /* of this try */
  uint64_t limit;          /* what is not below is of no use */
} skyline;

static bool skyline_open(skyline *s) {
  const gm_services *services = s->units->services;
  size_t count = s->units->count, ranks = s->units->ranks;
  for (s->size = 1; s->size < count;) s->size *= 2;
  s->left = gm__alloc_array(services, (size_t)s->size * 2, sizeof *s->left);
  s->heights = gm__alloc_array(services, ranks, sizeof *s->heights);
  s->lasts = gm__alloc_array(services, ranks, sizeof *s->lasts);
  s->befores = gm__alloc_array(services, ranks, sizeof *s->befores);
  s->offsets = gm__alloc_array(services, count, sizeof *s->offsets);
  return s->left && s->heights && s->lasts && s->befores && s->offsets;
}

static void skyline_close(skyline *s) {
  const gm_services *services = s->units->services;
  size_t count = s->units->count, ranks = s->units->ranks;
  gm__release(services, s->left, (size_t)s->size * 2 * sizeof *s->left);
  gm__release(services, s->heights, ranks * sizeof *s->heights);
  gm__release(services, s->lasts, ranks * sizeof *s->lasts);
  gm__release(services, s->befores, ranks * sizeof *s->befores);
  gm__release(services, s->offsets, count * sizeof *s->offsets);
}

/* False: the node was so before. */
static bool left_join(skyline *s, uint32_t node) {
  const skyline_left *a = &s->left[(size_t)node * 2], *b = a + 1, before = s->left[node];
  skyline_left joined = {gm__max(a->most, b->most), a->soonest < b->soonest ? a->soonest : b->soonest};
  s->left[node] = joined;
  return joined.most != before.most || joined.soonest != before.soonest;
}

static void left_fill(skyline *s, gm__plan_order order) {
  for (uint32_t i = 0; i < s->size; i++) s->left[s->size + i] = (skyline_left){0, UINT32_MAX};
  for (uint32_t i = 0; i < s->units->count; i++) {
    const gm__plan_unit *unit = &s->units->units[i];
    s->left[s->size + i] = (skyline_left){gm__plan_value(unit, order), unit->last};
  }
  for (uint32_t node = s->size - 1; node > 0; node--) left_join(s, node);
}

static void left_take(skyline *s, uint32_t unit) {
  uint32_t node = s->size + unit;
  s->left[node] = (skyline_left){0, UINT32_MAX};
  while ((node /= 2) && left_join(s, node)) {}
}

typedef struct left_node {
  uint32_t node, from, count; /* the units below it */
} left_node;

/* The lowest node above the units from `begin` to before `end`. */
static left_node left_above(const skyline *s, uint32_t begin, uint32_t end) {
  unsigned levels = begin == end - 1 ? 0 : 32 - (unsigned)__builtin_clz(begin ^ (end - 1));
  return (left_node){(s->size + begin) >> levels, begin >> levels << levels, UINT32_C(1) << levels};
}

/* The unit of the largest value among those that are left and live within `first` to `last`. After many looks the
 * best so far has to do. */
static uint32_t left_find(const skyline *s, uint32_t first, uint32_t last) {
  uint32_t begin = s->units->begins[first], end = s->units->begins[last + 1], best = SKYLINE_NONE, depth = 1;
  uint32_t looks = 0;
  uint64_t most = 0;
  left_node stack[SKYLINE_STACK] = {left_above(s, begin, end)};
  while (depth > 0) {
    left_node at = stack[--depth];
    if (at.from >= end || at.from + at.count <= begin) continue;
    if (s->left[at.node].most <= most || s->left[at.node].soonest > last) continue;
    if (best != SKYLINE_NONE && ++looks > SKYLINE_LOOKS) break;
    if (at.count == 1) {
      best = at.from;
      most = s->left[at.node].most;
      continue;
    }
    left_node low = {at.node * 2, at.from, at.count / 2};
    left_node high = {low.node + 1, low.from + low.count, low.count};
    bool high_first = s->left[high.node].most > s->left[low.node].most;
    stack[depth++] = high_first ? low : high;
    stack[depth++] = high_first ? high : low;
  }
  return best;
}

static void run_put(skyline *s, uint32_t run, uint32_t last, uint64_t height, uint32_t before) {
  s->heights[run] = height;
  s->lasts[run] = last;
  s->befores[run] = before;
  if (last + 1 < s->units->ranks) s->befores[last + 1] = run;
}

/* Fill the run, or the part of it in which the unit lives. False: that is too high. */
static bool skyline_place(skyline *s, uint32_t run, uint32_t number) {
  const gm__plan_unit *unit = &s->units->units[number];
  uint64_t height = s->heights[run], offset = gm__plan_align(height, unit->align);
  uint32_t last = s->lasts[run], before = s->befores[run];
  if (!gm__plan_below(offset, unit->bytes, s->limit)) return false;
  s->offsets[number] = offset;
  s->peak = gm__max(s->peak, offset + unit->bytes);
  left_take(s, number);
  if (unit->first > run) {
    run_put(s, run, unit->first - 1, height, before);
    before = run;
  }
  run_put(s, unit->first, unit->last, offset + unit->bytes, before);
  if (unit->last < last) run_put(s, unit->last + 1, last, height, unit->first);
  return true;
}

/* The heights beside a run; UINT64_MAX: there is nothing. */
static uint64_t run_left(const skyline *s, uint32_t run) {
  return s->befores[run] == SKYLINE_NONE ? UINT64_MAX : s->heights[s->befores[run]];
}

static uint64_t run_right(const skyline *s, uint32_t run) {
  return s->lasts[run] + 1 == s->units->ranks ? UINT64_MAX : s->heights[s->lasts[run] + 1];
}

/* The run becomes part of its lower neighbour, or of both. The run that then is. */
static uint32_t skyline_rise(skyline *s, uint32_t run) {
  uint32_t before = s->befores[run], last = s->lasts[run];
  uint64_t left = run_left(s, run), right = run_right(s, run), height = gm__min(left, right);
  if (right == height) last = s->lasts[last + 1];
  if (left == height) {
    run = before;
    before = s->befores[run];
  }
  run_put(s, run, last, height, before);
  return run;
}

/* A run that is lower than its neighbours, on the way down from this one. Where one is as high they are one run. */
static uint32_t skyline_descend(skyline *s, uint32_t run) {
  for (;;) {
    uint64_t height = s->heights[run], left = run_left(s, run), right = run_right(s, run);
    if (right < height) {
      run = s->lasts[run] + 1;
    } else if (left < height) {
      run = s->befores[run];
    } else if (left == height || right == height) {
      run = skyline_rise(s, run);
    } else {
      return run;
    }
  }
}

/* False: it ends too high. */
static bool skyline_fill(skyline *s) {
  uint32_t run = 0;
  run_put(s, 0, s->units->ranks - 1, 0, SKYLINE_NONE);
  for (uint32_t placed = 0; placed < s->units->count;) {
    run = skyline_descend(s, run);
    uint32_t number = left_find(s, run, s->lasts[run]);
    if (number == SKYLINE_NONE) {
      run = skyline_rise(s, run);
    } else {
      if (!skyline_place(s, run, number)) return false;
      placed++;
    }
  }
  return true;
}

gm_status gm__plan_try_skyline(const gm__plan_units *units, gm__plan_order order, gm__plan_found *found) {
  skyline s = {.units = units, .limit = found->peak};
  bool open = skyline_open(&s);
  if (open) left_fill(&s, order);
  if (open && skyline_fill(&s)) {
    memcpy(found->offsets, s.offsets, units->count * sizeof *s.offsets);
    found->peak = s.peak;
  }
  skyline_close(&s);
  return open ? GM_OK : GM_ERR_OUT_OF_HOST_MEMORY;
}
