/* The few of cmocka's checks that the shared fixtures use, for a program that is no cmocka test and must build without
 * it. A fixture that cannot be made ends the run. */
#ifndef GM_TESTS_CTS_ASSERTS_H
#define GM_TESTS_CTS_ASSERTS_H

#include <stdio.h>
#include <stdlib.h>

#define fail_msg(...)                  \
  do {                                 \
    fprintf(stderr, "%s: ", __FILE__); \
    fprintf(stderr, __VA_ARGS__);      \
    fputc('\n', stderr);               \
    exit(1);                           \
  } while (0)
#define assert_true(good)                                  \
  do {                                                     \
    if (!(good)) fail_msg("line %d: %s", __LINE__, #good); \
  } while (0)
#define assert_int_equal(got, want) assert_true((long long)(got) == (long long)(want))

#endif
