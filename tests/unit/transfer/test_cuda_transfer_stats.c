/* The figures of transfers against the journal of the link model, in its virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "core/base/clock.h"
#include "support/link_model.h"
#include "support/transfer_scene.h"

static link_journal journal;
static bool plays; /* gm's clock is the model's */

uint64_t __real_gm__now_ns(void);
uint64_t __wrap_gm__now_ns(void);
uint64_t __wrap_gm__now_ns(void) { return plays ? (uint64_t)cuda_count("now") : __real_gm__now_ns(); }

static void play(const char *links) {
  cuda_say(links);
  plays = true;
}

static void take_journal(void) {
  link_journal_copy *copy;
  cuda_entry("simCudaJournal", &copy);
  link_journal_take(&journal, copy);
  plays = false;
  cuda_say("set LINK off");
}

/* Within a hundredth. */
static void near(double said, double true_value) {
  const double apart = said > true_value ? said - true_value : true_value - said;
  if (apart > true_value / 100) fail_msg("%g, not %g", said, true_value);
}

static double busy(gm__link_kind kind) { return (double)link_busy(&journal, kind) * 1e-9; }

static void one_way_is_as_busy_as_its_link(void **state) {
  (void)state;
  const gm_copy copies[] = {copy_up(0, BYTES), copy_down(0, BYTES)};
  for (int down_now = 0; down_now < 2; down_now++) {
    run(&copies[down_now], 1, NULL); /* the ring is there */
    play("set LINK h2d:1000:5,d2h:800:5,poll:0");
    const gm_transfer_stats stats = run(&copies[down_now], 1, NULL);
    take_journal();
    const gm__link_kind kind = down_now ? GM__LINK_D2H : GM__LINK_H2D;
    near((double)stats.link_bytes, (double)link_bytes(&journal, kind));
    near((double)stats.useful_bytes, (double)link_bytes(&journal, kind));
    near((double)stats.link_copies, (double)link_count(&journal, kind));
    near(down_now ? stats.down : stats.up, busy(kind));
    near(stats.seconds, (double)link_makespan(&journal) * 1e-9);
    assert_true((down_now ? stats.up : stats.down) == 0 && stats.inside == 0);
    assert_true(stats.overhead < 0.01);
  }
}

/* One stream has one order: each way has its own time. */
static void each_way_of_a_transfer_has_its_time(void **state) {
  (void)state;
  const gm_copy copies[] = {copy_up(0, BYTES), copy_inside(BYTES), copy_down(0, BYTES)};
  run(copies, 3, NULL);
  play("set LINK h2d:1000,d2h:800,d2d:400,poll:0");
  const gm_transfer_stats stats = run(copies, 3, NULL);
  take_journal();
  near(stats.seconds, (double)link_makespan(&journal) * 1e-9);
  near(stats.up, busy(GM__LINK_H2D));
  near(stats.inside, busy(GM__LINK_D2D));
  near(stats.down, busy(GM__LINK_D2H));
  assert_true(stats.overhead < 0.01);
}

/* Time that passes after the end is no part of the transfer. */
static void time_after_the_end_does_not_count(void **state) {
  (void)state;
  const gm_copy one = copy_down(0, SLOT);
  run(&one, 1, NULL);
  play("set LINK h2d:1000,d2h:1000,poll:0");
  gm_transfer *t = start(&one, 1, NULL);
  bool done = false;
  cuda_say("advance 65536");
  assert_int_equal(gm_transfer_poll(t, NULL, &done, NULL), GM_OK);
  assert_true(done);
  cuda_say("advance 1000000");
  const gm_transfer_stats stats = wait_for(t, GM_OK);
  release(t);
  take_journal();
  near(stats.seconds, 65536e-9); /* it had ended */
  near(stats.down, busy(GM__LINK_D2H));
}

static void a_measured_link_is_the_ceiling(void **state) {
  (void)state;
  const gm_copy copies[] = {copy_up(0, BYTES), copy_down(0, BYTES)};
  gm_transfer_links links = {.struct_size = sizeof links};
  gm_error err;
  assert_true(run(copies, 2, NULL).up_utilisation == 0); /* not measured */
  play("set LINK h2d:1000,d2h:800,poll:0");
  ok(gm_transfer_measure(device, &links, &err), &err);
  near(links.up, 1e9);
  near(links.down, 0.8e9);
  take_journal();
  play("set LINK h2d:1000,d2h:400,poll:0");
  const gm_transfer_stats stats = run(copies, 2, NULL);
  take_journal();
  near(stats.up_utilisation, (double)link_bytes(&journal, GM__LINK_H2D) / busy(GM__LINK_H2D) / links.up);
  near(stats.up_utilisation, 1);
  near(stats.down_utilisation, 0.5);
  gm_transfer_links again = {.struct_size = sizeof again};
  cuda_say("zero");
  ok(gm_transfer_measure(device, &again, &err), &err);
  assert_int_equal(cuda_calls("cuMemcpyHtoDAsync"), 0); /* once */
  assert_true(again.up == links.up && again.down == links.down);
  assert_int_equal(gm_transfer_measure(device, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
}

int main(void) {
#define TRANSFER_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TRANSFER_TEST(one_way_is_as_busy_as_its_link),
      TRANSFER_TEST(each_way_of_a_transfer_has_its_time),
      TRANSFER_TEST(a_measured_link_is_the_ceiling),
      TRANSFER_TEST(time_after_the_end_does_not_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
