/* Compaction, moves and sleep of buffers on a Vulkan driver, to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/vulkan_fixture.h"
/* after the fixture */
#include "support/relocation_bench.h"

static void test_buffers_move(void **state) {
  (void)state;
  vulkan_fixture fixture;
  vulkan_fixture_init(&fixture, ""); /* skips the test where there is no driver */
  vulkan_fixture_close(&fixture);
  const gm_context_params params = {.struct_size = sizeof params};
  relocation_on_device("vulkan", &params);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_buffers_move)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
