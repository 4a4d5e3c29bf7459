#include "backends/shared/fill_plan.h"

#include <string.h>

/* The plan sets single bytes up to the first multiple of four and after the last one. A pattern of up to four bytes is
 * one word, turned to where it begins. For a longer pattern the API may have a call of its own. Otherwise the plan sets
 * the first period word by word, and copies what is there behind itself, twice as much each time. */

enum { FILL_WORD = 4 };

typedef struct fill_plan {
  const gm__fill_target *target;
  uint8_t ring[2 * GM__FILL_PATTERN_MAX]; /* the pattern, over and over: any turn of it is a slice */
  uint64_t start, at;                     /* of the first byte, of the next to set */
} fill_plan;

bool gm__fill_pattern_ok(uint32_t pattern_bytes) {
  return pattern_bytes > 0 && pattern_bytes <= GM__FILL_PATTERN_MAX && !(pattern_bytes & (pattern_bytes - 1));
}

/* Fewer than a word. */
static int fill_bytes(fill_plan *plan, uint64_t bytes) {
  int code = 0;
  for (uint64_t i = 0; i < bytes && code == 0; i++, plan->at++) {
    const uint8_t value = plan->ring[(plan->at - plan->start) % GM__FILL_PATTERN_MAX];
    code = plan->target->set_bytes(plan->target->user, plan->at, value, 1);
  }
  return code;
}

static int fill_words(fill_plan *plan, uint64_t count) {
  uint32_t word;
  memcpy(&word, plan->ring + (plan->at - plan->start) % GM__FILL_PATTERN_MAX, sizeof word);
  const int code = plan->target->set_words(plan->target->user, plan->at, word, count);
  plan->at += count * FILL_WORD;
  return code;
}

/* Set the next `bytes`. `alike`: all words are equal, so one call sets them. */
static int fill_range(fill_plan *plan, uint64_t bytes, bool alike) {
  const uint64_t end = plan->at + bytes, head = (FILL_WORD - plan->at % FILL_WORD) % FILL_WORD;
  int code = fill_bytes(plan, head < bytes ? head : bytes);
  while (code == 0 && end - plan->at >= FILL_WORD) {
    code = fill_words(plan, alike ? (end - plan->at) / FILL_WORD : 1);
  }
  return code == 0 ? fill_bytes(plan, end - plan->at) : code;
}

static int fill_double(const fill_plan *plan, uint64_t done, uint64_t bytes) {
  int code = 0;
  while (done < bytes && code == 0) {
    const uint64_t more = done < bytes - done ? done : bytes - done;
    code = plan->target->copy(plan->target->user, plan->start + done, plan->start, more);
    done += more;
  }
  return code;
}

static int fill_wide(fill_plan *plan, uint64_t bytes, uint32_t period) {
  bool done = false;
  const uint64_t first = period < bytes ? period : bytes;
  int code = 0;
  if (plan->target->set_ring) code = plan->target->set_ring(plan->target->user, plan->at, plan->ring, bytes, &done);
  if (code != 0 || done) return code;
  code = fill_range(plan, first, false);
  return code == 0 ? fill_double(plan, first, bytes) : code;
}

/* The shortest period of the pattern: 1, 2, 4, 8 or 16. */
static uint32_t fill_period(const uint8_t *ring) {
  uint32_t period = 1;
  while (period < GM__FILL_PATTERN_MAX && memcmp(ring, ring + period, GM__FILL_PATTERN_MAX) != 0) period *= 2;
  return period;
}

int gm__fill_run(const gm__fill_target *target, uint64_t at, uint64_t bytes, const void *pattern,
                 uint32_t pattern_bytes) {
  fill_plan plan = {.target = target, .start = at, .at = at};
  if (bytes == 0) return 0;
  for (size_t i = 0; i < sizeof plan.ring; i += pattern_bytes) memcpy(plan.ring + i, pattern, pattern_bytes);
  const uint32_t period = fill_period(plan.ring);
  if (period == 1) return target->set_bytes(target->user, at, plan.ring[0], bytes);
  return period <= FILL_WORD ? fill_range(&plan, bytes, true) : fill_wide(&plan, bytes, period);
}
