/* What an arena writes down while its pool is recorded: each event in a word of 64 bits, numbered across all arenas, in
 * a chunk that goes to a scratch file when it is full. Externally synchronised (the arena's lock); what is one
 * recording's is in recorder.h. */
#ifndef GM_CORE_TRACK_TAPE_H
#define GM_CORE_TRACK_TAPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  GM__TAPE_WORDS = 8192, /* of a chunk; the first is its head */
  GM__TAPE_FULL = GM__TAPE_WORDS - 5,
  GM__TAPE_LABEL_MOST = 255,
  GM__TAPE_DELTA_BITS = 10,
  GM__TAPE_NUMBER_BITS = 24,
  GM__TAPE_BYTES_BITS = 28,
  GM__TAPE_DELTA_AT = 2,
  GM__TAPE_NUMBER_AT = GM__TAPE_DELTA_AT + GM__TAPE_DELTA_BITS,
  GM__TAPE_BYTES_AT = GM__TAPE_NUMBER_AT + GM__TAPE_NUMBER_BITS
};

/* The two lowest bits of a word. A free or allocation has the distance of its number from that of the tape's event
 * before, the number of the block, and the bytes. STREAM: the id of the stream of all that follows. What has no room in
 * a word is WIDE: what it is in the next two bits, the bytes of a label from bit 4 on; the event's number in the next
 * word; then the number of the block and the bytes, or the label, padded to whole words. */
typedef enum gm__tape_kind { GM__TAPE_FREE, GM__TAPE_ALLOC, GM__TAPE_STREAM, GM__TAPE_WIDE } gm__tape_kind;
typedef enum gm__tape_wide { GM__TAPE_WIDE_FREE, GM__TAPE_WIDE_ALLOC, GM__TAPE_WIDE_MARK } gm__tape_wide;

typedef struct gm__tape {
  struct gm__recorder *recorder;
  _Atomic uint64_t *clock; /* the recorder's: events so far */
  uint64_t last;           /* number of the event before */
  uint64_t stream;         /* id */
  uint32_t used;           /* words; at least the head */
  uint32_t first, slot;    /* places in the scratch file: of its first chunk, of this one */
  uint32_t spilled;        /* chunks before this one */
  uint64_t words[GM__TAPE_WORDS];
} gm__tape;

/* gm__tape_add for what has no room. */
void gm__tape_add_slow(gm__tape *tape, uint64_t now, uint32_t number, uint64_t bytes, uint64_t stream);

/* Less than GM__TAPE_LABEL_MOST bytes. */
void gm__tape_mark(gm__tape *tape, const char *label, size_t length);

/* The block was handed out with so many bytes, or, with 0, freed, on the stream with that id (0: the host). */
static inline void gm__tape_add(gm__tape *tape, uint32_t number, uint64_t bytes, uint64_t stream) {
  const uint64_t now = atomic_fetch_add_explicit(tape->clock, 1, memory_order_relaxed) + 1;
  const uint64_t delta = now - tape->last;
  const uint64_t beyond = delta >> GM__TAPE_DELTA_BITS | number >> GM__TAPE_NUMBER_BITS | bytes >> GM__TAPE_BYTES_BITS |
                          (stream ^ tape->stream);
  if (__builtin_expect(beyond || tape->used >= GM__TAPE_FULL, 0)) {
    gm__tape_add_slow(tape, now, number, bytes, stream);
    return;
  }
  tape->last = now;
  tape->words[tape->used++] = (bytes ? GM__TAPE_ALLOC : GM__TAPE_FREE) | delta << GM__TAPE_DELTA_AT |
                              (uint64_t)number << GM__TAPE_NUMBER_AT | bytes << GM__TAPE_BYTES_AT;
}

#endif
