#include <string.h>

#include "core/algo/plan_tries.h"
#include "core/base/alloc.h"
#include "core/base/saturate.h"

/* `ends` is a tree over the units in their order. A leaf is 1 + the last rank of a unit that is placed, else 0. A
 * node is the largest leaf below it. Units that live at once with a unit begin no later than it ends, so they are in
 * the first part of the order. There the tree finds those that do not end too early. */

enum { GREEDY_RETRIES = 200 };
#define GREEDY_MIX UINT32_C(2654435761)
#define GREEDY_NONE UINT32_MAX

typedef struct greedy {
  gm__plan_units *units;
  uint64_t base;       /* of what lives with all others, and lies at the bottom */
  uint32_t base_count; /* of these, first in `order` */
  gm__plan_budget *budget;
  gm__plan_found *found;
  uint32_t *order;   /* units, the first to be placed first */
  uint32_t *ends;    /* 2 * size */
  uint64_t *offsets; /* of this try */
  uint32_t size;
} greedy;

static bool greedy_open(greedy *g) {
  const gm_services *services = g->units->services;
  uint32_t count = g->units->count;
  for (g->size = 1; g->size < count;) g->size *= 2;
  g->order = gm__alloc_array(services, count, sizeof *g->order);
  g->ends = gm__alloc_array(services, (size_t)g->size * 2, sizeof *g->ends);
  g->offsets = gm__alloc_array(services, count, sizeof *g->offsets);
  return g->order && g->ends && g->offsets;
}

static void greedy_close(greedy *g) {
  const gm_services *services = g->units->services;
  size_t count = g->units->count;
  gm__release(services, g->order, count * sizeof *g->order);
  gm__release(services, g->ends, (size_t)g->size * 2 * sizeof *g->ends);
  gm__release(services, g->offsets, count * sizeof *g->offsets);
}

static void ends_set(greedy *g, uint32_t unit) {
  uint32_t end = g->units->units[unit].last + 1;
  for (uint32_t node = unit + g->size; node > 0 && g->ends[node] < end; node /= 2) g->ends[node] = end;
}

/* The first placed unit from `unit` on that does not end before `rank`. */
static uint32_t ends_next(const greedy *g, uint32_t unit, uint32_t rank) {
  uint32_t node = unit + g->size;
  if (unit >= g->size) return GREEDY_NONE;
  while (g->ends[node] <= rank) {
    while (node & 1) node /= 2;
    if (node == 0) return GREEDY_NONE;
    node++;
  }
  while (node < g->size) {
    node *= 2;
    if (g->ends[node] <= rank) node++;
  }
  return node - g->size;
}

/* Placed units that live at once with this one go to `sorted`, by offset. Their number. */
static uint32_t greedy_gather(greedy *g, const gm__plan_unit *unit) {
  gm__keyed *sorted = g->units->sorted;
  uint32_t behind = g->units->begins[unit->last + 1], count = 0;
  for (uint32_t at = ends_next(g, 0, unit->first); at < behind; at = ends_next(g, at + 1, unit->first)) {
    sorted[count++] = (gm__keyed){g->offsets[at], at};
  }
  gm__keyed_sort(sorted, g->units->scratch, count);
  return count;
}

/* The smallest gap between the gathered units, else above them. */
static uint64_t greedy_gap(const greedy *g, const gm__plan_unit *unit, uint32_t count) {
  uint64_t floor = g->base, best = UINT64_MAX, best_gap = UINT64_MAX;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t ceiling = g->units->sorted[i].key, at = gm__plan_align(floor, unit->align);
    if (ceiling > at && ceiling - at >= unit->bytes && ceiling - floor < best_gap) {
      best = at;
      best_gap = ceiling - floor;
    }
    floor = gm__max(floor, ceiling + g->units->units[g->units->sorted[i].value].bytes);
  }
  return best_gap != UINT64_MAX ? best : gm__plan_align(floor, unit->align);
}

/* Places all in order. Returns the position in the order of the first that ends too high. The count: there is none, and
 * the plan is the best so far. A budget that is used up ends the try, too. */
static uint32_t greedy_place(greedy *g) {
  uint64_t peak = g->base;
  memset(g->ends, 0, (size_t)g->size * 2 * sizeof *g->ends);
  for (uint32_t i = g->base_count; i < g->units->count; i++) {
    uint32_t number = g->order[i];
    const gm__plan_unit *unit = &g->units->units[number];
    uint32_t beside = greedy_gather(g, unit);
    g->budget->steps = gm__sub_sat(g->budget->steps, beside + 1);
    uint64_t offset = greedy_gap(g, unit, beside);
    if (!g->budget->steps || !gm__plan_below(offset, unit->bytes, g->found->peak)) return i;
    g->offsets[number] = offset;
    peak = gm__max(peak, offset + unit->bytes);
    ends_set(g, number);
  }
  memcpy(g->found->offsets, g->offsets, g->units->count * sizeof *g->offsets);
  g->found->peak = peak;
  return g->units->count;
}

/* Put units that live at once with all others, as parameters do, at the bottom. They lose nothing there, and need no
 * look for each other unit. False: there are too many bytes of them. */
static bool greedy_ground(greedy *g) {
  const gm__plan_units *u = g->units;
  uint32_t soonest = UINT32_MAX, kept = 0;
  for (uint32_t i = 0; i < u->count; i++) soonest = u->units[i].last < soonest ? u->units[i].last : soonest;
  for (uint32_t i = 0; i < u->count; i++) {
    const gm__plan_unit *unit = &u->units[g->order[i]];
    if (unit->first > soonest || unit->last + 1 != u->ranks) {
      g->units->scratch[kept++].value = g->order[i];
      continue;
    }
    uint64_t offset = gm__plan_align(g->base, unit->align);
    if (!gm__plan_below(offset, unit->bytes, g->found->peak)) return false;
    g->offsets[g->order[i]] = offset;
    g->base = offset + unit->bytes;
    g->order[g->base_count++] = g->order[i];
  }
  for (uint32_t i = 0; i < kept; i++) g->order[g->base_count + i] = (uint32_t)u->scratch[i].value;
  return true;
}

/* How many pairs one try looks at, if it is not given up: each that lives at once. */
static uint64_t greedy_pairs(const greedy *g) {
  const gm__plan_units *u = g->units;
  uint64_t pairs = 0;
  for (uint32_t i = g->base_count; i < u->count; i++) {
    uint32_t number = g->order[i];
    pairs += u->begins[u->units[number].last + 1] - number;
  }
  return pairs;
}

/* Largest first; of equal ones what lives longer, then what begins earlier. */
static void greedy_sort(greedy *g, gm__plan_order by) {
  gm__keyed *sorted = g->units->sorted;
  const gm__plan_unit *units = g->units->units;
  for (uint32_t i = 0; i < g->units->count; i++) {
    sorted[i] =
        (gm__keyed){~gm__plan_value(&units[i], by == GM__PLAN_BY_LIFE ? GM__PLAN_BY_BYTES : GM__PLAN_BY_LIFE), i};
  }
  gm__keyed_sort(sorted, g->units->scratch, g->units->count);
  for (uint32_t i = 0; i < g->units->count; i++) sorted[i].key = ~gm__plan_value(&units[sorted[i].value], by);
  gm__keyed_sort(sorted, g->units->scratch, g->units->count);
  for (uint32_t i = 0; i < g->units->count; i++) g->order[i] = (uint32_t)sorted[i].value;
  g->base = g->base_count = 0;
}

/* Try again with units that did not fit placed earlier: first, or anywhere, lest the same orders come round again. */
static void greedy_climb(greedy *g, uint64_t bound) {
  for (uint32_t tries = 0; tries < GREEDY_RETRIES && g->budget->steps && g->found->peak > bound; tries++) {
    uint32_t at = greedy_place(g);
    if (at == g->units->count || at == g->base_count) continue;
    uint32_t number = g->order[at], to = g->base_count;
    if (tries % 2) to += (tries * GREEDY_MIX >> 16) % (at - to);
    memmove(g->order + to + 1, g->order + to, (at - to) * sizeof *g->order);
    g->order[to] = number;
  }
}

gm_status gm__plan_try_greedy(gm__plan_units *units, uint64_t bound, gm__plan_budget *budget, gm__plan_found *found) {
  greedy g = {.units = units, .budget = budget, .found = found};
  bool open = greedy_open(&g);
  for (gm__plan_order by = 0; open && by < GM__PLAN_ORDERS && budget->steps && found->peak > bound; by++) {
    greedy_sort(&g, by);
    if (!greedy_ground(&g) || greedy_pairs(&g) >= budget->steps) break;
    greedy_climb(&g, bound);
  }
  greedy_close(&g);
  return open ? GM_OK : GM_ERR_OUT_OF_HOST_MEMORY;
}
