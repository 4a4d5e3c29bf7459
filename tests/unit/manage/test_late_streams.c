/* gm_explain where streams keep freed memory from a request: it names the stream, and what helps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "support/causes.h"
#include "support/mute_backend.h"

#define SECOND UINT64_C(1000000000)

enum { STRATEGIES = 2 };

static const gm_strategy strategies[STRATEGIES] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

typedef struct late_scene {
  pool_bench base;
  gm_stream *a, *b;
} late_scene;

static void scene_open(late_scene *scene, gm_strategy strategy) {
  mute_open(&scene->base, GM_STREAM_FIFO, strategy);
  pool_bench_ok(gm_pool_set_max_bytes(scene->base.pool, 4 * MIB, err));
  pool_bench_ok(gm_stream_create(scene->base.device, &scene->a, err));
  pool_bench_ok(gm_stream_create(scene->base.device, &scene->b, err));
}

static void scene_close(late_scene *scene) {
  pool_bench_ok(gm_stream_passed(scene->a, NULL, err));
  pool_bench_ok(gm_stream_passed(scene->b, NULL, err));
  pool_bench_ok(gm_stream_close(scene->a, err));
  pool_bench_ok(gm_stream_close(scene->b, err));
  mute_close(&scene->base);
}

/* A second of virtual work. */
static void work(const late_scene *scene, const gm_stream *stream) {
  gm_memory nowhere = {.handle = 1, .bytes = 64};
  gm_backend_point point;
  void *device = scene->base.device->handle;
  assert_int_equal(gm__null_backend.fill(device, stream->handle, &nowhere, 0, 64, "", 1, &point, NULL), GM_OK);
  gm__null_backend.point_release(device, &point, GM_CLOSE_NORMAL);
}

/* Memory that was used and freed on the stream. */
static void leave(const late_scene *scene, gm_stream *stream, uint64_t bytes) {
  const gm_request request = {.bytes = bytes, .stream = stream};
  const gm_block block = served(scene->base.pool, &request);
  work(scene, stream);
  assert_int_equal(gm_free(scene->base.pool, &block, stream), GM_OK);
}

static void give_back(const late_scene *scene, const gm_block *block) {
  assert_int_equal(gm_free(scene->base.pool, block, NULL), GM_OK);
}

static const gm_request three = {.bytes = 3 * MIB};

static void test_a_stream_that_gm_cannot_ask(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    late_scene scene;
    scene_open(&scene, strategies[i]);
    leave(&scene, scene.a, 3 * MIB);
    mute(scene.a, true);
    const gm_explanation why = refused_as(scene.base.pool, &three, GM_CAUSE_UNSETTLED, GM_CHANGE_SETTLE);
    assert_true(why.change_stream == gm_stream_id(scene.a) && !why.change_at_least && !why.change_bytes);
    assert_non_null(strstr(why.text, "gm_stream_passed"));
    gm__null_advance(scene.base.device->handle, 2 * SECOND); /* the work is done, and nobody says so */
    refused_as(scene.base.pool, &three, GM_CAUSE_UNSETTLED, GM_CHANGE_SETTLE);
    pool_bench_ok(gm_stream_passed(scene.a, NULL, err));
    const gm_block block = served(scene.base.pool, &three);
    give_back(&scene, &block);
    scene_close(&scene);
  }
}

/* One is named after the other. */
static void test_two_streams_that_gm_cannot_ask(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    late_scene scene;
    gm_explanation why;
    scene_open(&scene, strategies[i]);
    gm_stream *streams[2] = {scene.a, scene.b};
    for (int k = 0; k < 2; k++) mute(streams[k], true);
    for (int k = 0; k < 2; k++) leave(&scene, streams[k], 2 * MIB);
    for (int k = 0; k < 2; k++) {
      why = refused_as(scene.base.pool, &three, GM_CAUSE_UNSETTLED, GM_CHANGE_SETTLE);
      gm_stream *named = why.change_stream == gm_stream_id(scene.a) ? scene.a : scene.b;
      assert_true(why.change_stream == gm_stream_id(named) && why.change_at_least == (k == 0));
      pool_bench_ok(gm_stream_passed(named, NULL, err));
    }
    const gm_block block = served(scene.base.pool, &three);
    give_back(&scene, &block);
    scene_close(&scene);
  }
}

/* Nothing is out, and nothing is to be freed or split: a deadline would do. */
static void test_a_stream_that_works(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    late_scene scene;
    scene_open(&scene, strategies[i]);
    leave(&scene, scene.a, 3 * MIB);
    gm_explanation why = refused_as(scene.base.pool, &three, GM_CAUSE_BUSY_STREAMS, GM_CHANGE_WAIT);
    assert_true(why.change_stream == gm_stream_id(scene.a) && !why.change_at_least);
    assert_non_null(strstr(why.text, "deadline"));
    gm__null_advance(scene.base.device->handle, 2 * SECOND);
    gm_request patient = three;
    patient.deadline_ns = 10 * SECOND;
    const gm_block block = served(scene.base.pool, &patient);
    give_back(&scene, &block);
    scene_close(&scene);
  }
}

/* The deadline passed, and it waited for a stream. */
static void test_a_deadline_that_passes(void **state) {
  (void)state;
  late_scene scene;
  gm_request patient = three;
  patient.deadline_ns = 1000;
  scene_open(&scene, GM_STRATEGY_BEST_FIT);
  leave(&scene, scene.a, 3 * MIB);
  const gm_explanation why = refused_as(scene.base.pool, &patient, GM_CAUSE_DEADLINE, GM_CHANGE_WAIT);
  assert_int_equal(why.waited_for, GM_CAUSE_BUSY_STREAMS);
  scene_close(&scene);
}

/* A point of the engine is under way on a stream that gm can ask nothing else. */
static void test_a_point_of_the_engine(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    late_scene scene;
    gm_point point;
    scene_open(&scene, strategies[i]);
    const gm_request request = {.bytes = 3 * MIB, .stream = scene.a};
    gm_block block = served(scene.base.pool, &request);
    work(&scene, scene.a);
    pool_bench_ok(gm_stream_record(scene.a, &point, err));
    mute(scene.a, true);
    pool_bench_ok(gm_free_at(scene.base.pool, &block, &point, err));
    gm_point_release(scene.base.device, &point);
    const gm_explanation why = refused_as(scene.base.pool, &three, GM_CAUSE_BUSY_STREAMS, GM_CHANGE_WAIT);
    assert_true(why.change_stream == gm_stream_id(scene.a));
    gm__null_advance(scene.base.device->handle, 2 * SECOND);
    block = served(scene.base.pool, &three);
    give_back(&scene, &block);
    scene_close(&scene);
  }
}

/* Blocks that are out are the reason, whatever streams do. */
static void test_streams_are_not_blamed_for_blocks(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    late_scene scene;
    scene_open(&scene, strategies[i]);
    const gm_request two = {.bytes = 2 * MIB};
    const gm_block block = served(scene.base.pool, &two);
    leave(&scene, scene.a, 2 * MIB);
    mute(scene.a, true);
    const gm_explanation why = refused_as(scene.base.pool, &three, GM_CAUSE_POOL_CAP, GM_CHANGE_RAISE_CAP);
    assert_true(!why.change_stream && why.change_bytes >= MIB);
    give_back(&scene, &block);
    scene_close(&scene);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_stream_that_gm_cannot_ask), cmocka_unit_test(test_two_streams_that_gm_cannot_ask),
      cmocka_unit_test(test_a_stream_that_works),         cmocka_unit_test(test_a_deadline_that_passes),
      cmocka_unit_test(test_a_point_of_the_engine),       cmocka_unit_test(test_streams_are_not_blamed_for_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
