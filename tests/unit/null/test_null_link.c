/* The link model on the null backend: copies, kernels, waits and time as gm asks for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "support/counted_services.h"
#include "support/link_model.h"

enum { MB = 1000000, STREAMS = 3, SLOTS = 3 };

static const gm_backend_ops *const ops = &gm__null_backend;

typedef struct link_scene {
  counted_services services;
  gm_backend_host host;
  void *driver, *device, *streams[STREAMS];
  gm_memory memory[SLOTS];
  unsigned char *pinned[SLOTS];
} link_scene;

static link_scene scene;
static link_journal journal;

static void begin(const char *spec, const char *options) {
  counted_services_init(&scene.services);
  scene.host =
      (gm_backend_host){.struct_size = sizeof scene.host, .services = &scene.services.services, .options = options};
  assert_int_equal(ops->init(&scene.host, &scene.driver, NULL), GM_OK);
  assert_int_equal(ops->device_open(scene.driver, 0, &scene.device, NULL), GM_OK);
  for (int i = 0; i < STREAMS; i++) {
    gm_stream_kind kind;
    assert_int_equal(ops->stream_create(scene.device, &scene.streams[i], &kind, NULL), GM_OK);
  }
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = MB};
  for (int i = 0; i < SLOTS; i++) {
    assert_int_equal(ops->memory_alloc(scene.device, &params, &scene.memory[i], NULL), GM_OK);
    scene.pinned[i] = calloc(1, MB);
    assert_non_null(scene.pinned[i]);
  }
  if (spec) assert_int_equal(gm__null_link(scene.device, spec, NULL), GM_OK);
}

static void end_as(gm_close_mode mode) {
  for (int i = 0; i < STREAMS; i++) ops->stream_close(scene.device, scene.streams[i], mode);
  for (int i = 0; i < SLOTS; i++) {
    ops->memory_free(scene.device, &scene.memory[i], GM_CLOSE_NORMAL, NULL);
    free(scene.pinned[i]);
  }
  ops->device_close(scene.device, GM_CLOSE_NORMAL);
  ops->fini(scene.driver, GM_CLOSE_NORMAL);
  counted_services_check(&scene.services);
}

static void end(void) { end_as(GM_CLOSE_NORMAL); }

static void take_journal(void) {
  const uint64_t written = gm__null_journal(scene.device, journal.lines, LINK_JOURNAL_LINES);
  assert_in_range(written, 0, LINK_JOURNAL_LINES);
  journal.count = (size_t)written;
}

static gm_backend_point up(int stream, int slot, uint64_t bytes) {
  gm_backend_point point;
  assert_int_equal(ops->copy_to_device(scene.device, scene.streams[stream], &scene.memory[slot], 0, scene.pinned[slot],
                                       bytes, &point, NULL),
                   GM_OK);
  return point;
}

static gm_backend_point down(int stream, int slot, uint64_t bytes) {
  gm_backend_point point;
  assert_int_equal(ops->copy_to_host(scene.device, scene.streams[stream], &scene.memory[slot], 0, scene.pinned[slot],
                                     bytes, &point, NULL),
                   GM_OK);
  return point;
}

static gm_backend_point step(int stream, int slot) {
  const uint64_t at = scene.memory[slot].address;
  gm_backend_point point;
  assert_int_equal(gm__null_launch(scene.device, scene.streams[stream], "step", at, at, MB, &point, NULL), GM_OK);
  return point;
}

static void wait_on(int stream, const gm_backend_point *point) {
  assert_int_equal(ops->point_wait_on(scene.device, scene.streams[stream], point, NULL), GM_OK);
}

static void wait_for(const gm_backend_point *point) {
  assert_int_equal(ops->point_wait(scene.device, point, UINT64_MAX, NULL), GM_OK);
}

static bool passed(const gm_backend_point *point) {
  bool done = false;
  assert_int_equal(ops->point_done(scene.device, point, &done, NULL), GM_OK);
  return done;
}

static void without_a_model_nothing_changes(void **state) {
  (void)state;
  begin(NULL, "latency=100");
  gm_backend_point point = up(0, 0, MB);
  assert_int_equal(point.handle, 1);
  assert_int_equal(point.value, 100);
  assert_int_equal(
      ops->copy_to_host(scene.device, scene.streams[0], &scene.memory[0], 0, scene.pinned[0], 1, &point, NULL),
      GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm__null_launch(scene.device, scene.streams[0], "step", 0, 0, 0, &point, NULL),
                   GM_ERR_NOT_SUPPORTED);
  assert_true(gm__null_use(scene.device, scene.pinned[0], MB, true));
  take_journal();
  assert_int_equal(journal.count, 0);
  assert_int_equal(gm__null_early(scene.device), 0);
  end();
}

static void wrong_words_leave_the_state(void **state) {
  (void)state;
  gm_error err;
  begin("h2d:1000", "");
  assert_int_equal(gm__null_link(scene.device, "h2d:1000,colour:3", &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "colour"));
  const gm_backend_point point = up(0, 0, MB);
  wait_for(&point);
  take_journal();
  assert_int_equal(link_makespan(&journal), MB);
  end();
}

static void both_directions_overlap_and_one_does_not(void **state) {
  (void)state;
  begin("h2d:1000:5,d2h:1000:5", "");
  up(0, 0, MB / 2);
  up(1, 1, MB / 2);
  const gm_backend_point last = down(2, 2, MB);
  wait_for(&last);
  for (int i = 0; i < STREAMS; i++) assert_int_equal(ops->stream_sync(scene.device, scene.streams[i], NULL), GM_OK);
  take_journal();
  assert_int_equal(link_makespan(&journal), MB + 2 * 5000);
  assert_int_equal(link_overlap(&journal, GM__LINK_H2D, GM__LINK_H2D), 0);
  assert_int_equal(link_overlap(&journal, GM__LINK_H2D, GM__LINK_D2H), MB + 5000);
  assert_int_equal(link_bytes(&journal, GM__LINK_H2D), MB);
  assert_int_equal(link_bytes(&journal, GM__LINK_D2H), MB);
  end();
}

static void time_passes_as_far_as_somebody_waits(void **state) {
  (void)state;
  begin("h2d:1000,d2h:1000,poll:10", "");
  const gm_backend_point first = up(0, 0, 1000), second = up(0, 0, 1000);
  assert_false(passed(&first)); /* the look takes 10 ns */
  gm__null_advance(scene.device, 989);
  assert_false(passed(&first));
  assert_true(passed(&first));
  assert_int_equal(ops->point_wait(scene.device, &second, 900, NULL), GM_ERR_TIMEOUT);
  assert_false(passed(&second));
  wait_for(&second);
  assert_true(passed(&second));
  take_journal();
  assert_int_equal(journal.lines[1].end, 2000);
  end();
}

static void looks_alone_get_there(void **state) {
  (void)state;
  begin("h2d:1000", "");
  const gm_backend_point point = up(0, 0, MB);
  int looks = 0;
  while (!passed(&point)) looks++;
  assert_int_equal(looks, 1000);
  end();
}

static void what_comes_down_is_there_at_the_end_of_its_copy(void **state) {
  (void)state;
  begin("d2h:1000", "");
  const gm_backend_point point = down(0, 0, 1000);
  gm__null_advance(scene.device, 999);
  assert_int_equal(scene.pinned[0][0], 0);
  assert_int_equal(scene.pinned[0][999], 0);
  wait_for(&point);
  assert_int_equal(scene.pinned[0][0], 0xcd);
  assert_int_equal(scene.pinned[0][999], 0xcd);
  assert_int_equal(scene.pinned[0][1000], 0);
  end();
}

typedef struct pipeline {
  int steps, depth;
  bool waits, one_stream, forgets;
} pipeline;

static void pipeline_run(const pipeline *p) {
  const int step_stream = p->one_stream ? 0 : 1, down_stream = p->one_stream ? 0 : 2;
  gm_backend_point downs[SLOTS] = {{0}};
  for (int i = 0; i < p->steps; i++) {
    const int slot = i % p->depth;
    if (!p->forgets) wait_on(0, &downs[slot]);
    const gm_backend_point there = up(0, slot, MB / 2);
    if (p->waits) wait_for(&there);
    wait_on(step_stream, &there);
    const gm_backend_point done = step(step_stream, slot);
    wait_on(down_stream, &done);
    downs[slot] = down(down_stream, slot, MB / 2);
    if (p->waits) wait_for(&downs[slot]);
  }
  wait_for(&downs[(p->steps - 1) % p->depth]);
  take_journal();
}

static const gm__link_kind stages[] = {GM__LINK_H2D, GM__LINK_COMPUTE, GM__LINK_D2H};
static const char *const stage_times = "h2d:500,d2h:500,kernel:step:800";

/* N * 1000 µs + 1000 + 800, within a hundredth. */
static void a_pipeline_takes_its_longest_stage_each_step(void **state) {
  (void)state;
  begin(stage_times, "");
  pipeline_run(&(pipeline){.steps = 100, .depth = 3});
  assert_in_range(link_makespan(&journal), 101800 * UINT64_C(990), 101800 * UINT64_C(1010));
  assert_true(link_overlap_share(&journal, stages, 3) >= 0.97);
  assert_int_equal(gm__null_early(scene.device), 0);
  end();
}

static void programs_that_cannot_overlap_show_none(void **state) {
  (void)state;
  static const pipeline serial[] = {{.steps = 50, .depth = 3, .waits = true},
                                    {.steps = 50, .depth = 3, .one_stream = true},
                                    {.steps = 50, .depth = 1}};
  for (size_t i = 0; i < sizeof serial / sizeof serial[0]; i++) {
    begin(stage_times, "");
    pipeline_run(&serial[i]);
    assert_int_equal(link_makespan(&journal), UINT64_C(50) * 2800 * 1000);
    assert_true(link_overlap_share(&journal, stages, 3) == 0);
    end();
  }
}

static void a_slot_that_is_reused_too_early_is_seen(void **state) {
  (void)state;
  begin(stage_times, "");
  pipeline_run(&(pipeline){.steps = 20, .depth = 2, .forgets = true});
  assert_true(gm__null_early(scene.device) > 0);
  end();
}

static void a_host_that_writes_too_early_is_seen(void **state) {
  (void)state;
  begin("h2d:1000", "");
  const gm_backend_point point = up(0, 0, 1000);
  assert_true(gm__null_use(scene.device, scene.pinned[0], 1, false));
  assert_false(gm__null_use(scene.device, scene.pinned[0] + 999, 1, true));
  wait_for(&point);
  assert_true(gm__null_use(scene.device, scene.pinned[0], 1, true));
  assert_int_equal(gm__null_early(scene.device), 1);
  end();
}

static void the_other_copies_take_time_inside_the_device(void **state) {
  (void)state;
  begin("d2d:1000:1", "");
  const gm_copy_item items[] = {{.src = &scene.memory[0], .dst = &scene.memory[1], .bytes = 1000},
                                {.src = &scene.memory[1], .dst = &scene.memory[2], .bytes = 2000}};
  assert_int_equal(ops->copy(scene.device, scene.streams[0], &items[0], NULL, NULL), GM_OK);
  assert_int_equal(ops->copy_many(scene.device, scene.streams[0], items, 2, NULL, NULL), GM_OK);
  assert_int_equal(ops->fill(scene.device, scene.streams[0], &scene.memory[0], 0, 4000, "", 1, NULL, NULL), GM_OK);
  assert_int_equal(ops->copy_many(scene.device, scene.streams[0], items, 0, NULL, NULL), GM_OK);
  assert_int_equal(ops->copy_to_device(scene.device, NULL, &scene.memory[0], 0, scene.pinned[0], 1, NULL, NULL), GM_OK);
  take_journal();
  assert_int_equal(link_count(&journal, GM__LINK_D2D), 4);
  assert_int_equal(link_bytes(&journal, GM__LINK_D2D), 8000);
  assert_int_equal(link_busy(&journal, GM__LINK_D2D), 8000 + 4 * 1000);
  assert_int_equal(link_count(&journal, GM__LINK_H2D), 1);
  end();
}

/* Work of the option `latency` ends before work of the model begins; points outlive their model. */
static void a_model_comes_and_goes(void **state) {
  (void)state;
  begin(NULL, "latency=100");
  const gm_backend_point before = up(0, 0, 1);
  assert_int_equal(gm__null_link(scene.device, "h2d:1000", NULL), GM_OK);
  const gm_backend_point first = up(0, 0, 1000);
  assert_true(passed(&before));
  take_journal();
  assert_int_equal(journal.count, 0);
  assert_int_equal(gm__null_link(scene.device, "h2d:1", NULL), GM_OK);
  assert_true(passed(&first));
  const gm_backend_point second = up(0, 0, 1);
  assert_true(passed(&first));
  assert_false(passed(&second));
  wait_on(1, &second);
  assert_int_equal(gm__null_link(scene.device, NULL, NULL), GM_OK);
  assert_true(passed(&second));
  wait_for(&second);
  wait_on(1, &second);
  end();
}

static void work_is_given_back_when_the_device_goes(void **state) {
  (void)state;
  begin("h2d:1000", "");
  const gm_backend_point point = up(0, 0, MB);
  wait_on(1, &point);
  assert_int_equal(ops->copy_to_device(scene.device, NULL, &scene.memory[0], 0, scene.pinned[0], 1, NULL, NULL), GM_OK);
  up(2, 0, MB);
  end_as(GM_CLOSE_ABANDON);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_model_nothing_changes),
      cmocka_unit_test(wrong_words_leave_the_state),
      cmocka_unit_test(both_directions_overlap_and_one_does_not),
      cmocka_unit_test(time_passes_as_far_as_somebody_waits),
      cmocka_unit_test(looks_alone_get_there),
      cmocka_unit_test(what_comes_down_is_there_at_the_end_of_its_copy),
      cmocka_unit_test(a_pipeline_takes_its_longest_stage_each_step),
      cmocka_unit_test(programs_that_cannot_overlap_show_none),
      cmocka_unit_test(a_slot_that_is_reused_too_early_is_seen),
      cmocka_unit_test(a_host_that_writes_too_early_is_seen),
      cmocka_unit_test(the_other_copies_take_time_inside_the_device),
      cmocka_unit_test(a_model_comes_and_goes),
      cmocka_unit_test(work_is_given_back_when_the_device_goes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
