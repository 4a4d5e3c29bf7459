/* A fill with a pattern of up to 16 bytes, for APIs that set bytes, and words of four at a multiple of four: cut into
 * such calls. Calls no driver but through the target. Thread-safe, no state. */
#ifndef GM_CORE_BASE_FILL_PLAN_H
#define GM_CORE_BASE_FILL_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum { GM__FILL_PATTERN_MAX = 16 };

/* The API's calls, at device addresses. Each returns the driver's code; anything but 0 ends the plan. */
typedef struct gm__fill_target {
  void *user;
  int (*set_bytes)(void *user, uint64_t at, uint8_t value, uint64_t count);
  int (*set_words)(void *user, uint64_t at, uint32_t word, uint64_t count);
  int (*copy)(void *user, uint64_t to, uint64_t from, uint64_t bytes); /* no overlap */
  /* A period of 8 or 16 bytes, in one call; NULL: the API has none. `ring` are the GM__FILL_PATTERN_MAX bytes from `at`
   * on, over and over. *out_done false with an answer of 0: it cannot now, nothing was done, and copies will do it. */
  int (*set_ring)(void *user, uint64_t at, const uint8_t *ring, uint64_t bytes, bool *out_done);
} gm__fill_target;

/* 1, 2, 4, 8 and 16. */
bool gm__fill_pattern_ok(uint32_t pattern_bytes);

/* Fill `bytes` at `at` with the pattern, which begins with the first byte. Returns the code of the call that ended it,
 * else 0. */
int gm__fill_run(const gm__fill_target *target, uint64_t at, uint64_t bytes, const void *pattern,
                 uint32_t pattern_bytes);

#endif
