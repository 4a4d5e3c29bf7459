/* A store of four times a pool's memory on a Vulkan driver, to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/vulkan_fixture.h"
/* after the fixture */
#include "support/store_bench.h"

static void test_four_times_the_memory(void **state) {
  (void)state;
  vulkan_fixture fixture;
  vulkan_fixture_init(&fixture, ""); /* skips the test where there is no driver */
  vulkan_fixture_close(&fixture);
  const gm_context_params params = {.struct_size = sizeof params};
  store_on_device("vulkan", &params);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_four_times_the_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
