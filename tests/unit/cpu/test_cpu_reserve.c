/* Reservations of the host's memory. The machine is written as files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/reserve_scene.h"
#include "support/tree.h"

static void test_contexts_share_the_promises_of_the_host(void **state) {
  temp_folder *root = *state;
  tree_put(root, "/proc/meminfo", "MemTotal: 131072 kB\nMemFree: 131072 kB\nMemAvailable: 131072 kB\n");
  reserve_scene_holds("cpu", NULL, root->path, UINT64_C(80) << 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_contexts_share_the_promises_of_the_host, tree_set_up, tree_tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
