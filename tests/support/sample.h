/* Long sweeps of one thread run in full where they see most: under AddressSanitizer. In each other build a run takes
 * another sample, and a small one where cmake/GmTest.cmake sets TESTS_FEW. It prints the seed, and GM_TEST_SEED repeats
 * it. GM_TEST_FULL=1 runs the whole sweep in any build. */
#ifndef GM_TESTS_SUPPORT_SAMPLE_H
#define GM_TESTS_SUPPORT_SAMPLE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "support/random.h"

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SAMPLE_IS_FULL true
#else
#define SAMPLE_IS_FULL false
#endif

/* Another number from run to run, which is printed. GM_TEST_SEED is the first. For one thread. */
static inline uint64_t sample_random(void) {
  static uint64_t state;
  if (!state) {
    const char *seed = getenv("GM_TEST_SEED");
    state = seed ? strtoull(seed, NULL, 10) : ((uint64_t)time(NULL) << 16) + (uint64_t)getpid();
    if (!state) state = 1;
    printf("by chance: GM_TEST_SEED=%llu\n", (unsigned long long)state);
    fflush(stdout);
  }
  return test_random(&state);
}

static inline bool sample_is_full(void) { return SAMPLE_IS_FULL || getenv("GM_TEST_FULL"); }

/* Whether this step of a sweep is run: all are, or by chance one in so many. For one thread. */
static inline bool sample_takes(uint64_t one_in) {
  return sample_is_full() || sample_random() % (getenv("TESTS_FEW") ? 6 * one_in : one_in) == 0;
}

#endif
