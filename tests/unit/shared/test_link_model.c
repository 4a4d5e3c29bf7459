/* The link model by itself: each rule of engines, links, lanes, the clock and the journal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/link_scene.h"

static void a_copy_takes_latency_and_bytes_by_bandwidth(void **state) {
  (void)state;
  begin("h2d:25000:8,d2h:10000:3,d2d:400000:2");
  const gm__link_op *up = add(0, GM__LINK_H2D, 100 * MB), *down = add(1, GM__LINK_D2H, 1);
  const gm__link_op *inside = add(2, GM__LINK_D2D, 0);
  run();
  assert_int_equal(up->entry.end - up->entry.start, 8000 + 4000000);
  assert_int_equal(down->entry.end - down->entry.start, 3000 + 1); /* a part of a nanosecond is a whole one */
  assert_int_equal(inside->entry.end, 2000);
  assert_int_equal(link_bytes(&journal, GM__LINK_H2D), 100 * MB);
  assert_int_equal(link_busy(&journal, GM__LINK_H2D), 4008000);
  end();
}

static void a_link_without_a_rate_takes_no_time(void **state) {
  (void)state;
  begin("");
  add(0, GM__LINK_H2D, UINT64_MAX);
  run();
  assert_int_equal(model.now, 0);
  end();
}

static void times_that_do_not_fit_are_the_last_moment(void **state) {
  (void)state;
  begin("h2d:1:1");
  gm__link_reach(&model, 5);
  const gm__link_op *op = add(0, GM__LINK_H2D, UINT64_MAX);
  assert_null(gm__link_next(&model, UINT64_MAX - 1));
  run();
  assert_int_equal(op->entry.end, UINT64_MAX);
  end();
}

static void two_copies_of_one_direction_share_an_engine(void **state) {
  (void)state;
  begin("h2d:1000,d2h:1000");
  add(0, GM__LINK_H2D, MB);
  add(1, GM__LINK_H2D, MB);
  run();
  assert_int_equal(link_makespan(&journal), 2 * MB);
  assert_int_equal(link_overlap(&journal, GM__LINK_H2D, GM__LINK_H2D), 0);
  end();
}

static uint64_t both_directions(const char *spec) {
  begin(spec);
  add(0, GM__LINK_H2D, MB);
  add(1, GM__LINK_D2H, MB);
  run();
  end();
  return link_overlap(&journal, GM__LINK_H2D, GM__LINK_D2H);
}

static void full_duplex_overlaps_and_half_duplex_serialises(void **state) {
  (void)state;
  assert_int_equal(both_directions("h2d:1000,d2h:1000"), MB);
  assert_int_equal(link_makespan(&journal), MB);
  assert_int_equal(both_directions("h2d:1000,d2h:1000,engines:2"), MB);
  assert_int_equal(both_directions("h2d:1000,d2h:1000,engines:1"), 0);
  assert_int_equal(link_makespan(&journal), 2 * MB);
}

static void devices_have_engines_of_their_own(void **state) {
  (void)state;
  begin("h2d:1000");
  add(0, GM__LINK_H2D, MB);
  add(1, GM__LINK_H2D, MB)->entry.device = 1;
  run();
  assert_int_equal(link_makespan(&journal), MB);
  end();
}

static void a_pageable_copy_has_its_own_rate(void **state) {
  (void)state;
  begin("h2d:25000:8,d2h:25000:8,pageable:12500");
  gm__link_op *up = add(0, GM__LINK_H2D, 25 * MB), *down = add(1, GM__LINK_D2H, 25 * MB);
  up->entry.pageable = down->entry.pageable = true;
  run();
  assert_int_equal(up->entry.end - up->entry.start, 2008000);
  assert_int_equal(down->entry.end - down->entry.start, 2008000);
  end();
}

static void kernels_cost_what_their_name_says(void **state) {
  (void)state;
  begin("kernel:scale:400,kernel:*:7");
  const gm__link_op *scale = add_named(0, GM__LINK_COMPUTE, "scale");
  const gm__link_op *other = add_named(1, GM__LINK_COMPUTE, "scales");
  const gm__link_op *host = add_named(2, GM__LINK_HOST, "scale");
  gm__link_op *more = add(3, GM__LINK_HOST, 0);
  more->cost_ns = 5;
  run();
  assert_int_equal(scale->entry.end - scale->entry.start, 400000);
  assert_int_equal(other->entry.start, 400000); /* one engine for kernels */
  assert_int_equal(other->entry.end, 407000);
  assert_int_equal(host->entry.end, 400000); /* the host is no engine */
  assert_int_equal(more->entry.end, 5);
  end();
}

static void peers_go_by_their_link_or_through_the_host(void **state) {
  (void)state;
  begin("h2d:1000:1,d2h:500:2,peer:1-2:4000:5");
  gm__link_op *linked = add(0, GM__LINK_PEER, MB), *staged = add(1, GM__LINK_PEER, MB),
              *down = add(2, GM__LINK_D2H, MB);
  linked->entry.device = 2;
  linked->entry.peer = 1;
  staged->entry.device = down->entry.device = 0;
  staged->entry.peer = 1;
  run();
  assert_int_equal(linked->entry.end, 5000 + 250000);
  assert_int_equal(staged->entry.end, 3000 + 2000000); /* the narrower link, both latencies */
  assert_int_equal(down->entry.start, staged->entry.end);
  end();
}

static void a_lane_goes_in_order_and_waits_cross_lanes(void **state) {
  (void)state;
  begin("h2d:1000,d2h:1000,kernel:k:1000");
  const gm__link_op *up = add(0, GM__LINK_H2D, MB);
  const gm__link_op *behind = add_named(0, GM__LINK_COMPUTE, "k");
  wait_for(1, up);
  const gm__link_op *down = add(1, GM__LINK_D2H, MB);
  const gm__link_op *free_one = add(2, GM__LINK_D2H, MB / 2);
  run();
  assert_int_equal(behind->entry.start, up->entry.end);
  assert_int_equal(down->entry.start, up->entry.end);
  assert_int_equal(free_one->entry.start, 0);
  end();
}

/* An engine does not stand still for work that came first and is not ready. */
static void who_is_ready_first_begins_first(void **state) {
  (void)state;
  begin("h2d:1000,d2h:1000");
  const gm__link_op *up = add(0, GM__LINK_H2D, MB);
  wait_for(1, up);
  const gm__link_op *late = add(1, GM__LINK_D2H, MB), *soon = add(2, GM__LINK_D2H, 3 * MB);
  const gm__link_op *last = add(3, GM__LINK_D2H, MB);
  run();
  assert_int_equal(soon->entry.start, 0);
  assert_int_equal(last->entry.start, 3 * MB); /* ready at 0 */
  assert_int_equal(late->entry.start, 4 * MB); /* ready at 1 ms */
  end();
}

static void the_clock_moves_only_when_told(void **state) {
  (void)state;
  begin("h2d:1000");
  const gm__link_op *first = add(0, GM__LINK_H2D, MB);
  add(0, GM__LINK_H2D, MB);
  assert_int_equal(model.now, 0);
  host_waits(first);
  assert_int_equal(model.now, MB);
  assert_null(gm__link_next(&model, 2 * MB - 1));
  gm__link_reach(&model, 2 * MB - 1);
  const gm__link_op *late = add(1, GM__LINK_COMPUTE, 0);
  assert_non_null(gm__link_next(&model, UINT64_MAX)); /* takes no time, and begins at once */
  assert_int_equal(late->entry.start, 2 * MB - 1);
  gm__link_reach(&model, 0);
  assert_int_equal(model.now, 2 * MB - 1);
  run();
  end();
}

static bool gate_is_open;
static bool gate(const gm__link_op *op) { return op->entry.kind != GM__LINK_H2D || gate_is_open; }

static void a_gate_holds_work_until_it_opens(void **state) {
  (void)state;
  begin("h2d:1000,d2h:1000");
  model.gate = gate;
  gate_is_open = false;
  const gm__link_op *held = add(0, GM__LINK_H2D, MB);
  add(1, GM__LINK_D2H, MB);
  run();
  assert_int_equal(model.now, MB);
  gate_is_open = true;
  run();
  assert_int_equal(held->entry.start, MB);
  end();
}

static void wrong_words_are_named(void **state) {
  (void)state;
  static const char *const wrong[] = {"h2d",
                                      "h2d:",
                                      "h2d:0",
                                      "h2d:5:",
                                      "h2d:5:x",
                                      "h2d:5x",
                                      "h2d:-5",
                                      "h2d:1:2:3",
                                      "x:1",
                                      "h2d:1,,",
                                      "h2d:1,",
                                      "engines:3",
                                      "engines:0",
                                      "jitter:100",
                                      "kernel:",
                                      "kernel::5",
                                      "kernel:a",
                                      "kernel:a:",
                                      "peer:0-0:5",
                                      "peer:0-1",
                                      "peer:0-64:5",
                                      "peer:1:5",
                                      "pageable:0",
                                      "seed:0",
                                      "poll:",
                                      "poll:1 ",
                                      "d2d:99999999999999999999999",
                                      "kernel:a:99999999999999999999"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    gm__link_model out = {.early = 77};
    assert_non_null(gm__link_read(wrong[i], &out));
    assert_int_equal(out.early, 77);
  }
  const char *second = "h2d:1,colour:2";
  assert_string_equal(gm__link_read(second, &model), "colour:2");
  char name[GM__LINK_NAME + 16];
  memset(name, 'a', sizeof name);
  memcpy(name, "kernel:", 7);
  memcpy(name + sizeof name - 3, ":1", 3);
  assert_non_null(gm__link_read(name, &model)); /* too long */
}

static void a_journal_keeps_its_newest_lines(void **state) {
  (void)state;
  gm__link_entry few[3];
  begin("h2d:1000");
  model.journal = few;
  model.capacity = 3;
  for (int i = 0; i < 5; i++) add(0, GM__LINK_H2D, (uint64_t)i + 1);
  run();
  assert_int_equal(model.entries, 5);
  assert_int_equal(few[4 % 3].bytes, 5);
  assert_int_equal(few[2 % 3].bytes, 3);
  end();
}

static void a_lane_that_closes_forgets_its_work(void **state) {
  (void)state;
  begin("h2d:1000,d2h:1000");
  const gm__link_op *gone = add(0, GM__LINK_H2D, MB);
  wait_for(1, gone);
  const gm__link_op *after = add(1, GM__LINK_D2H, MB);
  gm__link_lane_close(&model, &lanes[0]);
  lanes[0].head = NULL;
  run();
  assert_int_equal(after->entry.start, 0);
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_copy_takes_latency_and_bytes_by_bandwidth),
      cmocka_unit_test(a_link_without_a_rate_takes_no_time),
      cmocka_unit_test(times_that_do_not_fit_are_the_last_moment),
      cmocka_unit_test(two_copies_of_one_direction_share_an_engine),
      cmocka_unit_test(full_duplex_overlaps_and_half_duplex_serialises),
      cmocka_unit_test(devices_have_engines_of_their_own),
      cmocka_unit_test(a_pageable_copy_has_its_own_rate),
      cmocka_unit_test(kernels_cost_what_their_name_says),
      cmocka_unit_test(peers_go_by_their_link_or_through_the_host),
      cmocka_unit_test(a_lane_goes_in_order_and_waits_cross_lanes),
      cmocka_unit_test(who_is_ready_first_begins_first),
      cmocka_unit_test(the_clock_moves_only_when_told),
      cmocka_unit_test(a_gate_holds_work_until_it_opens),
      cmocka_unit_test(wrong_words_are_named),
      cmocka_unit_test(a_journal_keeps_its_newest_lines),
      cmocka_unit_test(a_lane_that_closes_forgets_its_work),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
