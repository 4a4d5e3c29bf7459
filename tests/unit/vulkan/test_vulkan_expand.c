/* Floats of 16 bits as floats of 32 bits by a shader, on a real Vulkan driver, validation on. Where the driver makes no
 * shader the host does the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "support/expand_scene.h"
#include "support/vulkan_fixture.h"

static void *hide_shaders(void *user, const char *backend, const char *symbol, void *found) {
  (void)user, (void)backend;
  return strcmp(symbol, "vkCmdDispatch") == 0 ? NULL : found;
}

static void check_on(const char *options, gm_symbol_hook hook, bool by_host) {
  pool_bench bench = {.pool = NULL};
  counted_services_init(&bench.host);
  const gm_context_params params = {.struct_size = sizeof params,
                                    .services = &bench.host.services,
                                    .backend_options = options,
                                    .symbol_hook = hook,
                                    .ignore_environment = !getenv("GM_VULKAN_LIBRARY")};
  gm_error why;
  pool_bench_ok(gm_context_create(&params, &bench.ctx, err));
  if (gm_device_open_index(bench.ctx, "vulkan", 0, &bench.device, &why)) vulkan_fixture_absent(why.message);
  /* The simulated driver touches all 4 GiB of a range of pages: once is enough. */
  const gm_pool_params pool = {.struct_size = sizeof pool, .strategy = by_host ? GM_STRATEGY_BUCKET : GM_STRATEGY_AUTO};
  pool_bench_ok(gm_pool_create(bench.device, &pool, &bench.pool, err));
  expand_check(&bench, by_host);
  pool_bench_close(&bench);
}

static void the_device_expands_every_number(void **state) {
  (void)state;
  check_on("vulkan:validation", NULL, false);
  check_on("vulkan:validation,no_host_visible", NULL, false);
}

static void without_shaders_the_host_does(void **state) {
  (void)state;
  check_on("vulkan:no_host_visible", hide_shaders, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_device_expands_every_number),
      cmocka_unit_test(without_shaders_the_host_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
