#include "core/track/tracker.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/map.h"
#include "core/base/saturate.h"
#include "core/context/context.h"
#include "core/context/object.h"
#include "core/track/oldest.h"
#include "gm/size.h"

/* Invariants, all under `lock`. A live record is in `by_id`, and in the list of the living, oldest first: ids and
 * births rise together. All others are in the list of unused records. Totals are those of the living. Memory is taken
 * before anything changes, so a failure leaves no trace. In a forked child the lock may be held by a thread that is
 * not there, so only destroy does anything. The knowledge of a pool's arenas is in none of these: they are asked. They
 * may take their locks inside this one, never the other way round. */

enum { TRACKER_CHUNK = 128 };

typedef struct tracker_record {
  gm_track_entry entry;
  struct tracker_record *prev, *next;
} tracker_record;

typedef struct tracker_chunk {
  struct tracker_chunk *next;
  tracker_record records[TRACKER_CHUNK];
} tracker_chunk;

typedef struct tracker_total {
  gm_tag_total own;
  gm_tag_total all; /* with what the source has; while somebody asks */
} tracker_total;

struct gm_tracker {
  gm__object head;
  gm_context *ctx;
  gm__mutex lock;
  gm__map by_id;  /* id: address of its record */
  gm__map by_tag; /* tag: place in totals */
  tracker_chunk *chunks;
  tracker_record *unused;
  tracker_record *oldest, *newest;
  tracker_total *totals;
  size_t total_count, total_capacity;
  uint64_t bytes, peak_bytes;
  _Atomic uint64_t last_id, marks; /* changed without the lock, too */
  const gm__track_source *source;  /* NULL: none */
};

/* Not NULL and, in debug builds, not destroyed. */
static bool tracker_is(const gm_tracker *tracker) { return tracker && gm__object_is(&tracker->head, GM__KIND_TRACKER); }

gm_status gm_tracker_create(gm_context *ctx, gm_tracker **out, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__context_check(ctx, "gm_tracker_create", err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, "gm_tracker_create", "`out` is NULL");
  gm_tracker *tracker = gm__object_new(ctx, GM__KIND_TRACKER, sizeof *tracker);
  if (!tracker) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tracker_create", "no host memory for a tracker");
  tracker->ctx = ctx;
  gm__mutex_init(&tracker->lock, GM__RANK_TRACKER);
  gm__map_init(&tracker->by_id, gm__context_services(ctx));
  gm__map_init(&tracker->by_tag, gm__context_services(ctx));
  atomic_fetch_add(&ctx->children, 1);
  *out = tracker;
  return GM_OK;
}

void gm_tracker_destroy(gm_tracker *tracker) {
  GM__UNCANCELLED();
  if (!tracker_is(tracker)) return;
  gm_context *ctx = tracker->ctx;
  const gm_services *services = gm__context_services(ctx);
  for (tracker_chunk *chunk = tracker->chunks, *next; chunk; chunk = next) {
    next = chunk->next;
    gm__release(services, chunk, sizeof *chunk);
  }
  gm__release(services, tracker->totals, tracker->total_capacity * sizeof *tracker->totals);
  gm__map_clear(&tracker->by_id);
  gm__map_clear(&tracker->by_tag);
  if (!gm__context_forked(ctx)) gm__mutex_destroy(&tracker->lock);
  gm__object_end(ctx, &tracker->head);
  atomic_fetch_sub(&ctx->children, 1);
}

/* False in a forked child and for NULL: then there is nothing to unlock. */
static bool tracker_enter(gm_tracker *tracker) {
  if (!tracker_is(tracker) || gm__context_forked(tracker->ctx)) return false;
  gm__mutex_lock(&tracker->lock);
  return true;
}

static void tracker_leave(gm_tracker *tracker) { gm__mutex_unlock(&tracker->lock); }

static bool tracker_reserve_records(gm_tracker *tracker) {
  if (tracker->unused) return true;
  tracker_chunk *chunk = gm__alloc(gm__context_services(tracker->ctx), sizeof *chunk);
  if (!chunk) return false;
  chunk->next = tracker->chunks;
  tracker->chunks = chunk;
  for (size_t i = 0; i < TRACKER_CHUNK; i++) {
    chunk->records[i].next = tracker->unused;
    tracker->unused = &chunk->records[i];
  }
  return true;
}

static bool tracker_reserve_totals(gm_tracker *tracker) {
  if (tracker->total_count < tracker->total_capacity) return true;
  size_t capacity = tracker->total_capacity ? tracker->total_capacity * 2 : 8, size = sizeof *tracker->totals;
  if (!gm__grow(gm__context_services(tracker->ctx), &tracker->totals, tracker->total_capacity * size,
                capacity * size)) {
    return false;
  }
  tracker->total_capacity = capacity;
  return true;
}

/* Returns the total of a tag, made if it is new; NULL without host memory. */
static tracker_total *tracker_total_of(gm_tracker *tracker, uint32_t tag) {
  uint64_t at;
  if (gm__map_find(&tracker->by_tag, tag, &at)) return &tracker->totals[at];
  if (!tracker_reserve_totals(tracker)) return NULL;
  if (gm__map_insert(&tracker->by_tag, tag, tracker->total_count)) return NULL;
  tracker_total *total = &tracker->totals[tracker->total_count++];
  *total = (tracker_total){.own = {.tag = tag}, .all = {.tag = tag}};
  return total;
}

static void tracker_append(gm_tracker *tracker, tracker_record *record) {
  record->next = NULL;
  record->prev = tracker->newest;
  if (tracker->newest) {
    tracker->newest->next = record;
  } else {
    tracker->oldest = record;
  }
  tracker->newest = record;
}

static void tracker_unlink(gm_tracker *tracker, tracker_record *record) {
  if (record->prev) {
    record->prev->next = record->next;
  } else {
    tracker->oldest = record->next;
  }
  if (record->next) {
    record->next->prev = record->prev;
  } else {
    tracker->newest = record->prev;
  }
}

static void tracker_raise(uint64_t *bytes, uint64_t *peak, uint64_t more) {
  *bytes += more;
  if (*bytes > *peak) *peak = *bytes;
}

static uint64_t tracker_insert(gm_tracker *tracker, const gm_track_entry *entry) {
  if (entry->bytes > UINT64_MAX - tracker->bytes) return 0; /* totals could not be told any more */
  if (!tracker_reserve_records(tracker)) return 0;
  if (gm__map_reserve(&tracker->by_id, tracker->by_id.count + 1)) return 0;
  tracker_total *total = tracker_total_of(tracker, entry->tag);
  if (!total) return 0;
  tracker_record *record = tracker->unused;
  tracker->unused = record->next;
  record->entry = *entry;
  record->entry.id = gm__tracker_draw_ids(tracker, 1);
  record->entry.born_ns = gm__now_coarse_ns();
  record->entry.mark = tracker->marks;
  tracker_append(tracker, record);
  gm__map_insert(&tracker->by_id, record->entry.id, (uintptr_t)record);
  total->own.count++;
  tracker_raise(&total->own.bytes, &total->own.peak_bytes, entry->bytes);
  tracker_raise(&tracker->bytes, &tracker->peak_bytes, entry->bytes);
  return record->entry.id;
}

uint64_t gm_tracker_track(gm_tracker *tracker, const gm_track_entry *entry) {
  if (!entry || entry->reserved[0] || entry->reserved[1] || !tracker_enter(tracker)) return 0;
  uint64_t id = tracker_insert(tracker, entry);
  tracker_leave(tracker);
  return id;
}

static void tracker_remove(gm_tracker *tracker, tracker_record *record) {
  uint64_t bytes = record->entry.bytes, at = 0;
  gm__map_find(&tracker->by_tag, record->entry.tag, &at);
  tracker->totals[at].own.count--;
  tracker->totals[at].own.bytes -= bytes;
  tracker->bytes -= bytes;
  tracker_unlink(tracker, record);
  record->next = tracker->unused;
  tracker->unused = record;
}

gm_status gm_tracker_untrack(gm_tracker *tracker, uint64_t id) {
  if (!tracker_is(tracker)) return GM_ERR_INVALID_ARGUMENT;
  if (!tracker_enter(tracker)) return GM_ERR_FORKED;
  uint64_t record = 0;
  bool found = gm__map_remove(&tracker->by_id, id, &record);
  if (found) tracker_remove(tracker, (tracker_record *)(uintptr_t)record);
  if (!found && tracker->source) found = tracker->source->untrack(tracker->source->user, id);
  tracker_leave(tracker);
  return found ? GM_OK : GM_ERR_NOT_FOUND;
}

void gm__tracker_annotate(gm_tracker *tracker, uint64_t id, uint64_t elements, gm_location location) {
  if (id == 0 || !tracker_enter(tracker)) return;
  uint64_t found;
  if (gm__map_find(&tracker->by_id, id, &found)) {
    tracker_record *record = (tracker_record *)(uintptr_t)found;
    record->entry.elements = elements;
    record->entry.location = location;
  }
  tracker_leave(tracker);
}

static void tracker_lower_peaks(gm_tracker *tracker) {
  tracker->peak_bytes = tracker->bytes;
  for (size_t i = 0; i < tracker->total_count; i++) {
    tracker->totals[i].own.peak_bytes = tracker->totals[i].own.bytes;
  }
}

void gm__tracker_forget(gm_tracker *tracker, uint64_t pool) {
  if (!tracker_enter(tracker)) return;
  for (tracker_record *record = tracker->oldest, *next; record; record = next) {
    next = record->next;
    if (record->entry.pool != pool) continue;
    gm__map_remove(&tracker->by_id, record->entry.id, NULL);
    tracker_remove(tracker, record);
  }
  tracker_lower_peaks(tracker);
  tracker_leave(tracker);
}

static bool tracker_figures(gm_tracker *tracker, gm__track_figures *out) {
  *out = (gm__track_figures){0};
  if (!tracker_enter(tracker)) return false;
  *out = (gm__track_figures){tracker->by_id.count, tracker->bytes, tracker->peak_bytes};
  if (tracker->source) tracker->source->figures(tracker->source->user, out);
  tracker_leave(tracker);
  return true;
}

uint64_t gm_tracker_total_bytes(gm_tracker *tracker) {
  gm__track_figures figures;
  tracker_figures(tracker, &figures);
  return figures.bytes;
}

uint64_t gm_tracker_peak_bytes(gm_tracker *tracker) {
  gm__track_figures figures;
  tracker_figures(tracker, &figures);
  return figures.peak_bytes;
}

uint64_t gm_tracker_count(gm_tracker *tracker) {
  gm__track_figures figures;
  tracker_figures(tracker, &figures);
  return figures.count;
}

uint64_t gm_tracker_mark(gm_tracker *tracker) {
  if (!tracker_enter(tracker)) return 0;
  uint64_t mark = ++tracker->marks;
  if (tracker->source) tracker->source->marked(tracker->source->user, mark);
  tracker_leave(tracker);
  return mark;
}

const _Atomic uint64_t *gm__tracker_marks(const gm_tracker *tracker) { return &tracker->marks; }

uint64_t gm__tracker_draw_ids(gm_tracker *tracker, uint64_t count) {
  return atomic_fetch_add_explicit(&tracker->last_id, count, memory_order_relaxed) + 1;
}

void gm__tracker_set_source(gm_tracker *tracker, const gm__track_source *source) { tracker->source = source; }

typedef struct tracker_search {
  gm__oldest oldest;
  uint64_t born_by, since, mark;
} tracker_search;

static void tracker_look(void *looker, const gm_track_entry *entry) {
  tracker_search *search = looker;
  if (entry->born_ns > search->born_by || entry->mark < search->since || entry->mark >= search->mark) return;
  gm__oldest_add(&search->oldest, entry);
}

/* Finds the oldest of those that pass. Returns how many do. */
static size_t tracker_search_all(gm_tracker *tracker, tracker_search *search) {
  if (!tracker_enter(tracker)) return 0;
  for (const tracker_record *record = tracker->oldest; record; record = record->next) {
    tracker_look(search, &record->entry);
  }
  if (tracker->source) tracker->source->entries(tracker->source->user, tracker_look, search);
  tracker_leave(tracker);
  gm__oldest_sort(&search->oldest);
  return search->oldest.seen;
}

size_t gm_tracker_find_old(gm_tracker *tracker, uint64_t age_ns, gm_track_entry *entries, size_t capacity) {
  const uint64_t now = gm__now_ns();
  tracker_search search = {.oldest = {entries, capacity, 0, 0}, .born_by = now - age_ns, .mark = UINT64_MAX};
  return age_ns > now ? 0 : tracker_search_all(tracker, &search);
}

size_t gm_tracker_find_between(gm_tracker *tracker, uint64_t since, uint64_t mark, gm_track_entry *entries,
                               size_t capacity) {
  tracker_search search = {.oldest = {entries, capacity, 0, 0}, .born_by = UINT64_MAX, .since = since, .mark = mark};
  return tracker_search_all(tracker, &search);
}

typedef struct tracker_epochs {
  uint64_t first, marks, *bytes, all;
  uint32_t tag;
} tracker_epochs;

static void tracker_epoch_look(void *looker, const gm_track_entry *entry) {
  tracker_epochs *epochs = looker;
  if (entry->tag != epochs->tag || !entry->mark || entry->mark >= epochs->marks) return;
  epochs->all = gm__add_sat(epochs->all, entry->bytes);
  if (entry->mark < epochs->first) return;
  uint64_t *bytes = &epochs->bytes[entry->mark - epochs->first];
  *bytes = gm__add_sat(*bytes, entry->bytes);
}

bool gm__tracker_left_behind(gm_tracker *tracker, uint32_t tag, uint64_t *bytes, uint32_t count, uint64_t *all) {
  memset(bytes, 0, count * sizeof *bytes);
  if (!tracker_enter(tracker)) return false;
  tracker_epochs epochs = {.marks = tracker->marks, .bytes = bytes, .tag = tag};
  const bool enough = epochs.marks > count;
  epochs.first = enough ? epochs.marks - count : 0;
  for (const tracker_record *record = tracker->oldest; enough && record; record = record->next)
    tracker_epoch_look(&epochs, &record->entry);
  if (enough && tracker->source) tracker->source->entries(tracker->source->user, tracker_epoch_look, &epochs);
  tracker_leave(tracker);
  *all = epochs.all;
  return enough;
}

/* Puts `total` into its place among the `count` largest so far. The smallest falls out when there is no room. */
static size_t tracker_rank(gm_tag_total *totals, size_t count, size_t capacity, const gm_tag_total *total) {
  size_t at = 0;
  while (at < count && totals[at].bytes >= total->bytes) at++;
  if (at == capacity) return count;
  size_t moved = (count < capacity ? count : capacity - 1) - at;
  memmove(&totals[at + 1], &totals[at], moved * sizeof *totals);
  totals[at] = *total;
  return count < capacity ? count + 1 : count;
}

static size_t tracker_rank_all(const gm_tracker *tracker, gm_tag_total *totals, size_t capacity) {
  size_t ranked = 0;
  for (size_t i = 0; i < tracker->total_count; i++) {
    ranked = tracker_rank(totals, ranked, capacity, &tracker->totals[i].all);
  }
  return ranked;
}

/* A tag for which there is no host memory is left out. */
static void tracker_add_total(void *looker, const gm_tag_total *total) {
  gm_tracker *tracker = looker;
  tracker_total *known = tracker_total_of(tracker, total->tag);
  if (!known) return;
  known->all.bytes = gm__add_sat(known->all.bytes, total->bytes);
  known->all.peak_bytes = gm__add_sat(known->all.peak_bytes, total->peak_bytes);
  known->all.count += total->count;
}

static void tracker_add_up(gm_tracker *tracker) {
  for (size_t i = 0; i < tracker->total_count; i++) tracker->totals[i].all = tracker->totals[i].own;
  if (tracker->source) tracker->source->totals(tracker->source->user, tracker_add_total, tracker);
}

size_t gm_tracker_by_tag(gm_tracker *tracker, gm_tag_total *totals, size_t capacity) {
  if (!tracker_enter(tracker)) return 0;
  tracker_add_up(tracker);
  if (totals && capacity) tracker_rank_all(tracker, totals, capacity);
  size_t count = tracker->total_count;
  tracker_leave(tracker);
  return count;
}

typedef struct tracker_text {
  char *text;
  size_t capacity, length;
} tracker_text;

static void tracker_print(tracker_text *out, const char *format, ...) GM_PRINTF(2, 3);
static void tracker_print(tracker_text *out, const char *format, ...) {
  size_t room = out->length < out->capacity ? out->capacity - out->length : 0;
  va_list args;
  va_start(args, format);
  int length = vsnprintf(room ? out->text + out->length : NULL, room, format, args);
  va_end(args);
  if (length > 0) out->length += (size_t)length;
}

enum { TRACKER_REPORT_TAGS = 16, TRACKER_REPORT_ENTRIES = 32 };

/* tags are read before the tracker's lock is taken: gm_tag_name takes the context's. */
static void tracker_print_tags(gm_tracker *tracker, tracker_text *out) {
  gm_tag_total totals[TRACKER_REPORT_TAGS];
  size_t count = gm_tracker_by_tag(tracker, totals, TRACKER_REPORT_TAGS);
  for (size_t i = 0; i < count && i < TRACKER_REPORT_TAGS; i++) {
    char bytes[16], peak[16];
    const char *name = gm_tag_name(tracker->ctx, totals[i].tag);
    gm_format_bytes(totals[i].bytes, bytes, sizeof bytes);
    gm_format_bytes(totals[i].peak_bytes, peak, sizeof peak);
    tracker_print(out, "tag %-16s %10s in %" PRIu64 ", peak %s\n", *name ? name : "(none)", bytes, totals[i].count,
                  peak);
  }
  if (count > TRACKER_REPORT_TAGS) tracker_print(out, "and %zu more tags\n", count - TRACKER_REPORT_TAGS);
}

static void tracker_print_entries(gm_tracker *tracker, tracker_text *out) {
  gm_track_entry entries[TRACKER_REPORT_ENTRIES];
  size_t count = gm_tracker_find_old(tracker, 0, entries, TRACKER_REPORT_ENTRIES);
  uint64_t now = gm__now_ns();
  for (size_t i = 0; i < count && i < TRACKER_REPORT_ENTRIES; i++) {
    const gm_track_entry *entry = &entries[i];
    char bytes[16];
    gm_format_bytes(entry->bytes, bytes, sizeof bytes);
    const char *name = gm_tag_name(tracker->ctx, entry->tag);
    tracker_print(out, "#%" PRIu64 " %10s at 0x%" PRIx64 ", tag %s, %.3f s old, mark %" PRIu64 "\n", entry->id, bytes,
                  entry->address, *name ? name : "(none)", (double)(now - entry->born_ns) / 1e9, entry->mark);
  }
  if (count > TRACKER_REPORT_ENTRIES) tracker_print(out, "and %zu younger ones\n", count - TRACKER_REPORT_ENTRIES);
}

size_t gm_tracker_report(gm_tracker *tracker, char *text, size_t capacity) {
  GM__UNCANCELLED();
  if (!text) capacity = 0;
  if (capacity) text[0] = 0;
  if (!tracker_is(tracker) || gm__context_forked(tracker->ctx)) return 0;
  tracker_text out = {text, capacity, 0};
  char bytes[16], peak[16];
  gm_format_bytes(gm_tracker_total_bytes(tracker), bytes, sizeof bytes);
  gm_format_bytes(gm_tracker_peak_bytes(tracker), peak, sizeof peak);
  tracker_print(&out, "%" PRIu64 " alive, %s, peak %s\n", gm_tracker_count(tracker), bytes, peak);
  tracker_print_tags(tracker, &out);
  tracker_print_entries(tracker, &out);
  return out.length;
}
