/* Compaction, moves and sleep of buffers on the simulated CUDA driver, to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/cuda_fixture.h"
#include "support/relocation_bench.h"

static void test_buffers_move(void **state) {
  (void)state;
  const gm_context_params params = {.struct_size = sizeof params}; /* GM_CUDA_LIBRARY */
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  relocation_on_device("cuda", &params);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_buffers_move)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
