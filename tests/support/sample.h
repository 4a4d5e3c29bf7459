/* Long sweeps of one thread run in full in every build but the thread sanitizer's, which sees little in them. There
 * each run takes another sample. It prints the seed, and GM_TEST_SEED repeats it. */
#ifndef GM_TESTS_SUPPORT_SAMPLE_H
#define GM_TESTS_SUPPORT_SAMPLE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "support/random.h"

#if defined(__SANITIZE_THREAD__)
#define SAMPLE_IS_FULL false
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SAMPLE_IS_FULL false
#endif
#endif
#ifndef SAMPLE_IS_FULL
#define SAMPLE_IS_FULL true
#endif

/* Whether this step of a sweep is run: all are, or by chance one in so many. For one thread. */
static inline bool sample_takes(uint64_t one_in) {
  static uint64_t state;
  if (SAMPLE_IS_FULL) return true;
  if (!state) {
    const char *seed = getenv("GM_TEST_SEED");
    state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    if (!state) state = 1;
    printf("a sample of one in %llu: GM_TEST_SEED=%llu\n", (unsigned long long)one_in, (unsigned long long)state);
    fflush(stdout);
  }
  return test_random(&state) % one_in == 0;
}

#endif
