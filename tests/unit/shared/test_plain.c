/* The checks of a request that every backend makes, and the entries that do nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/shared/plain.h"

static gm_status plain(uint32_t type, uint64_t bytes, uint64_t align) {
  const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = bytes, .align = align};
  return gm__plain_check("memory_alloc", 2, &params, NULL);
}

static void test_requests(void **state) {
  (void)state;
  assert_int_equal(plain(0, 1, 0), GM_OK);
  assert_int_equal(plain(1, UINT64_MAX, UINT64_C(1) << 63), GM_OK);
  assert_int_equal(plain(2, 1, 0), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(plain(0, 0, 0), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(plain(0, 1, 3), GM_ERR_INVALID_ARGUMENT);
}

static void test_indices(void **state) {
  (void)state;
  gm_error err;
  assert_int_equal(gm__plain_check_index("device_open", 2, 1, &err), GM_OK);
  assert_int_equal(gm__plain_check_index("device_open", 2, 2, &err), GM_ERR_NOT_FOUND);
  assert_string_equal(err.message, "`index` must be below 2, the number of devices, is 2");
}

static void test_points(void **state) {
  (void)state;
  const gm_backend_point point = {.handle = 7, .value = 9};
  gm_backend_point copy = {0};
  uint32_t types = 0;
  assert_int_equal(gm__plain_point_copy(NULL, &point, &copy, NULL), GM_OK);
  assert_memory_equal(&copy, &point, sizeof point);
  gm__plain_point_release(NULL, &copy, GM_CLOSE_NORMAL);
  assert_int_equal(gm__plain_type_count(NULL, &types, NULL), GM_OK);
  assert_int_equal(types, 1);
  assert_int_equal(gm__plain_stream_done(NULL, NULL, NULL), GM_OK);
  assert_int_equal(gm__plain_device_state(NULL, NULL), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_requests), cmocka_unit_test(test_indices),
                                     cmocka_unit_test(test_points)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
