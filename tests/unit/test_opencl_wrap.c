/* gm_block_wrap of OpenCL memory, which need not have an address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gm/native_opencl.h"
#include "support/opencl_fixture.h"
#include "support/wrap_twice.h"

static void test_memory_is_wrapped_once(void **state) {
  (void)state;
  pool_bench bench;
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  pool_bench_open_device(&bench, "opencl", NULL);
  wrap_twice(&bench, &native.head, &native.offset, &native.bytes, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_is_wrapped_once)};
  opencl_fixture fixture; /* leaves where there is no driver */
  opencl_fixture_open(&fixture);
  opencl_fixture_close(&fixture);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
