/* The words of an engine on its streams' work, and frees at its points: on streams that gm can ask nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "gm/cleanup.h"
#include "gm/copy.h"
#include "support/mute_backend.h"

#define SECOND UINT64_C(1000000000)

typedef struct passed_scene {
  pool_bench base;
  gm_stream *a, *b; /* `a` is mute but while it submits */
} passed_scene;

enum { STRATEGIES = 2, BYTES = 8 << 20 };

static const gm_strategy passed_strategies[STRATEGIES] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

static void scene_open(passed_scene *scene, gm_strategy strategy) {
  mute_open(&scene->base, GM_STREAM_FIFO, strategy);
  pool_bench_ok(gm_stream_create(scene->base.device, &scene->a, err));
  pool_bench_ok(gm_stream_create(scene->base.device, &scene->b, err));
  mute(scene->a, true);
}

/* Closes all, `a` without a word of the driver. */
static void scene_close(passed_scene *scene) {
  pool_bench_ok(gm_stream_passed(scene->a, NULL, err));
  pool_bench_ok(gm_stream_close(scene->a, err));
  pool_bench_ok(gm_stream_close(scene->b, err));
  mute_close(&scene->base);
}

static gm_block take(const passed_scene *scene, gm_stream *stream, uint64_t bytes, gm_acquire expected) {
  const gm_request request = {.bytes = bytes, .stream = stream};
  gm_block block = {0};
  assert_int_equal(gm_alloc(scene->base.pool, &request, &block), expected);
  return block;
}

static gm_block take_any(const passed_scene *scene, gm_stream *stream, uint64_t bytes) {
  const gm_request request = {.bytes = bytes, .stream = stream};
  gm_block block = {0};
  assert_true(gm_alloc(scene->base.pool, &request, &block) <= GM_ACQUIRE_FRESH);
  return block;
}

static void give(const passed_scene *scene, const gm_block *block, gm_stream *stream) {
  assert_int_equal(gm_free(scene->base.pool, block, stream), GM_OK);
}

/* A second of virtual work, and a point behind it. */
static gm_point work(const passed_scene *scene, gm_stream *stream) {
  gm_memory nowhere = {.handle = 1, .bytes = 64};
  gm_backend_point inner;
  gm_point point = {0};
  const bool was_mute = mute_place(stream->handle) != NULL;
  mute(stream, false);
  assert_int_equal(
      gm__null_backend.fill(scene->base.device->handle, stream->handle, &nowhere, 0, 64, "", 1, &inner, NULL), GM_OK);
  pool_bench_ok(gm_stream_record(stream, &point, err));
  if (was_mute) mute(stream, true);
  return point;
}

static void pass_time(const passed_scene *scene) { gm__null_advance(scene->base.device->handle, 10 * SECOND); }

/* Does work still use what the pool has? The host never gets that. */
static bool is_kept(const passed_scene *scene) {
  const gm_request request = {.bytes = BYTES, .flags = GM_POOLED_ONLY};
  gm_block block;
  const gm_acquire answer = gm_alloc(scene->base.pool, &request, &block);
  if (answer == GM_ACQUIRE_OK) give(scene, &block, NULL);
  return answer != GM_ACQUIRE_OK;
}

static void test_a_word_of_the_engine_gives_memory_back(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    passed_scene scene;
    scene_open(&scene, passed_strategies[i]);
    gm_block block = take(&scene, scene.a, BYTES, GM_ACQUIRE_FRESH);
    give(&scene, &block, scene.a);
    assert_int_equal(gm_pool_trim(scene.base.pool, 0), 0);
    assert_int_equal(gm_stream_close(scene.a, NULL), GM_ERR_BUSY);
    pool_bench_ok(gm_stream_passed(scene.a, NULL, err));
    pool_bench_ok(gm_stream_passed(scene.a, NULL, err)); /* twice */
    assert_true(gm_pool_trim(scene.base.pool, 0) >= BYTES);
    block = take(&scene, scene.a, BYTES, GM_ACQUIRE_FRESH);
    give(&scene, &block, scene.a); /* later frees are not meant */
    assert_int_equal(gm_pool_trim(scene.base.pool, 0), 0);
    assert_int_equal(gm_stream_close(scene.a, NULL), GM_ERR_BUSY);
    scene_close(&scene);
  }
}

static void test_a_point_gives_memory_back_when_it_has_passed(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES * 2; i++) {
    passed_scene scene;
    const bool others = i / STRATEGIES; /* the point is another stream's */
    scene_open(&scene, passed_strategies[i % STRATEGIES]);
    const gm_block block = take(&scene, scene.a, BYTES, GM_ACQUIRE_FRESH);
    gm_point point = work(&scene, others ? scene.b : scene.a);
    give(&scene, &block, scene.a);
    pool_bench_ok(gm_stream_passed(scene.a, &point, err));
    pool_bench_ok(gm_stream_passed(scene.a, &point, err));
    gm_point_release(scene.base.device, &point); /* gm has a copy */
    assert_true(is_kept(&scene));
    assert_int_equal(gm_pool_trim(scene.base.pool, 0), 0);
    pass_time(&scene);
    assert_true(gm_pool_trim(scene.base.pool, 0) >= BYTES);
    scene_close(&scene);
  }
}

/* With a point for each frame, of which some are always under way, memory comes back; and the last word counts. */
static void test_points_of_frames_make_progress(void **state) {
  (void)state;
  enum { FRAMES = 40 };
  for (int i = 0; i < STRATEGIES; i++) {
    passed_scene scene;
    scene_open(&scene, passed_strategies[i]);
    for (int frame = 0; frame < FRAMES; frame++) {
      const gm_block block = take_any(&scene, scene.a, BYTES);
      gm_point point = work(&scene, scene.a);
      give(&scene, &block, scene.a);
      pool_bench_ok(gm_stream_passed(scene.a, &point, err));
      gm_point_release(scene.base.device, &point);
      gm__null_advance(scene.base.device->handle, frame < 3 ? 0 : SECOND); /* three frames behind */
      const gm_block other = take_any(&scene, scene.b, BYTES);             /* which asks */
      give(&scene, &other, NULL);
    }
    assert_true(pool_bench_stats(&scene.base).reserved_bytes <= 7 * (uint64_t)BYTES);
    pass_time(&scene);
    gm_pool_trim(scene.base.pool, 0);
    assert_int_equal(pool_bench_stats(&scene.base).reserved_bytes, 0);
    scene_close(&scene);
  }
}

/* A point whose stream closes has passed. */
static void test_a_closing_stream_takes_its_points_along(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    passed_scene scene;
    scene_open(&scene, passed_strategies[i]);
    const gm_block block = take(&scene, scene.a, BYTES, GM_ACQUIRE_FRESH);
    give(&scene, &block, scene.a);
    gm_point point = work(&scene, scene.b);
    pool_bench_ok(gm_stream_passed(scene.a, &point, err));
    pool_bench_ok(gm_stream_close(scene.b, err));
    assert_true(gm_pool_trim(scene.base.pool, 0) >= BYTES);
    pool_bench_ok(gm_stream_passed(scene.a, &point, err)); /* of a closed stream */
    gm_point_release(scene.base.device, &point);
    pool_bench_ok(gm_stream_create(scene.base.device, &scene.b, err));
    scene_close(&scene);
  }
}

static void test_a_free_at_a_point(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    passed_scene scene;
    scene_open(&scene, passed_strategies[i]);
    const gm_block block = take(&scene, scene.a, BYTES, GM_ACQUIRE_FRESH);
    gm_point point = work(&scene, scene.a), later = work(&scene, scene.a);
    pool_bench_ok(gm_free_at(scene.base.pool, &block, &point, err));
    assert_int_equal(gm_free_at(scene.base.pool, &block, &point, NULL), GM_ERR_INVALID_ARGUMENT); /* twice */
    assert_true(is_kept(&scene));
    assert_int_equal(gm_pool_trim(scene.base.pool, 0), 0);
    gm_point_release(scene.base.device, &point);
    gm__null_advance(scene.base.device->handle, SECOND + SECOND / 2); /* of two seconds of work */
    assert_false(is_kept(&scene));
    assert_true(gm_pool_trim(scene.base.pool, 0) >= BYTES);
    gm_point_release(scene.base.device, &later);
    scene_close(&scene);
  }
}

/* How an engine that frees only by points ends. */
typedef enum last_step { DESTROY_FIRST, CLOSE_FIRST, TRIM_FIRST, LAST_STEPS } last_step;

static void end_by_points(gm_strategy strategy, bool on_stream, last_step step) {
  passed_scene scene;
  gm_error why = {.status = GM_OK};
  scene_open(&scene, strategy);
  const gm_block block = take(&scene, on_stream ? scene.a : NULL, BYTES, GM_ACQUIRE_FRESH);
  const gm_block small = take_any(&scene, on_stream ? scene.a : NULL, 5000);
  gm_point early = work(&scene, scene.a), late = work(&scene, scene.a);
  pool_bench_ok(gm_free_at(scene.base.pool, &block, &early, err));
  pool_bench_ok(gm_free_at(scene.base.pool, &small, &late, err));
  gm_point_release(scene.base.device, &early);
  gm_point_release(scene.base.device, &late);
  gm__null_advance(scene.base.device->handle, SECOND + SECOND / 2); /* one of two */
  assert_int_equal(gm_pool_destroy(scene.base.pool, &why), GM_ERR_BUSY);
  assert_non_null(strstr(why.message, "gm_stream_passed"));
  assert_int_equal(gm_stream_close(scene.a, &why), GM_ERR_BUSY);
  pass_time(&scene);
  if (step == TRIM_FIRST) gm_pool_trim(scene.base.pool, 0);
  if (step == CLOSE_FIRST) pool_bench_ok(gm_stream_close(scene.a, err));
  pool_bench_ok(gm_pool_destroy(scene.base.pool, err));
  if (step != CLOSE_FIRST) pool_bench_ok(gm_stream_close(scene.a, err));
  scene.base.pool = NULL;
  pool_bench_ok(gm_stream_close(scene.b, err));
  mute_close(&scene.base);
}

static void test_an_engine_that_frees_only_by_points_ends(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES * LAST_STEPS * 2; i++) {
    end_by_points(passed_strategies[i % STRATEGIES], i / STRATEGIES % 2, (last_step)(i / STRATEGIES / 2));
  }
}

/* The stream takes its block again before the first point has passed, and frees it at the second. */
static void test_the_end_after_a_reuse(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    passed_scene scene;
    scene_open(&scene, passed_strategies[i]);
    gm_block block = take(&scene, scene.a, BYTES, GM_ACQUIRE_FRESH);
    for (int turn = 0; turn < 3; turn++) {
      gm_point point = work(&scene, scene.a);
      pool_bench_ok(gm_free_at(scene.base.pool, &block, &point, err));
      gm_point_release(scene.base.device, &point);
      if (turn < 2) block = take(&scene, scene.a, BYTES, GM_ACQUIRE_OK);
      pass_time(&scene);
    }
    pool_bench_ok(gm_pool_destroy(scene.base.pool, err));
    pool_bench_ok(gm_stream_close(scene.a, err));
    scene.base.pool = NULL;
    pool_bench_ok(gm_stream_close(scene.b, err));
    mute_close(&scene.base);
  }
}

/* A part of what was freed at a point is out again, and the point tells of it, too. */
static void test_the_end_after_a_part_is_reused(void **state) {
  (void)state;
  passed_scene scene;
  scene_open(&scene, GM_STRATEGY_BEST_FIT);
  const gm_block block = take(&scene, scene.a, BYTES, GM_ACQUIRE_FRESH);
  gm_point point = work(&scene, scene.a);
  pool_bench_ok(gm_free_at(scene.base.pool, &block, &point, err));
  gm_point_release(scene.base.device, &point);
  const gm_block part = take(&scene, scene.a, BYTES / 2, GM_ACQUIRE_OK);
  assert_int_equal(part.address, block.address);
  assert_int_equal(gm_stream_close(scene.a, NULL), GM_ERR_BUSY);
  pass_time(&scene);
  pool_bench_ok(gm_stream_close(scene.a, err));
  give(&scene, &part, NULL);
  assert_false(is_kept(&scene));
  pool_bench_ok(gm_stream_close(scene.b, err));
  mute_close(&scene.base);
}

/* A point tells of its block. A block that was freed in the stream's order, or is in use there, is not done by
 * that. */
static void test_the_end_waits_for_what_no_point_tells(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    passed_scene scene;
    scene_open(&scene, passed_strategies[i]);
    const gm_block first = take(&scene, scene.a, BYTES, GM_ACQUIRE_FRESH);
    const gm_block second = take_any(&scene, scene.a, BYTES), used = take_any(&scene, scene.b, BYTES);
    gm_point point = work(&scene, scene.a);
    pool_bench_ok(gm_free_at(scene.base.pool, &first, &point, err));
    give(&scene, &second, scene.a);
    gm_point_release(scene.base.device, &point);
    pass_time(&scene);
    assert_int_equal(gm_stream_close(scene.a, NULL), GM_ERR_BUSY);
    assert_int_equal(gm_stream_close(scene.a, NULL), GM_ERR_BUSY); /* asking changes nothing */
    pool_bench_ok(gm_stream_passed(scene.a, NULL, err));
    assert_int_equal(gm_use_on(scene.base.pool, &used, scene.a), GM_OK);
    assert_int_equal(gm_stream_close(scene.a, NULL), GM_ERR_BUSY);
    give(&scene, &used, scene.b);
    assert_int_equal(gm_stream_close(scene.a, NULL), GM_ERR_BUSY);
    scene_close(&scene);
  }
}

/* The point is of one free: a reuse in the stream's order, and what is freed beside it, wait for more. */
static void test_a_points_free_says_nothing_of_others(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    passed_scene scene;
    scene_open(&scene, passed_strategies[i]);
    gm_block first = take(&scene, scene.a, BYTES, GM_ACQUIRE_FRESH);
    const gm_block second = take_any(&scene, scene.a, BYTES);
    gm_point early = work(&scene, scene.a), late = work(&scene, scene.a);
    give(&scene, &second, scene.a); /* used by the later work */
    pool_bench_ok(gm_free_at(scene.base.pool, &first, &early, err));
    gm__null_advance(scene.base.device->handle, SECOND + SECOND / 2);
    assert_true(gm_pool_trim(scene.base.pool, 0) <= BYTES + BYTES / 2);
    first = take_any(&scene, scene.a, BYTES); /* perhaps the same memory, with newer work */
    gm_point newest = work(&scene, scene.a);
    give(&scene, &first, scene.a);
    gm__null_advance(scene.base.device->handle, SECOND);
    assert_true(is_kept(&scene));
    gm_point_release(scene.base.device, &early);
    gm_point_release(scene.base.device, &late);
    gm_point_release(scene.base.device, &newest);
    scene_close(&scene);
  }
}

/* A point that passes while the block is freed says nothing of work from before the block's last free. */
static void test_a_point_does_not_settle_older_work(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    passed_scene scene;
    scene_open(&scene, passed_strategies[i]);
    gm_block block = take(&scene, scene.a, BYTES, GM_ACQUIRE_FRESH);
    gm_point early = work(&scene, scene.a), late = work(&scene, scene.a);
    give(&scene, &block, scene.a);
    block = take(&scene, scene.a, BYTES, GM_ACQUIRE_OK); /* the later work may still use it */
    mute_shape.copy_ns = SECOND + SECOND / 2;            /* of two seconds of work */
    pool_bench_ok(gm_free_at(scene.base.pool, &block, &early, err));
    mute_shape.copy_ns = 0;
    assert_true(is_kept(&scene));
    assert_int_equal(gm_pool_trim(scene.base.pool, 0), 0);
    gm_point_release(scene.base.device, &early);
    gm_point_release(scene.base.device, &late);
    scene_close(&scene);
  }
}

static void test_points_that_have_passed(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    passed_scene scene;
    gm_point zero = {0}, gone;
    scene_open(&scene, passed_strategies[i]);
    gm_block block = take(&scene, scene.a, BYTES, GM_ACQUIRE_FRESH);
    pool_bench_ok(gm_free_at(scene.base.pool, &block, &zero, err));
    assert_false(is_kept(&scene));
    block = take(&scene, scene.a, BYTES, GM_ACQUIRE_OK);
    gone = work(&scene, scene.b);
    pool_bench_ok(gm_stream_close(scene.b, err));
    pool_bench_ok(gm_stream_create(scene.base.device, &scene.b, err));
    pool_bench_ok(gm_free_at(scene.base.pool, &block, &gone, err));
    assert_false(is_kept(&scene));
    gm_point_release(scene.base.device, &gone);
    scene_close(&scene);
  }
}

static void test_bad_input(void **state) {
  (void)state;
  passed_scene scene;
  gm_device *other = NULL;
  gm_stream *theirs = NULL, *closed = NULL;
  gm_point point = {0};
  gm_error why = {.status = GM_OK};
  scene_open(&scene, GM_STRATEGY_BEST_FIT);
  pool_bench_ok(gm_device_open_index(scene.base.ctx, "mute", 0, &other, err));
  pool_bench_ok(gm_stream_create(other, &theirs, err));
  pool_bench_ok(gm_stream_record(theirs, &point, err));
  point.stream = gm_stream_id(theirs);
  const gm_block block = take(&scene, scene.b, BYTES, GM_ACQUIRE_FRESH);
  assert_int_equal(gm_stream_passed(scene.a, &point, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_passed(NULL, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free_at(scene.base.pool, &block, &point, &why), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(why.message, "another device"));
  assert_int_equal(gm_free_at(scene.base.pool, &block, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free_at(scene.base.pool, NULL, &point, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free_at(NULL, &block, &point, &why), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_stream_create(scene.base.device, &closed, err));
  pool_bench_ok(gm_stream_close(closed, err));
  assert_int_equal(gm_stream_passed(closed, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  gm_point_release(other, &point);
  pool_bench_ok(gm_stream_close(theirs, err));
  pool_bench_ok(gm_device_close(other, err));
  give(&scene, &block, NULL);
  scene_close(&scene);
}

static void test_a_forked_child(void **state) {
  (void)state;
  passed_scene scene;
  int how = 0;
  scene_open(&scene, GM_STRATEGY_BEST_FIT);
  const gm_block block = take(&scene, scene.a, BYTES, GM_ACQUIRE_FRESH);
  gm_point point = work(&scene, scene.a);
  const pid_t child = fork();
  if (child == 0) {
    bool right = gm_stream_passed(scene.a, &point, NULL) == GM_ERR_FORKED &&
                 gm_stream_passed(scene.a, NULL, NULL) == GM_ERR_FORKED &&
                 gm_free_at(scene.base.pool, &block, &point, NULL) == GM_ERR_FORKED;
    gm_point_release(scene.base.device, &point);
    right = right && !gm_pool_destroy(scene.base.pool, NULL) && !gm_stream_close(scene.a, NULL) &&
            !gm_stream_close(scene.b, NULL) && !gm_device_close(scene.base.device, NULL) &&
            !gm_context_destroy(scene.base.ctx, NULL);
    _exit(right ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_int_equal(how, 0);
  give(&scene, &block, scene.a);
  gm_point_release(scene.base.device, &point);
  scene_close(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_word_of_the_engine_gives_memory_back),
                                     cmocka_unit_test(test_a_point_gives_memory_back_when_it_has_passed),
                                     cmocka_unit_test(test_points_of_frames_make_progress),
                                     cmocka_unit_test(test_a_closing_stream_takes_its_points_along),
                                     cmocka_unit_test(test_a_free_at_a_point),
                                     cmocka_unit_test(test_an_engine_that_frees_only_by_points_ends),
                                     cmocka_unit_test(test_the_end_after_a_reuse),
                                     cmocka_unit_test(test_the_end_after_a_part_is_reused),
                                     cmocka_unit_test(test_the_end_waits_for_what_no_point_tells),
                                     cmocka_unit_test(test_a_points_free_says_nothing_of_others),
                                     cmocka_unit_test(test_a_point_does_not_settle_older_work),
                                     cmocka_unit_test(test_points_that_have_passed),
                                     cmocka_unit_test(test_bad_input),
                                     cmocka_unit_test(test_a_forked_child)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
