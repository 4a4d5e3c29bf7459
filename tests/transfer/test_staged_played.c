/* Copies between devices through the ring, on the simulated CUDA and HIP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "transfer/played_copy.h"

static void test_without_page_locked_memory(void **state) {
  (void)state;
  transfer_world w;
  played_begin(&w, 2);
  played_say("set PEER silent");
  played_say("set PINNED 1");
  world_fill_sent(8);
  world_write(&w.ends[1], world_sent);
  const gm_peer_result result = played_copy(&w.ends[0], &w.ends[1], NULL, NULL);
  assert_int_equal(result.route, GM_PEER_STAGED_BY_GM);
  assert_false(result.pinned);
  played_check_bytes(&w.ends[0]);
  played_end(&w);
}

/* The links of both devices work at a time: the copy takes little longer than the narrower one alone. */
static void test_the_narrower_link_is_kept_busy(void **state) {
  (void)state;
  static const char *const links[] = {"set LINK d2h:1000,h2d:2000,poll:0", "set LINK d2h:2000,h2d:1000,poll:0"};
  for (int i = 0; i < 2; i++) {
    transfer_world w, other;
    played_begin(&w, 1);
    world_begin(&other);
    assert_true(world_add(&other, played_backend, 1));
    world_fill_sent(9);
    world_write(&other.ends[0], world_sent);
    played_say(links[i]);
    const long begun = played_number("get now");
    const gm_peer_result result = played_copy(&w.ends[0], &other.ends[0], w.ends[0].stream, NULL);
    const double took = (double)(played_number("get now") - begun);
    played_say("set LINK off");
    assert_int_equal(result.route, GM_PEER_STAGED_BY_GM);
    played_check_bytes(&w.ends[0]);
    if (WORLD_BYTES / took < 0.9) fail_msg("%.2f of the link's rate", WORLD_BYTES / took);
    world_finish(&other);
    played_end(&w);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_without_page_locked_memory),
      cmocka_unit_test(test_the_narrower_link_is_kept_busy),
  };
  const int skipped = played_load(argc, argv);
  return skipped ? skipped : cmocka_run_group_tests(tests, NULL, NULL);
}
