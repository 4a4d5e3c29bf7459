/* Compaction, moves and sleep of buffers and of whole pools on the simulated HIP runtimes, to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/relocation_bench.h"
#include "tests/simulated/hip/hip_world.h"

static void buffers_move(const char *library) {
  const gm_context_params params = {.struct_size = sizeof params}; /* GM_HIP_LIBRARY */
  assert_int_equal(setenv("GM_HIP_LIBRARY", library, 1), 0);
  world_load(library);
  relocation_on_device("hip", &params);
  world_end(NULL);
}

static void test_buffers_move_on_an_older_runtime(void **state) {
  (void)state;
  buffers_move(SIM_HIP5_LIBRARY);
}

static void test_buffers_move_on_a_newer_runtime(void **state) {
  (void)state;
  buffers_move(SIM_HIP6_LIBRARY);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_buffers_move_on_an_older_runtime),
      cmocka_unit_test(test_buffers_move_on_a_newer_runtime),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
