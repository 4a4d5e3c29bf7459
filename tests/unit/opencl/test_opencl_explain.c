/* The change that gm_explain names works on an OpenCL driver of the CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/change_scene.h"
#include "support/opencl_fixture.h"

static void test_changes(void **state) {
  (void)state;
  opencl_fixture fixture;
  opencl_fixture_init(&fixture); /* skips the test where there is no driver */
  opencl_fixture_close(&fixture);
  const gm_context_params params = {.struct_size = sizeof params, .backends = "opencl"};
  change_scene_on("opencl", &params, false, 32 * MIB, 250);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_changes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
