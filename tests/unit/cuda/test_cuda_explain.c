/* The change that gm_explain names works on a simulated card. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/change_scene.h"
#include "support/cuda_fixture.h"

static void test_changes(void **state) {
  (void)state;
  char libraries[512];
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  cuda_say("set TOTAL 64m");
  snprintf(libraries, sizeof libraries, "cuda=%s", getenv("GM_CUDA_LIBRARY"));
  const gm_context_params params = {
      .struct_size = sizeof params, .backends = "cuda", .libraries = libraries, .ignore_environment = true};
  change_scene_on("cuda", &params, true, 80 * MIB, 1500);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_changes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
