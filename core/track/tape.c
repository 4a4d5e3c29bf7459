#include "core/track/tape.h"

#include <string.h>

#include "core/track/recorder.h"

/* Invariants: a chunk holds whole events; numbers of events rise along a tape, and every event of a block is on the
 * tape of its arena, so that no order of tapes can turn an allocation and its free around. */

/* See that so many words fit. */
static void tape_make_room(gm__tape *tape, uint32_t words) {
  if (tape->used + words > GM__TAPE_WORDS) gm__recorder_spill(tape->recorder, tape);
}

static void tape_put(gm__tape *tape, uint64_t word) { tape->words[tape->used++] = word; }

static void tape_put_wide(gm__tape *tape, gm__tape_wide what, uint64_t now, uint64_t label_bytes) {
  tape_put(tape, GM__TAPE_WIDE | (uint64_t)what << 2 | label_bytes << 4);
  tape_put(tape, now);
  tape->last = now;
}

static bool tape_is_wide(const gm__tape *tape, uint64_t now, uint32_t number, uint64_t bytes) {
  return (now - tape->last) >> GM__TAPE_DELTA_BITS || number >> GM__TAPE_NUMBER_BITS || bytes >> GM__TAPE_BYTES_BITS;
}

void gm__tape_add_slow(gm__tape *tape, uint64_t now, uint32_t number, uint64_t bytes, uint64_t stream) {
  tape_make_room(tape, GM__TAPE_WORDS - GM__TAPE_FULL);
  if (stream != tape->stream) tape_put(tape, GM__TAPE_STREAM | stream << 2); /* ids are counted: 62 bits are enough */
  tape->stream = stream;
  if (tape_is_wide(tape, now, number, bytes)) {
    tape_put_wide(tape, bytes ? GM__TAPE_WIDE_ALLOC : GM__TAPE_WIDE_FREE, now, 0);
    tape_put(tape, number);
    if (bytes) tape_put(tape, bytes);
    return;
  }
  tape_put(tape, (bytes ? GM__TAPE_ALLOC : GM__TAPE_FREE) | (now - tape->last) << GM__TAPE_DELTA_AT |
                     (uint64_t)number << GM__TAPE_NUMBER_AT | bytes << GM__TAPE_BYTES_AT);
  tape->last = now;
}

void gm__tape_mark(gm__tape *tape, const char *label, size_t length) {
  const uint32_t words = (uint32_t)((length + 7) / 8);
  tape_make_room(tape, words + 2);
  tape_put_wide(tape, GM__TAPE_WIDE_MARK, atomic_fetch_add(tape->clock, 1) + 1, length);
  memcpy(&tape->words[tape->used], label, length);
  tape->used += words;
}
