/* Compaction, moves and sleep of buffers on an OpenCL driver of the CPU, to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/opencl_fixture.h"
#include "support/relocation_bench.h"

static void test_buffers_move(void **state) {
  (void)state;
  opencl_fixture fixture;
  opencl_fixture_init(&fixture); /* skips the test where there is no driver */
  opencl_fixture_close(&fixture);
  const gm_context_params params = {.struct_size = sizeof params};
  relocation_on_device("opencl", &params);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_buffers_move)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
