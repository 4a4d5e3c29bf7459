/* Reservations on a simulated card of CUDA: two contexts find by its address that their card is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/cuda_fixture.h"
#include "support/reserve_scene.h"

static void test_contexts_share_the_promises_of_a_card(void **state) {
  (void)state;
  char libraries[512];
  snprintf(libraries, sizeof libraries, "cuda=%s", getenv("GM_CUDA_LIBRARY"));
  cuda_say("set TOTAL 128m");
  reserve_scene_holds("cuda", libraries, NULL, UINT64_C(80) << 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_contexts_share_the_promises_of_a_card),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
