/* The change that gm_explain names works on a Vulkan driver of the CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/change_scene.h"
#include "support/vulkan_fixture.h"

static void test_changes(void **state) {
  (void)state;
  vulkan_fixture fixture;
  vulkan_fixture_init(&fixture, ""); /* skips the test where there is no driver */
  vulkan_fixture_close(&fixture);
  const gm_context_params params = {.struct_size = sizeof params, .backends = "vulkan"};
  change_scene_on("vulkan", &params, false, 32 * MIB, 75);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_changes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
