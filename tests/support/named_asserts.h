/* cmocka's assert_int_equal that says what was compared, and names statuses and answers: "gm_pool_destroy(pool, &err)
 * is GM_ERR_BUSY, not GM_OK". cmake/GmTest.cmake includes it before each cmocka program, so no test names it. An enum
 * is an unsigned int to C, so the text of the comparison tells what it is about. */
#ifndef GM_TESTS_SUPPORT_NAMED_ASSERTS_H
#define GM_TESTS_SUPPORT_NAMED_ASSERTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gm/pool.h"
#include "gm/status.h"

/* From the lists of the headers: a program that does not link gm asserts, too. */
static inline const char *named_status(LargestIntegralType value) {
  switch (value) {
#define X(name, number, text) \
  case number: return #name;
    GM_STATUS_MAP(X)
#undef X
  }
  return "GM_ERR_?";
}

static inline const char *named_acquire(LargestIntegralType value) {
  switch (value) {
#define X(name, number) \
  case number: return #name;
    GM_ACQUIRE_MAP(X)
#undef X
  }
  return "GM_ACQUIRE_?";
}

static inline const char *named_value(const char *got_text, const char *want_text, LargestIntegralType value) {
  const char *const texts[] = {got_text, want_text};
  for (int i = 0; i < 2; i++) {
    if (strstr(texts[i], "GM_ACQUIRE_") || strstr(texts[i], "gm_alloc(")) return named_acquire(value);
  }
  for (int i = 0; i < 2; i++) {
    if (strstr(texts[i], "GM_OK") || strstr(texts[i], "GM_ERR_") || strstr(texts[i], "status"))
      return named_status(value);
  }
  return NULL;
}

/* The message of a comparison that failed. It is no part of what the compiler looks through at each assertion. */
__attribute__((noinline, cold, unused)) static void named_tell(LargestIntegralType got, LargestIntegralType want,
                                                               const char *got_text, const char *want_text) {
  const char *name = named_value(got_text, want_text, got), *wanted = named_value(got_text, want_text, want);
  if (name && wanted) {
    print_error("%s is %s, not %s\n", got_text, name, wanted);
  } else {
    print_error("%s is %lld, not %lld, which is %s\n", got_text, (long long)got, (long long)want, want_text);
  }
}

/* cmocka ends the test. */
static inline void named_assert_equal(LargestIntegralType got, LargestIntegralType want, const char *got_text,
                                      const char *want_text, const char *file, int line) {
  if (got != want) named_tell(got, want, got_text, want_text);
  _assert_int_equal(got, want, file, line);
}

#undef assert_int_equal
#define assert_int_equal(a, b) \
  named_assert_equal(cast_to_largest_integral_type(a), cast_to_largest_integral_type(b), #a, #b, __FILE__, __LINE__)

#endif
