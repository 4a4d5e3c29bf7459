/* gm's copies through the CUDA backend, on the link model of the simulated driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "support/cuda_fixture.h"
#include "support/link_ops.h"

static link_ops scene;

static void gm_copies_overlap_where_they_can(void **state) {
  (void)state;
  cuda_fixture f;
  cuda_begin(&f);
  cuda_open(&f);
  scene = (link_ops){.ops = f.ops, .device = f.device, .say = cuda_say};
  cuda_entry("simCudaJournal", &scene.copy);
  link_ops_begin(&scene);
  link_ops_play(&scene);
  link_ops_end(&scene);
  cuda_end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gm_copies_overlap_where_they_can)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
