/* Floats of 16 bits as floats of 32 bits by a kernel, on a real OpenCL driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "support/expand_scene.h"
#include "support/opencl_fixture.h"

static opencl_fixture f;

static void the_device_expands_every_number(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "opencl", NULL, NULL);
  expand_check(&bench, false);
  pool_bench_close(&bench);
}

OPENCL_FIXTURE_GROUP(f)

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_device_expands_every_number)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}
