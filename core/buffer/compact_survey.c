#include "core/buffer/compact_survey.h"

#include "core/base/saturate.h"
#include "core/buffer/hold.h"

/* Locks are held for SURVEY_STEP pieces at a time, so that no request waits for a walk. A change meanwhile makes a
 * move of the plan fail, and harms nothing. */

enum { SURVEY_STEP = 64, SURVEY_PLACES = 256 }; /* so many places are compared for the emptiest one */

typedef struct survey_step {
  gm__piece pieces[SURVEY_STEP];
  size_t count;
} survey_step;

/* ---- one place ---- */

/* REQUIRES: the lock of gm_pool.buffers */
static gm__plan_piece survey_piece(gm__compact_survey *survey, uint64_t memory, const gm__piece *piece) {
  const uint64_t granule = survey->pool->heap.provider.rules.granule;
  gm_buffer *buffer = piece->live ? gm__layout_at(survey->pool->buffers.layout, memory, piece->address) : NULL;
  gm__plan_piece out = {.address = piece->address, .bytes = piece->bytes, .chunk = piece->chunk};
  if (!buffer || buffer->bytes > survey->most_bytes) return out;
  out.moves = gm__buffer_may_seize(buffer);
  out.align = buffer->wanted.align;
  out.slack = gm__sub_sat(out.align, granule);
  survey->stayed += !out.moves;
  return out;
}

static bool survey_add(gm__compact_survey *survey, uint64_t memory, const survey_step *step) {
  gm__pool_buffers *list = &survey->pool->buffers;
  bool done = true;
  gm__mutex_lock(&list->lock);
  for (size_t i = 0; done && i < step->count; i++) {
    if (step->pieces[i].hole) continue;
    const gm__plan_piece piece = survey_piece(survey, memory, &step->pieces[i]);
    done = gm__plan_add_piece(survey->plan, &piece);
  }
  gm__mutex_unlock(&list->lock);
  return done;
}

/* Where a look begins that does not begin with the place. False: at its beginning. */
static bool survey_anchor(gm__compact_survey *survey, uint64_t memory, gm_block *out) {
  gm__pool_buffers *list = &survey->pool->buffers;
  gm__mutex_lock(&list->lock);
  const gm_buffer *buffer = gm__layout_below(list->layout, memory, survey->address);
  if (buffer) *out = buffer->at.block;
  gm__mutex_unlock(&list->lock);
  return buffer != NULL;
}

/* Reads the place, or a part of it. That has no place in the plan if it changes meanwhile or is one hole. */
static bool survey_place(gm__compact_survey *survey, const gm__piece_place *at, bool from_anchor) {
  gm_block anchor;
  survey_step step;
  const bool part = from_anchor && survey_anchor(survey, at->memory, &anchor);
  gm__piece_walk walk = gm__pieces_walk(at->memory, part ? &anchor : NULL);
  gm__plan *plan = survey->plan;
  const gm__plan_place place = {.memory = at->memory,
                                .address = part ? anchor.address : at->address,
                                .bytes = at->bytes,
                                .align = at->align,
                                .group = at->group,
                                .edge = part ? 0 : at->edge,
                                .apart = at->paged,
                                .stays = part};
  bool there = true, done = gm__plan_add_place(plan, &place);
  while (done && there && !walk.ended && survey->looks) {
    there = gm__pieces_read(&survey->pool->heap, &walk, step.pieces, gm__min(SURVEY_STEP, survey->looks), &step.count);
    survey->looks -= step.count;
    done = survey_add(survey, at->memory, &step);
  }
  if (!done) return false;
  gm__plan_place *last = &plan->places[plan->place_count - 1];
  const uint64_t end = walk.ended ? at->address + at->bytes : walk.address;
  last->stays |= !walk.ended;
  last->bytes = end - last->address;
  survey->memory = at->memory;
  survey->address = there && !walk.ended ? walk.address : 0;
  if (!there || plan->count == last->first) gm__plan_drop_place(plan);
  return true;
}

/* ---- the places ---- */

/* The place after survey->memory, or that one where a look ended within it. */
static bool survey_next(gm__compact_survey *survey, gm__piece_place *out) {
  const uint64_t memory = survey->memory;
  return gm__pieces_next_place(&survey->pool->heap, survey->address ? memory - 1 : memory, out);
}

static uint64_t survey_movable(gm_pool *pool, uint64_t memory) {
  gm__mutex_lock(&pool->buffers.lock);
  const uint64_t bytes = gm__layout_bytes(pool->buffers.layout, memory);
  gm__mutex_unlock(&pool->buffers.lock);
  return bytes;
}

/* The next place, and behind the last one the first. */
static bool survey_around(gm__compact_survey *survey, gm__piece_place *at) {
  gm__heap *heap = &survey->pool->heap;
  return gm__pieces_next_place(heap, at->memory, at) || gm__pieces_next_place(heap, 0, at);
}

/* The segment that is the emptiest of those with relocatable buffers, among some from where the look begins. Each is
 * looked at once. */
static bool survey_emptiest(gm__compact_survey *survey, gm__piece_place *out) {
  double least = 1;
  uint64_t first = 0;
  gm__piece_place at = {.memory = survey->address ? survey->memory - 1 : survey->memory};
  for (int looks = 0; looks < SURVEY_PLACES && survey_around(survey, &at); looks++) {
    if (at.memory == first) break;
    if (!first) first = at.memory;
    const uint64_t bytes = at.paged ? 0 : survey_movable(survey->pool, at.memory);
    const double use = (double)bytes / (double)at.bytes;
    if (!bytes || use >= least) continue;
    least = use;
    *out = at;
  }
  return least < 1;
}

/* Goes on to the last place. `but`: that one was read. */
static bool survey_rest(gm__compact_survey *survey, uint64_t but) {
  gm__piece_place at;
  while (survey->looks && survey_next(survey, &at)) {
    const bool within = survey->address && at.memory == survey->memory;
    survey->memory = at.memory;
    if (at.memory == but) {
      survey->address = 0;
    } else if (!survey_place(survey, &at, within)) {
      return false;
    }
  }
  return true;
}

bool gm__compact_survey_read(gm__compact_survey *survey) {
  const bool all = survey->looks == SIZE_MAX;
  const uint64_t memory = survey->memory, address = survey->address;
  gm__pieces_settle(&survey->pool->heap, all);
  gm__piece_place emptiest = {.memory = 0};
  if (all) {
    survey->memory = survey->address = 0;
  } else if (survey_emptiest(survey, &emptiest)) {
    if (!survey_place(survey, &emptiest, false)) return false;
    survey->memory = memory;
    survey->address = address;
  }
  if (!survey_rest(survey, emptiest.memory)) return false;
  if (survey->looks) survey->memory = survey->address = 0; /* the next look begins anew */
  return true;
}
