#include "core/arena/survey.h"

#include "core/arena/free_chunks.h"
#include "core/arena/free_walk.h"
#include "core/arena/grow.h"
#include "core/arena/quick_flush.h"
#include "core/arena/reclaim.h"
#include "core/arena/settle.h"
#include "core/arena/walk.h"
#include "core/base/saturate.h"

/* Neighbouring free chunks form a row. They are one free chunk once all streams have done their work. */

typedef struct survey_row {
  uint64_t address, bytes;
} survey_row;

void gm__survey_add_piece(gm__survey *survey, uint64_t bytes, uint64_t part_most) {
  survey->largest = gm__max(survey->largest, bytes);
  for (uint32_t n = 2; n <= GM__SURVEY_PARTS; n++) {
    const uint64_t part = survey->part[n];
    if (part && part <= part_most) survey->found[n] += bytes / part;
  }
}

/* Counts a block that is never cut. */
static void survey_add_block(gm__survey *survey, uint64_t bytes) {
  survey->largest = gm__max(survey->largest, bytes);
  for (uint32_t n = 2; n <= GM__SURVEY_PARTS; n++) survey->found[n] += survey->part[n] == bytes;
}

/* Each part in pages of its own, and in a segment what is too little for a page. Segments are taken for several small
 * parts, or for a large one (growth_size.c). */
uint64_t gm__survey_new_parts(const gm__provider *provider, uint64_t part, uint64_t room) {
  const uint64_t page = provider->pages.page_bytes;
  if (provider->pages.usable) return room / gm__round_up(part, page) + room % page / part;
  if (part < GM__GROWTH_OWN) return room / GM__GROWTH_UNIT * (GM__GROWTH_UNIT / part);
  return room / gm__round_up(part, GM__GROWTH_OWN_UNIT);
}

static bool survey_is_free(const gm__chunk *chunk) { return gm__chunk_is(chunk) == GM__CHUNK_FREE; }

/* The bytes from the first address on that is aligned as the request asks; 0: none. */
static uint64_t survey_aligned(const gm__arena *arena, const gm__want *want, uint64_t address, uint64_t bytes) {
  const uint64_t align = gm__max(want->align, gm__arena_granule(arena));
  return gm__sub_sat(bytes, (align - address % align) % align);
}

/* Does the request find memory in that area of the arena? Small blocks' pages serve small requests only. */
static bool survey_may_use(const gm__survey *survey, const gm__arena *arena, gm__area area) {
  const bool small = gm__arena_area(arena, survey->want->exact >> arena->shift) == GM__AREA_SMALL;
  return gm__kind_serves(&arena->kind, &survey->kind) && (area == GM__AREA_LARGE || small);
}

static void survey_add_chunk(gm__survey *survey, const gm__arena *arena, uint32_t number) {
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  const gm__last_use use = gm__arena_last_use(arena, number);
  const gm__area area = gm__area_of(chunk);
  const int slot = gm__order_find(&arena->order, survey->want->stream);
  if (!gm__late_lets(&arena->order, &use, slot, survey->want->insert, &survey->late)) return;
  if (!gm__kind_serves(&arena->kind, &survey->kind)) return;
  const uint64_t part_most = area == GM__AREA_LARGE ? UINT64_MAX : (uint64_t)arena->small_most << arena->shift;
  if (survey_may_use(survey, arena, area)) {
    survey->waits |= use.streams != 0;
    survey->serves |= gm__free_chunk_fits(arena, survey->want, number);
    const uint64_t bytes = survey_aligned(arena, survey->want, chunk->address, gm__arena_bytes(arena, chunk));
    if (arena->set->whole)
      survey_add_block(survey, bytes);
    else
      gm__survey_add_piece(survey, bytes, part_most);
  }
}

static void survey_add_row(gm__survey *survey, const gm__arena *arena, const gm__segment *segment,
                           const survey_row *row) {
  const bool fits = survey_aligned(arena, survey->want, row->address, row->bytes) >= survey->want->exact;
  const bool other = arena->set->whole && row->bytes != survey->want->exact;
  survey->serves_later |= fits && !other && survey_may_use(survey, arena, segment->area);
  if (segment->range) {
    survey->idle_later += gm__reclaim_handle_bytes(arena, segment->range, row->address, row->bytes);
  } else if (row->bytes == segment->allocation->bytes) {
    survey->idle_later += row->bytes;
  }
}

/* Adds the row that the free chunk is the first one of; another chunk adds nothing. */
static void survey_add_from(gm__survey *survey, gm__arena *arena, uint32_t number, uint32_t *looks) {
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  if (survey_is_free(gm__arena_chunk(arena, chunk->left))) return;
  const gm__segment *segment = arena->segment_table[chunk->segment_index];
  survey_row row = {.address = chunk->address};
  if (gm__segment_is_idle(arena, segment)) survey->idle += segment->allocation->bytes;
  for (uint32_t at = number; survey_is_free(chunk = gm__arena_chunk(arena, at));) {
    row.bytes += gm__arena_bytes(arena, chunk);
    survey_add_chunk(survey, arena, at);
    if (!gm__arena_walk_right(arena, &at, looks)) return;
  }
  survey_add_row(survey, arena, segment, &row);
}

void gm__survey_add_arena(gm__survey *survey, gm__arena *arena) {
  const gm__survey before = *survey;
  gm__free_walk walk = {0};
  uint32_t looks = 0;
  gm__free_chunks_flush(arena);
  gm__settle_all(arena);
  do {
    *survey = before;
    for (uint32_t at; (at = gm__free_walk_next(arena, &walk));) survey_add_from(survey, arena, at, &looks);
  } while (gm__free_walk_again(&walk));
  if (!gm__arena_has_pages(arena)) return;
  survey->idle += gm__arena_idle_page_bytes(arena, GM__AREA_LARGE) + gm__arena_idle_page_bytes(arena, GM__AREA_SMALL);
}
