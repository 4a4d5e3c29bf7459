/* Pools on streams that gm can neither ask nor wait for: nothing counts as done there until somebody says so. Each test
 * runs for both strategies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "gm/cleanup.h"
#include "support/mute_backend.h"

typedef struct mute_scene {
  pool_bench base;
  gm_stream *a, *b;
} mute_scene;

static const gm_strategy mute_strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

enum { STRATEGIES = 2 };

static void scene_open(mute_scene *scene, gm_stream_kind kind, gm_strategy strategy) {
  mute_open(&scene->base, kind, strategy);
  pool_bench_ok(gm_stream_create(scene->base.device, &scene->a, err));
  pool_bench_ok(gm_stream_create(scene->base.device, &scene->b, err));
}

static void scene_close(mute_scene *scene) {
  pool_bench_ok(gm_stream_close(scene->a, err));
  pool_bench_ok(gm_stream_close(scene->b, err));
  mute_close(&scene->base);
}

static gm_block take(const mute_scene *scene, gm_stream *stream) {
  const gm_request request = {.bytes = 1 << 20, .stream = stream};
  gm_block block = {0};
  assert_true(gm_alloc(scene->base.pool, &request, &block) <= GM_ACQUIRE_FRESH);
  return block;
}

/* The state of a block that the stream used and freed, and that work may still use. */
static uint64_t leave_behind(const mute_scene *scene, gm_stream *stream) {
  const gm_block block = take(scene, stream);
  assert_int_equal(gm_free(scene->base.pool, &block, stream), GM_OK);
  return block.address;
}

static void assert_names(const gm_error *err, const gm_stream *stream) {
  char name[40];
  snprintf(name, sizeof name, "stream %llu", (unsigned long long)gm_stream_id(stream));
  if (!strstr(err->message, name)) fail_msg("\"%s\" does not name %s", err->message, name);
}

static void test_a_pool_does_not_end_under_work(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    mute_scene scene;
    gm_error err = {.status = GM_OK};
    scene_open(&scene, GM_STREAM_FIFO, mute_strategies[i]);
    leave_behind(&scene, scene.a);
    mute(scene.a, true);
    assert_int_equal(gm_pool_destroy(scene.base.pool, &err), GM_ERR_BUSY);
    assert_names(&err, scene.a);
    assert_int_equal(gm_pool_trim(scene.base.pool, 0), 0);
    const gm_block again = take(&scene, scene.a); /* the pool lives */
    assert_int_equal(gm_free(scene.base.pool, &again, scene.a), GM_OK);
    mute(scene.a, false);
    scene_close(&scene);
  }
}

static void test_a_stream_does_not_close_under_work(void **state) {
  (void)state;
  static const gm_status answers[] = {GM_ERR_NOT_SUPPORTED, GM_ERR_INVALID_ARGUMENT};
  for (int i = 0; i < STRATEGIES * 2; i++) {
    mute_scene scene;
    gm_error err = {.status = GM_OK};
    scene_open(&scene, GM_STREAM_FIFO, mute_strategies[i % STRATEGIES]);
    mute_shape.answer = answers[i / STRATEGIES];
    const uint64_t address = leave_behind(&scene, scene.a);
    mute(scene.a, true);
    assert_int_equal(gm_stream_close(scene.a, &err), GM_ERR_BUSY);
    assert_names(&err, scene.a);
    const gm_block own = take(&scene, scene.a);
    assert_int_equal(own.address, address); /* nothing has changed: it is the stream's still */
    assert_int_equal(gm_free(scene.base.pool, &own, scene.a), GM_OK);
    mute(scene.a, false);
    scene_close(&scene);
  }
}

/* Neither of two pools forgets the stream when one of them cannot. */
static void test_a_stream_closes_in_all_pools_or_in_none(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    mute_scene scene;
    gm_pool *first = NULL, *second = NULL;
    gm_block block;
    const gm_pool_params params = {.struct_size = sizeof params, .strategy = mute_strategies[i]};
    scene_open(&scene, GM_STREAM_FIFO, mute_strategies[i]);
    first = scene.base.pool;
    pool_bench_ok(gm_pool_create(scene.base.device, &params, &second, err));
    const gm_request request = {.bytes = 1 << 20, .stream = scene.a};
    assert_int_equal(gm_alloc(second, &request, &block), GM_ACQUIRE_FRESH);
    assert_int_equal(gm_free(second, &block, scene.a), GM_OK);
    mute(scene.a, true);
    assert_int_equal(gm_stream_close(scene.a, NULL), GM_ERR_BUSY);
    scene.base.pool = first;
    assert_int_equal(gm_pool_destroy(second, NULL), GM_ERR_BUSY);
    mute(scene.a, false);
    pool_bench_ok(gm_pool_destroy(second, err));
    scene_close(&scene);
  }
}

/* Work that gm_use_on told of counts, too. */
static void test_a_used_block_keeps_its_stream_open(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    mute_scene scene;
    scene_open(&scene, GM_STREAM_FIFO, mute_strategies[i]);
    const gm_block block = take(&scene, NULL);
    mute(scene.a, true);
    assert_int_equal(gm_use_on(scene.base.pool, &block, scene.a), GM_OK);
    assert_int_equal(gm_stream_close(scene.a, NULL), GM_ERR_BUSY);
    assert_int_equal(gm_free(scene.base.pool, &block, NULL), GM_OK);
    assert_int_equal(gm_pool_destroy(scene.base.pool, NULL), GM_ERR_BUSY);
    mute(scene.a, false);
    scene_close(&scene);
  }
}

/* A stream that no pool has anything of, and one that was waited for before, can be closed all the same. */
static void test_a_stream_without_work_closes(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    mute_scene scene;
    scene_open(&scene, GM_STREAM_FIFO, mute_strategies[i]);
    leave_behind(&scene, scene.a);
    pool_bench_ok(gm_stream_sync(scene.a, err));
    mute(scene.a, true);
    mute(scene.b, true);
    pool_bench_ok(gm_stream_close(scene.a, err));
    pool_bench_ok(gm_stream_close(scene.b, err));
    mute_close(&scene.base);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_pool_does_not_end_under_work), cmocka_unit_test(test_a_stream_does_not_close_under_work),
      cmocka_unit_test(test_a_stream_closes_in_all_pools_or_in_none),
      cmocka_unit_test(test_a_used_block_keeps_its_stream_open), cmocka_unit_test(test_a_stream_without_work_closes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
