/* Pipelines on the link model against their closed form, programs that cannot overlap, and what is used too early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/link_scene.h"
#include "support/random.h"

typedef struct pipeline {
  int steps, depth;
  bool waits;    /* the host waits after each copy */
  bool one_lane; /* all stages in one stream */
} pipeline;

/* up -> step -> down, with `depth` slots that are free again when their item is down. */
static void pipeline_run(const pipeline *p) {
  const gm__link_op *ups[64] = {0}, *downs[64] = {0};
  const int up_lane = 0, step_lane = p->one_lane ? 0 : 1, down_lane = p->one_lane ? 0 : 2;
  for (int i = 0; i < p->steps; i++) {
    const int slot = i % p->depth;
    if (downs[slot] && !p->one_lane) wait_for(up_lane, downs[slot]);
    ups[slot] = add(up_lane, GM__LINK_H2D, 1 * MB);
    if (p->waits) host_waits(ups[slot]);
    if (!p->one_lane) wait_for(step_lane, ups[slot]);
    const gm__link_op *step = add_named(step_lane, GM__LINK_COMPUTE, "step");
    if (!p->one_lane) wait_for(down_lane, step);
    downs[slot] = add(down_lane, GM__LINK_D2H, 1 * MB);
    if (p->waits) host_waits(downs[slot]);
  }
  run();
  end();
}

static void assert_within_a_hundredth(uint64_t found, uint64_t wanted) {
  assert_in_range(found * 100, wanted * 99, wanted * 101);
}

static const gm__link_kind stages[] = {GM__LINK_H2D, GM__LINK_COMPUTE, GM__LINK_D2H};

static void a_pipeline_takes_its_longest_stage_each_step(void **state) {
  (void)state;
  static const struct {
    const char *spec;
    uint64_t most, others; /* microseconds */
  } cases[] = {{"h2d:1000,d2h:1000,kernel:step:3000", 3000, 2000},
               {"h2d:250:10,d2h:500,kernel:step:300", 4010, 2300},
               {"h2d:1000,d2h:200,kernel:step:700", 5000, 1700},
               {"h2d:1000,d2h:1000,kernel:step:1000", 1000, 2000}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    begin(cases[i].spec);
    pipeline_run(&(pipeline){.steps = 100, .depth = 4});
    assert_within_a_hundredth(link_makespan(&journal), (100 * cases[i].most + cases[i].others) * 1000);
    assert_true(link_overlap_share(&journal, stages, 3) >= 0.97);
    assert_int_equal(model.early, 0);
  }
}

/* Stages that share an engine count as one. */
static void a_pipeline_on_half_duplex_counts_both_copies_as_one_stage(void **state) {
  (void)state;
  begin("h2d:1000,d2h:1000,kernel:step:500,engines:1");
  pipeline_run(&(pipeline){.steps = 100, .depth = 4});
  assert_within_a_hundredth(link_makespan(&journal), UINT64_C(100) * 2000 * 1000 + 500 * 1000);
  assert_int_equal(link_overlap(&journal, GM__LINK_H2D, GM__LINK_D2H), 0);
  assert_true(link_overlap(&journal, GM__LINK_H2D, GM__LINK_COMPUTE) > 0);
}

static void a_program_that_waits_after_each_copy_shows_no_overlap(void **state) {
  (void)state;
  begin("h2d:1000,d2h:1000,kernel:step:1000");
  pipeline_run(&(pipeline){.steps = 100, .depth = 4, .waits = true});
  assert_int_equal(link_makespan(&journal), UINT64_C(300) * 1000 * 1000);
  assert_true(link_overlap_share(&journal, stages, 3) == 0);
}

static void one_stream_shows_no_overlap(void **state) {
  (void)state;
  begin("h2d:1000,d2h:1000,kernel:step:1000");
  pipeline_run(&(pipeline){.steps = 100, .depth = 4, .one_lane = true});
  assert_int_equal(link_makespan(&journal), UINT64_C(300) * 1000 * 1000);
  assert_true(link_overlap_share(&journal, stages, 3) == 0);
}

static void one_slot_shows_no_overlap(void **state) {
  (void)state;
  begin("h2d:1000,d2h:1000,kernel:step:1000");
  pipeline_run(&(pipeline){.steps = 100, .depth = 1});
  assert_true(link_overlap_share(&journal, stages, 3) == 0);
}

static uint64_t jittered(const char *spec, int depth) {
  begin(spec);
  pipeline_run(&(pipeline){.steps = 200, .depth = depth});
  return link_makespan(&journal);
}

/* The numbers do not change from run to run; more slots take more of the jitter. */
static void jitter_repeats_and_needs_depth(void **state) {
  (void)state;
  const char *spec = "h2d:1000,d2h:1000,kernel:step:1000,jitter:50,seed:7";
  const uint64_t two = jittered(spec, 2), eight = jittered(spec, 8);
  assert_true(eight < two);
  assert_int_equal(jittered(spec, 8), eight);
  assert_int_not_equal(jittered("h2d:1000,d2h:1000,kernel:step:1000,jitter:50,seed:8", 8), eight);
  for (size_t i = 0; i < journal.count; i++) {
    const uint64_t took = journal.lines[i].end - journal.lines[i].start;
    if (journal.lines[i].kind != GM__LINK_MARK) assert_in_range(took, 500 * 1000, 1500 * 1000);
  }
}

static void the_host_uses_memory_too_early(void **state) {
  (void)state;
  begin("h2d:1000,d2h:1000");
  gm__link_op *up = add(0, GM__LINK_H2D, 100), *down = add(1, GM__LINK_D2H, 100);
  up->entry.from = 1000, up->entry.to = 5000;
  down->entry.from = 6000, down->entry.to = 2000;
  assert_true(gm__link_use(&model, 1000, 100, false)); /* both only read */
  assert_true(gm__link_use(&model, 1100, 50, true));   /* beside it */
  assert_true(gm__link_use(&model, 1900, 100, true));
  assert_false(gm__link_use(&model, 1099, 1, true)); /* overwrites a source */
  assert_int_equal(model.early_work.sequence, up->entry.sequence);
  assert_false(gm__link_use(&model, 1950, 51, false)); /* reads a destination */
  assert_int_equal(model.early, 2);
  run();
  assert_true(gm__link_use(&model, 1000, 5000, true));
  assert_int_equal(model.early, 2);
  gm__link_clear(&model);
  assert_int_equal(model.early + model.entries, 0);
  end();
}

/* A slot that the next item takes over: with or without the wait. */
static uint64_t slot_is_reused(bool waits, gm__link_kind second, uint64_t second_bytes) {
  begin("h2d:1000,d2h:1000,kernel:*:1");
  gm__link_op *down = add(0, GM__LINK_D2H, 2000);
  down->entry.from = 4096;
  if (waits) wait_for(1, down);
  gm__link_op *next = add(1, second, second_bytes);
  next->entry.to = 4096 + 10;
  run();
  end();
  return model.early;
}

static void work_of_two_lanes_meets_in_memory(void **state) {
  (void)state;
  assert_int_equal(slot_is_reused(false, GM__LINK_H2D, 100), 1); /* ends first */
  assert_int_equal(slot_is_reused(false, GM__LINK_H2D, 5000), 1);
  assert_int_equal(slot_is_reused(true, GM__LINK_H2D, 100), 0);
  assert_int_equal(slot_is_reused(false, GM__LINK_COMPUTE, 100), 1);
  assert_int_equal(slot_is_reused(true, GM__LINK_COMPUTE, 100), 0);
}

static void further_ranges_of_a_kernel_count(void **state) {
  (void)state;
  for (int writes = 0; writes < 2; writes++) {
    begin("d2h:1000,kernel:k:1");
    gm__link_op *kernel = add_named(0, GM__LINK_COMPUTE, "k"), *down = add(1, GM__LINK_D2H, 2000);
    down->entry.from = 7000;
    assert_ptr_equal(gm__link_next(&model, UINT64_MAX), kernel);
    gm__link_touch(&model, kernel, 7100, 4, writes);
    run();
    assert_int_equal(model.early, writes);
    assert_int_equal(link_count(&journal, GM__LINK_COMPUTE), 1); /* a touch is no further kernel */
    end();
  }
}

/* Many schedules: those with all waits show nothing early, and one that was forgotten shows whenever it mattered. */
static uint64_t random_schedule(uint64_t *random, int forgotten) {
  begin("h2d:1000:1,d2h:700:2,kernel:step:2,jitter:90");
  model.seed = test_random(random) | 1;
  const gm__link_op *downs[3] = {0};
  for (int i = 0; i < 12; i++) {
    const int slot = i % 3;
    const uint64_t bytes = 1 + test_random(random) % 4000, at = 10000u * (unsigned)(slot + 1);
    if (downs[slot] && i != forgotten) wait_for(0, downs[slot]);
    gm__link_op *up = add(0, GM__LINK_H2D, bytes);
    up->entry.to = at;
    wait_for(1, up);
    gm__link_op *step = add_named(1, GM__LINK_COMPUTE, "step");
    step->entry.from = step->entry.to = at;
    step->entry.bytes = bytes;
    wait_for(2, step);
    gm__link_op *down = add(2, GM__LINK_D2H, bytes);
    down->entry.from = at;
    downs[slot] = down;
    if (test_random(random) % 4 == 0) gm__link_next(&model, model.now + test_random(random) % 4000);
  }
  run();
  end();
  return model.early;
}

static void random_schedules_show_a_forgotten_wait(void **state) {
  (void)state;
  uint64_t random = 20261127, seen = 0;
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(random_schedule(&random, -1), 0);
    seen += random_schedule(&random, 3 + i % 9) > 0;
  }
  assert_true(seen > 500);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_pipeline_takes_its_longest_stage_each_step),
      cmocka_unit_test(a_pipeline_on_half_duplex_counts_both_copies_as_one_stage),
      cmocka_unit_test(a_program_that_waits_after_each_copy_shows_no_overlap),
      cmocka_unit_test(one_stream_shows_no_overlap),
      cmocka_unit_test(one_slot_shows_no_overlap),
      cmocka_unit_test(jitter_repeats_and_needs_depth),
      cmocka_unit_test(the_host_uses_memory_too_early),
      cmocka_unit_test(work_of_two_lanes_meets_in_memory),
      cmocka_unit_test(further_ranges_of_a_kernel_count),
      cmocka_unit_test(random_schedules_show_a_forgotten_wait),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
