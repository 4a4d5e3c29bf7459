/* Derived UUIDs: stable, different for different devices, well formed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/shared/uuid.h"

static void test_equal_values_give_equal_bytes(void **state) {
  (void)state;
  uint8_t a[16], b[16];
  gm__uuid_derive("opencl", "pocl", "pthread", 0, a);
  gm__uuid_derive("opencl", "pocl", "pthread", 0, b);
  assert_memory_equal(a, b, sizeof a);
}

static void test_each_value_counts(void **state) {
  (void)state;
  uint8_t ids[6][16];
  gm__uuid_derive("opencl", "pocl", "pthread", 0, ids[0]);
  gm__uuid_derive("vulkan", "pocl", "pthread", 0, ids[1]);
  gm__uuid_derive("opencl", "poc", "lpthread", 0, ids[2]);
  gm__uuid_derive("opencl", "pocl", "pthreads", 0, ids[3]);
  gm__uuid_derive("opencl", "pocl", "pthread", 1, ids[4]);
  gm__uuid_derive("opencl", "pocl", "pthread", 256, ids[5]);
  for (int i = 0; i < 6; i++) {
    for (int j = 0; j < i; j++) assert_memory_not_equal(ids[i], ids[j], 16);
  }
}

static void test_version_and_variant_are_those_of_an_own_uuid(void **state) {
  (void)state;
  uint8_t id[16];
  gm__uuid_derive("", "", "", 0, id);
  assert_int_equal(id[6] >> 4, 8);
  assert_int_equal(id[8] >> 6, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equal_values_give_equal_bytes),
      cmocka_unit_test(test_each_value_counts),
      cmocka_unit_test(test_version_and_variant_are_those_of_an_own_uuid),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
