/* Which card is chosen where the kernel's files do not tell what is free: HIP under WSL2, in a container. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "hip_world.h"
#include "support/pool_bench.h"
#include "support/temp_folder.h"

static void test_without_sysfs(void **state) {
  (void)state;
  char libraries[512];
  temp_folder root; /* no /sys, no /proc */
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_selection best = {.struct_size = sizeof best};
  temp_folder_make(&root);
  setenv("SIMCUDA_DEVICES", "2", 1);
  setenv("SIMCUDA_TOTAL", "16g", 1);
  setenv("SIMCUDA_OTHERS", "15g,1g", 1);
  world.library = dlopen(SIM_HIP6_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(world.library);
  engine_load();
  control("reload");
  snprintf(libraries, sizeof libraries, "hip=%s", SIM_HIP6_LIBRARY);
  const gm_context_params params = {.struct_size = sizeof params,
                                    .backends = "cpu,hip",
                                    .libraries = libraries,
                                    .host_root = root.path,
                                    .ignore_environment = true};
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  pool_bench_ok(gm_best_backend(ctx, &best, err));
  assert_string_equal(best.id.backend, "hip");
  assert_int_equal(best.device, 0);
  assert_int_equal(best.free_state, GM_FIGURE_ESTIMATED);
  assert_int_equal(best.free_bytes, (UINT64_C(16) << 30) - (512u << 20));
  pool_bench_ok(gm_open_for_bytes(ctx, "hip", UINT64_C(8) << 30, &device, err));
  assert_int_equal(gm_device_get_info(device)->index, 1); /* the first one was opened, and had 1 GiB */
  pool_bench_ok(gm_best_backend(ctx, &best, err));
  assert_string_equal(best.id.backend, "hip");
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  temp_folder_remove(&root);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_without_sysfs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
