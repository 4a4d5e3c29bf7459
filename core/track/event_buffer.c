#include "core/track/event_buffer.h"

#include <string.h>

#include "core/track/recorder.h"

/* Invariants: a chunk holds whole events. The numbers of events rise along an event buffer. Every event of a block is
 * in the event buffer of its arena, so merging event buffers never turns an allocation and its free around. */

/* Makes sure that so many words fit. */
static void buffer_make_room(gm__event_buffer *events, uint32_t words) {
  if (events->used + words > GM__EVENT_WORDS) gm__recorder_spill(events->recorder, events);
}

static void buffer_put(gm__event_buffer *events, uint64_t word) { events->words[events->used++] = word; }

static void buffer_put_wide(gm__event_buffer *events, gm__event_wide what, uint64_t now, uint64_t label_bytes) {
  buffer_put(events, GM__EVENT_WIDE | (uint64_t)what << 2 | label_bytes << 4);
  buffer_put(events, now);
  events->last = now;
}

static bool buffer_is_wide(const gm__event_buffer *events, uint64_t now, uint32_t number, uint64_t bytes) {
  return (now - events->last) >> GM__EVENT_DELTA_BITS || number >> GM__EVENT_NUMBER_BITS ||
         bytes >> GM__EVENT_BYTES_BITS;
}

void gm__event_buffer_add_slow(gm__event_buffer *events, uint64_t now, uint32_t number, uint64_t bytes,
                               uint64_t stream) {
  buffer_make_room(events, GM__EVENT_WORDS - GM__EVENT_FULL);
  if (stream != events->stream)
    buffer_put(events, GM__EVENT_STREAM | stream << 2); /* an id is a count: 62 bits are enough */
  events->stream = stream;
  if (buffer_is_wide(events, now, number, bytes)) {
    buffer_put_wide(events, bytes ? GM__EVENT_WIDE_ALLOC : GM__EVENT_WIDE_FREE, now, 0);
    buffer_put(events, number);
    if (bytes) buffer_put(events, bytes);
    return;
  }
  buffer_put(events, (bytes ? GM__EVENT_ALLOC : GM__EVENT_FREE) | (now - events->last) << GM__EVENT_DELTA_AT |
                         (uint64_t)number << GM__EVENT_NUMBER_AT | bytes << GM__EVENT_BYTES_AT);
  events->last = now;
}

void gm__event_buffer_mark(gm__event_buffer *events, const char *label, size_t length) {
  const uint32_t words = (uint32_t)((length + 7) / 8);
  buffer_make_room(events, words + 2);
  buffer_put_wide(events, GM__EVENT_WIDE_MARK, atomic_fetch_add(events->clock, 1) + 1, length);
  memcpy(&events->words[events->used], label, length);
  events->used += words;
}
