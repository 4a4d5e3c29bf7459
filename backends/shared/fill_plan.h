/* A fill with a pattern of up to 16 bytes, cut into calls of an API. The API sets bytes, and words at a multiple of
 * four. It calls the driver through the target alone. Thread-safe, no state. */
#ifndef GM_BACKENDS_SHARED_FILL_PLAN_H
#define GM_BACKENDS_SHARED_FILL_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum { GM__FILL_PATTERN_MAX = 16 };

/* The API's calls, at device addresses. Each returns the driver's code. Any code but 0 ends the plan. */
typedef struct gm__fill_target {
  void *user;
  int (*set_bytes)(void *user, uint64_t at, uint8_t value, uint64_t count);
  int (*set_words)(void *user, uint64_t at, uint32_t word, uint64_t count);
  int (*copy)(void *user, uint64_t to, uint64_t from, uint64_t bytes); /* no overlap */
  /* Set a period of 8 or 16 bytes in one call; NULL: the API has none. `ring` repeats the pattern from `at` on, for
   * GM__FILL_PATTERN_MAX bytes. An answer of 0 with *out_done false means that nothing was done; copies then do it. */
  int (*set_ring)(void *user, uint64_t at, const uint8_t *ring, uint64_t bytes, bool *out_done);
} gm__fill_target;

/* 1, 2, 4, 8 and 16. */
bool gm__fill_pattern_ok(uint32_t pattern_bytes);

/* Fill `bytes` at `at` with the pattern, from its first byte on. Returns the code of the call that ended the plan, else
 * 0. */
int gm__fill_run(const gm__fill_target *target, uint64_t at, uint64_t bytes, const void *pattern,
                 uint32_t pattern_bytes);

#endif
