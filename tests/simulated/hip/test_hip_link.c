/* gm's copies through the HIP backend, on the link model of the simulated runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "support/link_ops.h"
#include "tests/simulated/hip/hip_world.h"

static link_ops scene;

static void gm_copies_overlap_where_they_can(void **state) {
  (void)state;
  scene = (link_ops){.ops = world.ops, .device = world.device, .say = control};
  engine_symbol("simHipJournal", &scene.copy);
  link_ops_begin(&scene);
  link_ops_play(&scene);
  link_ops_end(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(gm_copies_overlap_where_they_can, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(gm_copies_overlap_where_they_can, world_begin_old, world_end)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
