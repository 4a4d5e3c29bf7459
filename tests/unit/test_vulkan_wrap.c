/* gm_block_wrap of Vulkan memory, which need not have an address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gm/native_vulkan.h"
#include "support/vulkan_fixture.h"
#include "support/wrap_twice.h"

static void test_memory_is_wrapped_once(void **state) {
  (void)state;
  pool_bench bench;
  gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}};
  pool_bench_open_device(&bench, "vulkan", NULL);
  wrap_twice(&bench, &native.head, &native.memory_offset, &native.bytes, &native.device_address);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_is_wrapped_once)};
  vulkan_fixture fixture; /* leaves where there is no driver */
  vulkan_fixture_open(&fixture, "");
  vulkan_fixture_close(&fixture);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
