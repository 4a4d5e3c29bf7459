#include "core/heap/need.h"

#include "core/base/saturate.h"
#include "core/heap/request_read.h"
#include "core/provider/walk.h"

/* Invariant: before a request is refused, a trim gives all idle memory back, and the driver is asked for just the
 * request's bytes. So what lacks is counted from there. Pieces that no trim can give back count as held. */

enum { NEED_LEAST_PART = 4096 }; /* nobody asks in smaller pieces */

typedef struct need_room {
  uint64_t used, cap, limits, device; /* the last two: what may be taken beside what is used */
} need_room;

static need_room need_read_room(gm__heap *heap) {
  need_room room = {gm__claim_used(&heap->provider.claim), gm__claim_cap(&heap->provider.claim), UINT64_MAX,
                    UINT64_MAX};
  if (heap->provider.has_upstream) return room;
  room.limits = gm__room_left(&heap->provider.claim, false);
  room.device = gm__room_left_physical(&heap->device->room, false);
  return room;
}

static gm__lacks need_lacks(const need_room *room, uint64_t idle, uint64_t bytes) {
  return (gm__lacks){.cap = gm__sub_sat(gm__add_sat(gm__sub_sat(room->used, idle), bytes), room->cap),
                     .limits = gm__sub_sat(bytes, gm__add_sat(idle, room->limits)),
                     .device = gm__sub_sat(bytes, gm__add_sat(idle, room->device))};
}

/* True when the driver gives so much at a time, as one allocation or in pages. */
static bool need_one_serves(const gm__heap *heap, uint64_t bytes) {
  const uint64_t largest = heap->device->info.max_alloc_bytes;
  return !largest || bytes <= largest;
}

/* The bytes that a row of pages has more than the request, so that it holds an aligned address. */
static uint64_t need_pad(const gm__heap *heap, const gm__want *want) {
  return gm__sub_sat(want->align, heap->provider.rules.granule);
}

/* The size of new memory for the request: its bytes, or whole pages where no driver allocation has so many. */
static uint64_t need_new_bytes(const gm__heap *heap, const gm__want *want) {
  const gm__pages *pages = &heap->provider.pages;
  if (need_one_serves(heap, want->exact) || !pages->usable) return want->exact;
  return gm__round_up(want->exact + need_pad(heap, want), pages->page_bytes);
}

/* The most that a request may have in new memory, where there is room for so much. */
static uint64_t need_most_new(const gm__heap *heap, const gm__want *want, uint64_t room) {
  const gm__pages *pages = &heap->provider.pages;
  if (need_one_serves(heap, room)) return room;
  const uint64_t paged = pages->usable ? room / pages->page_bytes * pages->page_bytes : 0;
  return gm__max(heap->device->info.max_alloc_bytes, gm__sub_sat(paged, need_pad(heap, want)));
}

static bool need_lacks_nothing(const gm__lacks *lacks) { return !lacks->cap && !lacks->limits && !lacks->device; }

/* The bytes that the driver can still give within all bounds. */
static uint64_t need_driver(const need_room *room) {
  return gm__min(gm__sub_sat(room->cap, room->used), gm__min(room->limits, room->device));
}

/* ---- the survey ---- */

static void need_begin(const gm__heap *heap, const gm__want *want, uint64_t extra, gm__survey *out) {
  *out = (gm__survey){.want = want, .kind = gm__kind_of(&heap->provider.rules, want)};
  const uint64_t granule = gm__max(heap->provider.rules.granule, want->align);
  for (uint32_t n = 2; n <= GM__SURVEY_PARTS; n++) {
    const uint64_t bytes = gm__round_up(want->bytes / n + (want->bytes % n != 0), granule);
    gm__want part = *want;
    if (bytes < NEED_LEAST_PART || bytes >= want->bytes) continue;
    gm__want_size(heap, gm__add_sat(bytes, extra), &part);
    out->part[n] = gm__round_up(part.exact, granule);
  }
}

/* Blocks of their own serve requests of their class, and go back as a whole. */
static void need_add_allocation(gm__heap *heap, gm__allocation *allocation, gm__survey *survey) {
  gm__dedicated *dedicated = &heap->dedicated;
  const gm__want *want = survey->want;
  const bool own = heap->strategy == GM_STRATEGY_BUCKET || gm__want_is_dedicated(want);
  const bool fits = own && allocation->size_class >= want->size_class &&
                    allocation->size_class < gm__bucket_class_end(&dedicated->buckets, want->size_class) &&
                    gm__want_fits(&heap->provider, want, allocation);
  const int slot = gm__order_find(&dedicated->order, want->stream);
  const bool idle = gm__dedicated_settle(dedicated, allocation);
  survey->idle_later += allocation->bytes;
  survey->serves_later |= fits;
  if (idle) survey->idle += allocation->bytes;
  const bool lets = gm__late_lets(&dedicated->order, &allocation->cold.use, slot, want->insert, &survey->late);
  survey->serves |= fits && lets;
  survey->waits |= fits && lets && allocation->cold.use.streams;
}

static void need_survey(gm__heap *heap, gm__survey *survey) {
  uint32_t cursor = 0;
  gm__mutex_lock(&heap->provider.lock);
  for (gm__allocation *allocation; (allocation = gm__provider_walk(&heap->provider, &cursor));) {
    if (allocation->state == GM__ALLOCATION_POOLED) need_add_allocation(heap, allocation, survey);
  }
  gm__mutex_unlock(&heap->provider.lock);
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&heap->arenas, arena));) {
    gm__survey_add_arena(survey, arena);
  }
  survey->idle += gm__pages_idle_bytes(&heap->provider);
  survey->idle_later += gm__pages_idle_bytes(&heap->provider);
  if (heap->provider.no_trim || heap->provider.captures) survey->idle = survey->idle_later = 0;
}

/* ---- pieces ---- */

/* How many parts the driver can give. */
static uint64_t need_new_parts(const gm__heap *heap, uint64_t part, uint64_t room) {
  if (!heap->provider.pages.usable && !need_one_serves(heap, part)) return 0;
  if (heap->arenas.whole) return room / part;
  return gm__survey_new_parts(&heap->provider, part, room);
}

/* Finds the fewest parts for which there is room. Buckets give all that is idle back for parts of another class. */
static void need_find_parts(const gm__heap *heap, const gm__survey *survey, const need_room *bounds, gm__need *out) {
  const uint64_t room = need_driver(bounds);
  const bool buckets = heap->strategy == GM_STRATEGY_BUCKET;
  const uint64_t all = gm__add_sat(room, buckets ? survey->idle : 0);
  for (uint32_t n = 2; n <= GM__SURVEY_PARTS && !out->part; n++) {
    const uint64_t part = survey->part[n];
    if (!part || gm__add_sat(survey->found[n], need_new_parts(heap, part, all)) < n) continue;
    const uint64_t unit = gm__max(heap->provider.rules.granule, survey->want->align);
    out->part = gm__round_up(survey->want->bytes / n + (survey->want->bytes % n != 0), unit);
    out->part_is_new = survey->found[n] < n && room < gm__sub_sat(bounds->cap, bounds->used);
  }
}

void gm__need_read(gm__heap *heap, const gm__want *want, uint64_t extra, gm__need *out) {
  gm__survey survey;
  need_begin(heap, want, extra, &survey);
  need_survey(heap, &survey);
  const need_room room = need_read_room(heap);
  const uint64_t bytes = need_new_bytes(heap, want);
  const gm__lacks later = need_lacks(&room, survey.idle_later, bytes);
  const bool pad = need_pad(heap, want) > 0; /* an aligned row of pages may need one more */
  *out = (gm__need){.serves = survey.serves,
                    .idle = survey.idle,
                    .lacks = need_lacks(&room, survey.idle, bytes),
                    .in_one = need_one_serves(heap, want->exact) || (heap->provider.pages.usable && !pad),
                    .counted = room.limits > 0,
                    .late = survey.late,
                    .streams = heap->dedicated.order.used != 0,
                    .part_waits = survey.waits,
                    .most_is_sure = !survey.waits && !(pad && heap->device->info.max_alloc_bytes),
                    .serves_later = survey.serves_later || need_lacks_nothing(&later)};
  if (!heap->provider.has_upstream) out->promised = gm__room_promised(&heap->provider.claim);
  need_find_parts(heap, &survey, &room, out);
  const uint64_t held = gm__sub_sat(room.used, survey.idle);
  const uint64_t most =
      gm__min(gm__sub_sat(room.cap, held), gm__add_sat(survey.idle, gm__min(room.limits, room.device)));
  const uint64_t unit = heap->provider.rules.granule;
  out->most = gm__max(survey.largest, need_most_new(heap, want, most)) / unit * unit;
}
