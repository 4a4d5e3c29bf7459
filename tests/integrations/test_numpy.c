/* NumPy's handler, called as NumPy calls it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "integrations/numpy/gm_numpy.h"
#include "integrations/shared/engines.h"

static const gm_numpy_functions *of = &gm_numpy.functions;

static void test_sizes_and_zeros(void **state) {
  (void)state;
  for (size_t bytes = 0; bytes < 5000; bytes += 7) {
    unsigned char *one = of->allocate(of->user, bytes), *other = of->allocate_zeroed(of->user, bytes, 1);
    assert_non_null(one);
    assert_non_null(other);
    assert_int_equal((uintptr_t)one % 64, 0);
    for (size_t i = 0; i < bytes; i++) assert_int_equal(other[i], 0);
    memset(one, 0xff, bytes);
    memset(other, 0xff, bytes);
    of->release(of->user, one, bytes);
    of->release(of->user, other, 1); /* a size that is old */
  }
  of->release(of->user, NULL, 0);
  assert_int_equal(gm_engines_host_figure("active"), 0);
}

static void test_resize_keeps_the_bytes(void **state) {
  (void)state;
  unsigned char *it = of->resize(of->user, NULL, 100);
  for (unsigned i = 0; i < 100; i++) it[i] = (unsigned char)i;
  const size_t sizes[] = {101, 5000, 4999, 1 << 20, 100, 300, 99};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    it = of->resize(of->user, it, sizes[s]);
    assert_non_null(it);
    for (unsigned i = 0; i < 99; i++) assert_int_equal(it[i], i);
    memset(it + 99, 0xee, sizes[s] - 99);
  }
  assert_null(of->resize(of->user, it, SIZE_MAX / 2)); /* and what was there stays */
  assert_int_equal(it[98], 98);
  of->release(of->user, it, 99);
  assert_int_equal(gm_engines_host_figure("active"), 0);
}

static void test_impossible_sizes_are_refused(void **state) {
  (void)state;
  unsigned char other;
  assert_null(of->allocate(of->user, SIZE_MAX));
  assert_null(of->allocate_zeroed(of->user, SIZE_MAX / 2, 3));
  assert_null(of->resize(of->user, &other, 10));
  assert_true(strlen(gm_engines_why()) > 10);
  assert_int_equal(gm_engines_host_figure("no such field"), UINT64_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes_and_zeros),
      cmocka_unit_test(test_resize_keeps_the_bytes),
      cmocka_unit_test(test_impossible_sizes_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
