/* An event buffer: the events of one arena while its pool is recorded. Each event is a word of 64 bits, numbered across
 * all arenas. A full chunk of words goes to a scratch file. recorder.h has what belongs to the whole recording.
 * REQUIRES: arena lock, for all of it. */
#ifndef GM_CORE_TRACK_EVENT_BUFFER_H
#define GM_CORE_TRACK_EVENT_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  GM__EVENT_WORDS = 8192, /* words of a chunk; the first is its head */
  GM__EVENT_FULL = GM__EVENT_WORDS - 5,
  GM__EVENT_LABEL_MOST = 255,
  GM__EVENT_DELTA_BITS = 10,
  GM__EVENT_NUMBER_BITS = 24,
  GM__EVENT_BYTES_BITS = 28,
  GM__EVENT_DELTA_AT = 2,
  GM__EVENT_NUMBER_AT = GM__EVENT_DELTA_AT + GM__EVENT_DELTA_BITS,
  GM__EVENT_BYTES_AT = GM__EVENT_NUMBER_AT + GM__EVENT_NUMBER_BITS
};

/* The two lowest bits of a word say its kind. FREE and ALLOC have the distance of their number from the event before,
 * the number of the block, and the bytes. STREAM has the id of the stream of all events that follow. WIDE is an event
 * that needs more than a word. Its kind is in the next two bits, and the bytes of a label are from bit 4 on. The next
 * word has the event's number. Then follow the number of the block and the bytes, or the label, padded to whole words.
 */
typedef enum gm__event_kind { GM__EVENT_FREE, GM__EVENT_ALLOC, GM__EVENT_STREAM, GM__EVENT_WIDE } gm__event_kind;
typedef enum gm__event_wide { GM__EVENT_WIDE_FREE, GM__EVENT_WIDE_ALLOC, GM__EVENT_WIDE_MARK } gm__event_wide;

typedef struct gm__event_buffer {
  struct gm__recorder *recorder;
  _Atomic uint64_t *clock; /* the recorder's: how many events there were so far */
  uint64_t last;           /* the number of the event before */
  uint64_t stream;         /* id of the stream of the events that follow */
  uint32_t used;           /* words; at least the head */
  uint32_t first, slot;    /* places in the scratch file: of its first chunk, and of this one */
  uint32_t spilled;        /* chunks in the scratch file */
  uint32_t number;         /* of the event buffer in its recording */
  uint64_t words[GM__EVENT_WORDS];
} gm__event_buffer;

/* Like gm__event_buffer_add, for an event that needs more than a word. */
void gm__event_buffer_add_slow(gm__event_buffer *events, uint64_t now, uint32_t number, uint64_t bytes,
                               uint64_t stream);

/* Writes a mark. `length`: less than GM__EVENT_LABEL_MOST bytes. */
void gm__event_buffer_mark(gm__event_buffer *events, const char *label, size_t length);

/* Writes that the block was handed out with so many bytes, or freed (0 bytes), on the stream with that id (0: the
 * host). */
static inline void gm__event_buffer_add(gm__event_buffer *events, uint32_t number, uint64_t bytes, uint64_t stream) {
  const uint64_t now = atomic_fetch_add_explicit(events->clock, 1, memory_order_relaxed) + 1;
  const uint64_t delta = now - events->last;
  const uint64_t beyond = delta >> GM__EVENT_DELTA_BITS | number >> GM__EVENT_NUMBER_BITS |
                          bytes >> GM__EVENT_BYTES_BITS | (stream ^ events->stream);
  if (__builtin_expect(beyond || events->used >= GM__EVENT_FULL, 0)) {
    gm__event_buffer_add_slow(events, now, number, bytes, stream);
    return;
  }
  events->last = now;
  events->words[events->used++] = (bytes ? GM__EVENT_ALLOC : GM__EVENT_FREE) | delta << GM__EVENT_DELTA_AT |
                                  (uint64_t)number << GM__EVENT_NUMBER_AT | bytes << GM__EVENT_BYTES_AT;
}

#endif
