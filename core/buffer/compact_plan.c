#include "core/buffer/compact_plan.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/saturate.h"

/* Every step takes time by the logarithm of the pieces: holes are found by a tree of their sizes. A round takes n log n
 * steps, and there are few rounds: the bound on them is for heaps that nobody has seen.
 *
 * Why each move finds its room, one by one: within a place pieces go to lower addresses only. Where a piece goes, only
 * such pieces lie in the way as go to lower addresses still. */

enum { PLAN_ROUNDS = 64 };

static const size_t PLAN_NONE = SIZE_MAX;

/* A piece that leaves its place in the attempt to empty that, and what the hole was before. */
typedef struct gm__plan_trial {
  uint32_t piece;
  size_t hole;
  gm__plan_hole before;
} gm__plan_trial;

/* ---- collecting ---- */

static bool plan_grow(gm__plan *plan, void *items_at, size_t *capacity, size_t item_bytes) {
  const size_t larger = *capacity ? 2 * *capacity : 64;
  if (!gm__grow(plan->services, items_at, *capacity * item_bytes, larger * item_bytes)) return false;
  *capacity = larger;
  return true;
}

bool gm__plan_add_place(gm__plan *plan, const gm__plan_place *place) {
  const bool full = plan->place_count == plan->place_capacity;
  if (full && !plan_grow(plan, &plan->places, &plan->place_capacity, sizeof *place)) return false;
  plan->places[plan->place_count] = *place;
  plan->places[plan->place_count++].first = (uint32_t)plan->count;
  return true;
}

bool gm__plan_add_piece(gm__plan *plan, const gm__plan_piece *piece) {
  gm__plan_place *place = &plan->places[plan->place_count - 1];
  gm__plan_piece *last = plan->count > place->first ? &plan->pieces[plan->count - 1] : NULL;
  place->stays |= !piece->moves;
  if (last && !last->moves && !piece->moves && last->address + last->bytes == piece->address) {
    last->bytes += piece->bytes;
    last->chunk = piece->chunk;
    return true;
  }
  if (plan->count == plan->capacity && !plan_grow(plan, &plan->pieces, &plan->capacity, sizeof *piece)) return false;
  gm__plan_piece *added = &plan->pieces[plan->count++];
  *added = *piece; /* NOLINT(clang-analyzer-core.NullDereference): it knows nothing of plan_grow */
  added->to = piece->address;
  added->place = added->to_place = (uint32_t)plan->place_count - 1;
  return true;
}

void gm__plan_drop_place(gm__plan *plan) { plan->count = plan->places[--plan->place_count].first; }

void gm__plan_clear(gm__plan *plan) {
  const gm_services *services = plan->services;
  gm__release(services, plan->pieces, plan->capacity * sizeof *plan->pieces);
  gm__release(services, plan->places, plan->place_capacity * sizeof *plan->places);
  gm__release(services, plan->holes, plan->width * sizeof *plan->holes);
  gm__release(services, plan->most, 2 * plan->width * sizeof *plan->most);
  gm__release(services, plan->row, plan->place_count * sizeof *plan->row);
  gm__release(services, plan->trials, plan->count * sizeof *plan->trials);
}

static bool plan_prepare(gm__plan *plan) {
  const gm_services *services = plan->services;
  for (plan->width = 1; plan->width < plan->count + plan->place_count;) plan->width *= 2;
  plan->holes = gm__alloc_array(services, plan->width, sizeof *plan->holes);
  plan->most = gm__alloc_array(services, 2 * plan->width, sizeof *plan->most);
  plan->row = gm__alloc_array(services, plan->place_count, sizeof *plan->row);
  plan->trials = gm__alloc_array(services, plan->count, sizeof *plan->trials);
  for (size_t i = 0; plan->row && i < plan->place_count; i++) {
    plan->row[i] = &plan->places[i];
    plan->places[i].rank = (uint32_t)i;
  }
  return plan->holes && plan->most && plan->row && plan->trials;
}

/* ---- holes ---- */

static void plan_set_hole(gm__plan *plan, size_t at, uint64_t address, uint64_t bytes) {
  plan->holes[at].address = address;
  plan->holes[at].bytes = bytes;
  size_t node = plan->width + at;
  plan->most[node] = bytes;
  while (node /= 2) plan->most[node] = gm__max(plan->most[2 * node], plan->most[2 * node + 1]);
}

/* The first hole from that one on with so many bytes; PLAN_NONE: there is none. */
static size_t plan_find(const gm__plan *plan, size_t from, uint64_t bytes) {
  size_t node = plan->width + from;
  while (plan->most[node] < bytes) {
    while (node & 1) node /= 2; /* up while it is the last child */
    if (!node) return PLAN_NONE;
    node++;
  }
  while (node < plan->width) node = plan->most[2 * node] >= bytes ? 2 * node : 2 * node + 1;
  return node - plan->width;
}

static int plan_by_place(const void *one, const void *other) {
  const gm__plan_piece *a = one, *b = other;
  if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
  return a->to < b->to ? -1 : a->to > b->to;
}

/* The hole before a piece. That behind the last piece of the place follows. */
static size_t plan_hole_of(const gm__plan *plan, size_t piece) { return piece + plan->pieces[piece].rank; }

static size_t plan_first_hole(const gm__plan_place *place) { return (size_t)place->first + place->rank; }

/* Reads the pieces of the place from *at on, and the holes between them. */
static void plan_lay_place(gm__plan *plan, gm__plan_place *place, size_t *at) {
  const uint32_t number = (uint32_t)(place - plan->places);
  uint64_t end = place->address;
  place->first = (uint32_t)*at;
  place->used = place->largest_hole = 0;
  for (; *at < plan->count && plan->pieces[*at].rank == place->rank; ++*at) {
    const gm__plan_piece *piece = &plan->pieces[*at];
    plan->holes[*at + place->rank] = (gm__plan_hole){end, piece->to - end, number};
    place->largest_hole = gm__max(place->largest_hole, piece->to - end);
    place->used += piece->bytes;
    end = piece->to + piece->bytes;
  }
  const uint64_t rest = place->address + place->bytes - end;
  place->count = (uint32_t)*at - place->first;
  place->largest_hole = gm__max(place->largest_hole, rest);
  plan->holes[*at + place->rank] = (gm__plan_hole){end, rest, number};
}

/* Sorts the pieces by where they are in the plan, and reads the holes. */
static void plan_lay(gm__plan *plan) {
  size_t at = 0;
  for (size_t i = 0; i < plan->count; i++) plan->pieces[i].rank = plan->places[plan->pieces[i].to_place].rank;
  qsort(plan->pieces, plan->count, sizeof *plan->pieces, plan_by_place);
  for (size_t rank = 0; rank < plan->place_count; rank++) plan_lay_place(plan, plan->row[rank], &at);
  for (size_t i = 0; i < plan->width; i++)
    plan->most[plan->width + i] = i < plan->count + plan->place_count ? plan->holes[i].bytes : 0;
  for (size_t i = plan->width; --i;) plan->most[i] = gm__max(plan->most[2 * i], plan->most[2 * i + 1]);
}

/* The piece comes to the front of the hole. Returns its address. */
static uint64_t plan_fill(gm__plan *plan, const gm__plan_piece *piece, size_t at) {
  const gm__plan_hole hole = plan->holes[at];
  const uint64_t to = piece->slack ? gm__round_up(hole.address, piece->align) : hole.address;
  const uint64_t end = to + piece->bytes;
  plan_set_hole(plan, at, end, hole.address + hole.bytes - end);
  return to;
}

/* ---- sliding ---- */

/* The highest pieces go first, each to the lowest hole below it. True if one went. */
static bool plan_slide_round(gm__plan *plan) {
  bool any = false;
  for (size_t i = plan->count; i--;) {
    gm__plan_piece *piece = &plan->pieces[i];
    const gm__plan_place *place = &plan->places[piece->to_place];
    if (!piece->moves || piece->align > place->align) continue;
    const size_t at = plan_find(plan, plan_first_hole(place), piece->bytes + piece->slack);
    if (at > plan_hole_of(plan, i)) continue; /* which PLAN_NONE is */
    piece->to = plan_fill(plan, piece, at);
    any = true;
  }
  return any;
}

/* Where the largest hole became smaller, as beside pieces that stay, nothing slides. */
static void plan_slide_check(gm__plan *plan) {
  for (size_t i = 0; i < plan->count; i++) {
    gm__plan_piece *piece = &plan->pieces[i];
    const gm__plan_place *place = &plan->places[piece->to_place];
    if (place->largest_hole < place->largest_before) piece->to = piece->before;
  }
  plan_lay(plan);
}

static void plan_slide(gm__plan *plan) {
  plan_lay(plan);
  for (size_t i = 0; i < plan->place_count; i++) plan->places[i].largest_before = plan->places[i].largest_hole;
  for (size_t i = 0; i < plan->count; i++) plan->pieces[i].before = plan->pieces[i].to;
  for (int round = 0; round < PLAN_ROUNDS && plan_slide_round(plan); round++) plan_lay(plan);
  plan_slide_check(plan);
}

/* ---- emptying ---- */

static bool plan_may_empty(const gm__plan_place *place) { return !place->apart && !place->stays && place->count; }

static double plan_use(const gm__plan_place *place) { return (double)place->used / (double)place->bytes; }

/* Those that stay come first, then the fullest. Such as nothing comes into are last. */
static bool plan_is_before(const gm__plan_place *a, const gm__plan_place *b) {
  const bool a_out = a->apart || a->leaves, b_out = b->apart || b->leaves;
  if (a_out != b_out) return b_out;
  if (a->stays != b->stays) return a->stays;
  const double a_use = plan_use(a), b_use = plan_use(b);
  return a_use != b_use ? a_use > b_use : a->memory < b->memory;
}

static int plan_by_rank(const void *one, const void *other) {
  const gm__plan_place *a = *(gm__plan_place *const *)one, *b = *(gm__plan_place *const *)other;
  return plan_is_before(a, b) ? -1 : plan_is_before(b, a);
}

static void plan_rank(gm__plan *plan) {
  qsort(plan->row, plan->place_count, sizeof *plan->row, plan_by_rank);
  for (size_t i = 0; i < plan->place_count; i++) plan->row[i]->rank = (uint32_t)i;
  plan_lay(plan);
}

/* The first hole for a piece of another place; PLAN_NONE: there is none. */
static size_t plan_find_for(const gm__plan *plan, const gm__plan_piece *piece) {
  const gm__plan_place *from = &plan->places[piece->to_place];
  size_t at = 0;
  while ((at = plan_find(plan, at, piece->bytes + piece->slack)) != PLAN_NONE) {
    const gm__plan_place *place = &plan->places[plan->holes[at].place];
    if (place->apart || place->leaves) return PLAN_NONE; /* and so are all behind it */
    if (place->group == from->group && piece->align <= place->align) return at;
    at = plan_first_hole(place) + place->count + 1;
    if (at >= plan->count + plan->place_count) return PLAN_NONE;
  }
  return PLAN_NONE;
}

static int plan_by_bytes(const void *one, const void *other) {
  const gm__plan_trial *a = one, *b = other;
  if (a->before.bytes != b->before.bytes) return a->before.bytes > b->before.bytes ? -1 : 1;
  return a->piece < b->piece ? -1 : a->piece > b->piece;
}

/* The holes of the place serve nobody, or do again. */
static void plan_shut(gm__plan *plan, const gm__plan_place *place, bool shut) {
  const size_t first = plan_first_hole(place);
  for (size_t at = first; at <= first + place->count; at++) {
    const gm__plan_hole hole = plan->holes[at];
    plan_set_hole(plan, at, hole.address, shut ? 0 : hole.bytes);
    plan->holes[at].bytes = hole.bytes;
  }
}

/* Finds room for all pieces of the place, the largest first. False: it has not, and all is as before. */
static bool plan_try(gm__plan *plan, const gm__plan_place *place) {
  gm__plan_trial *trials = plan->trials;
  size_t count = 0;
  for (uint32_t i = 0; i < place->count; i++) {
    const uint32_t piece = place->first + i;
    trials[i] = (gm__plan_trial){.piece = piece, .before.bytes = plan->pieces[piece].bytes};
  }
  qsort(trials, place->count, sizeof *trials, plan_by_bytes);
  plan_shut(plan, place, true);
  for (; count < place->count; count++) {
    gm__plan_trial *trial = &trials[count];
    gm__plan_piece *piece = &plan->pieces[trial->piece];
    trial->hole = plan_find_for(plan, piece);
    if (trial->hole == PLAN_NONE) break;
    trial->before = plan->holes[trial->hole];
    plan_fill(plan, piece, trial->hole);
  }
  if (count == place->count) return true;
  while (count--) plan_set_hole(plan, trials[count].hole, trials[count].before.address, trials[count].before.bytes);
  plan_shut(plan, place, false);
  return false;
}

/* The pieces go where plan_try found room for them. */
static void plan_commit(gm__plan *plan, gm__plan_place *place) {
  for (uint32_t i = 0; i < place->count; i++) {
    const gm__plan_trial *trial = &plan->trials[i];
    gm__plan_piece *piece = &plan->pieces[trial->piece];
    piece->to = piece->slack ? gm__round_up(trial->before.address, piece->align) : trial->before.address;
    piece->to_place = trial->before.place;
    plan->places[piece->to_place].receives = true;
  }
  place->leaves = true;
}

/* Empties what it can, the emptiest first. Places that got pieces in this round wait for the next one. */
static bool plan_empty_round(gm__plan *plan, uint64_t *goal) {
  bool any = false;
  plan_rank(plan);
  for (size_t rank = plan->place_count; rank-- && *goal;) {
    gm__plan_place *place = plan->row[rank];
    if (!plan_may_empty(place) || place->leaves || place->receives || !plan_try(plan, place)) continue;
    plan_commit(plan, place);
    *goal = gm__sub_sat(*goal, place->bytes);
    any = true;
  }
  return any;
}

static bool plan_empty(gm__plan *plan, uint64_t *goal) {
  bool any = false;
  for (int round = 0; round < PLAN_ROUNDS && plan_empty_round(plan, goal); round++) {
    for (size_t i = 0; i < plan->place_count; i++) plan->places[i].receives = false;
    any = true;
  }
  return any;
}

bool gm__plan_make(gm__plan *plan, uint64_t goal) {
  if (!plan->count) return true;
  if (!plan_prepare(plan)) return false;
  for (int round = 0; round < PLAN_ROUNDS; round++) {
    plan_slide(plan);
    if (!plan_empty(plan, &goal)) break;
  }
  plan_lay(plan);
  for (size_t i = 0; i < plan->count; i++) {
    const gm__plan_piece *piece = &plan->pieces[i];
    if (piece->to_place == piece->place) continue;
    plan->places[piece->to_place].receives = true;
    plan->places[piece->place].leaving++;
  }
  return true;
}
