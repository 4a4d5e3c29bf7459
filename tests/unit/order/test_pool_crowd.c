/* More streams than a pool has slots for: no free waits, and nothing is given up before the work of all is done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "core/pool/pool.h"
#include "gm/cleanup.h"
#include "support/causes.h"
#include "support/mute_backend.h"

#define SECOND UINT64_C(1000000000)

enum { STRATEGIES = 2, SLOTS = 63, STREAMS = 120, MANY = 3000, BYTES = 8 << 20, SMALL = 4096 };

/* gm's own allocator takes from here what it does not ask of the host program. */
static int stray_calls;
int __real_posix_memalign(void **out, size_t align, size_t bytes);
int __wrap_posix_memalign(void **out, size_t align, size_t bytes);

int __wrap_posix_memalign(void **out, size_t align, size_t bytes) {
  stray_calls++;
  return __real_posix_memalign(out, align, bytes);
}

typedef struct crowd_scene {
  pool_bench base;
  gm_stream *streams[STREAMS];
} crowd_scene;

static const gm_strategy crowd_strategies[STRATEGIES] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

static gm_block take(const crowd_scene *scene, gm_stream *stream, uint64_t bytes) {
  const gm_request request = {.bytes = bytes, .stream = stream};
  gm_block block = {0};
  assert_true(gm_alloc(scene->base.pool, &request, &block) <= GM_ACQUIRE_FRESH);
  return block;
}

static void give(const crowd_scene *scene, const gm_block *block, gm_stream *stream) {
  assert_int_equal(gm_free(scene->base.pool, block, stream), GM_OK);
}

/* All slots are taken: each of the first streams has freed something and done its work. */
static void scene_open(crowd_scene *scene, gm_strategy strategy) {
  mute_open(&scene->base, GM_STREAM_FIFO, strategy);
  for (int i = 0; i < STREAMS; i++) pool_bench_ok(gm_stream_create(scene->base.device, &scene->streams[i], err));
  for (int i = 0; i < SLOTS; i++) {
    const gm_block block = take(scene, scene->streams[i], SMALL);
    give(scene, &block, scene->streams[i]);
    pool_bench_ok(gm_stream_sync(scene->streams[i], err));
  }
  gm_pool_trim(scene->base.pool, 0);
  assert_int_equal(pool_bench_stats(&scene->base).reserved_bytes, 0);
  mute_shape.waits = 0;
}

static void scene_close(crowd_scene *scene) {
  for (int i = 0; i < STREAMS; i++) pool_bench_ok(gm_stream_close(scene->streams[i], err));
  mute_close(&scene->base);
}

static void work(const crowd_scene *scene, const gm_stream *stream) {
  gm_memory nowhere = {.handle = 1, .bytes = 64};
  gm_backend_point point;
  assert_int_equal(
      gm__null_backend.fill(scene->base.device->handle, stream->handle, &nowhere, 0, 64, "", 1, &point, NULL), GM_OK);
}

/* Does work still use what the pool has? */
static bool is_kept(const crowd_scene *scene) {
  const gm_request request = {.bytes = BYTES, .flags = GM_POOLED_ONLY};
  gm_block block;
  const gm_acquire answer = gm_alloc(scene->base.pool, &request, &block);
  if (answer == GM_ACQUIRE_OK) give(scene, &block, NULL);
  return answer != GM_ACQUIRE_OK;
}

static void test_no_free_waits(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    crowd_scene scene;
    scene_open(&scene, crowd_strategies[i]);
    for (int at = SLOTS; at < STREAMS; at++) mute(scene.streams[at], true);
    for (int at = SLOTS; at < STREAMS; at++) {
      const gm_block block = take(&scene, scene.streams[at], SMALL);
      give(&scene, &block, scene.streams[at]);
    }
    assert_int_equal(mute_shape.waits, 0);
    assert_int_equal(gm_pool_trim(scene.base.pool, 0), 0);
    assert_int_equal(gm_pool_destroy(scene.base.pool, NULL), GM_ERR_BUSY);
    assert_int_equal(gm_stream_close(scene.streams[SLOTS], NULL), GM_ERR_BUSY);
    for (int at = SLOTS; at < STREAMS; at++) {
      gm_pool_trim(scene.base.pool, 0);
      assert_true(pool_bench_stats(&scene.base).reserved_bytes > 0); /* until the last one is done */
      pool_bench_ok(gm_stream_passed(scene.streams[at], NULL, err));
    }
    gm_pool_trim(scene.base.pool, 0);
    assert_int_equal(pool_bench_stats(&scene.base).reserved_bytes, 0);
    scene_close(&scene);
  }
}

static void test_work_of_a_late_stream_is_respected(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    crowd_scene scene;
    scene_open(&scene, crowd_strategies[i]);
    gm_stream *late = scene.streams[SLOTS + 7], *other = scene.streams[SLOTS + 8];
    gm_block block = take(&scene, late, BYTES);
    work(&scene, late);
    give(&scene, &block, late);
    const gm_block small = take(&scene, other, SMALL); /* whose work is done */
    give(&scene, &small, other);
    assert_true(is_kept(&scene));
    gm__null_advance(scene.base.device->handle, 2 * SECOND);
    assert_false(is_kept(&scene));
    gm_pool_trim(scene.base.pool, 0);
    block = take(&scene, late, BYTES); /* once more, after all had passed */
    work(&scene, late);
    give(&scene, &block, late);
    assert_true(is_kept(&scene));
    gm__null_advance(scene.base.device->handle, 2 * SECOND);
    assert_false(is_kept(&scene));
    assert_int_equal(mute_shape.waits, 0);
    scene_close(&scene);
  }
}

/* The crowd's place has no stream, and neither has the request. */
static void test_a_refusal_beside_a_crowd_is_explained(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    crowd_scene scene;
    const gm_request request = {.bytes = BYTES};
    scene_open(&scene, crowd_strategies[i]);
    const gm_block block = take(&scene, scene.streams[0], BYTES), small = take(&scene, scene.streams[SLOTS], SMALL);
    work(&scene, scene.streams[0]);
    give(&scene, &block, scene.streams[0]);
    give(&scene, &small, scene.streams[SLOTS]);
    pool_bench_ok(gm_pool_set_max_bytes(scene.base.pool, pool_bench_stats(&scene.base).reserved_bytes, err));
    refused_as(scene.base.pool, &request, GM_CAUSE_BUSY_STREAMS, GM_CHANGE_WAIT);
    scene_close(&scene);
  }
}

static void test_a_block_used_on_a_late_stream(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    crowd_scene scene;
    scene_open(&scene, crowd_strategies[i]);
    gm_stream *late = scene.streams[SLOTS + 3];
    const gm_block block = take(&scene, scene.streams[0], BYTES);
    assert_int_equal(gm_use_on(scene.base.pool, &block, late), GM_OK);
    assert_true(is_kept(&scene)); /* asks the late one, too, which has done nothing yet */
    work(&scene, late);
    give(&scene, &block, NULL);
    assert_true(is_kept(&scene));
    gm__null_advance(scene.base.device->handle, 2 * SECOND);
    assert_false(is_kept(&scene));
    scene_close(&scene);
  }
}

static crowd_scene *waiting_scene;

/* While the second of the crowd is waited for, the first one closes, and the last takes its place. */
static void close_the_first(void) {
  if (mute_shape.waits != 2) return;
  mute_shape.waiting = NULL;
  pool_bench_ok(gm_stream_close(waiting_scene->streams[SLOTS], err));
  waiting_scene->streams[SLOTS] = NULL;
}

static void test_a_drain_meets_all_while_others_close(void **state) {
  (void)state;
  crowd_scene scene;
  scene_open(&scene, GM_STRATEGY_BUCKET);
  gm_stream *last = scene.streams[SLOTS + 2];
  for (int at = SLOTS; at <= SLOTS + 2; at++) {
    const gm_block block = take(&scene, scene.streams[at], SMALL);
    work(&scene, scene.streams[at]);
    give(&scene, &block, scene.streams[at]);
  }
  mute(last, true);
  waiting_scene = &scene;
  mute_shape.waits = 0;
  mute_shape.waiting = close_the_first;
  gm_pool *pool = scene.base.pool;
  gm__mutex_lock(&pool->heap.provider.lock);
  const gm_status status = gm__order_drain_all(&pool->heap.dedicated.order, "test", NULL);
  gm__mutex_unlock(&pool->heap.provider.lock);
  assert_null(scene.streams[SLOTS]);
  assert_int_equal(status, GM_ERR_BUSY); /* the last one may still run */
  pool_bench_ok(gm_stream_passed(last, NULL, err));
  scene_close(&scene);
}

/* Streams of the crowd come and go, and slots that become free in between take none of its members. */
static void test_the_crowd_comes_and_goes(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    crowd_scene scene;
    scene_open(&scene, crowd_strategies[i]);
    for (int turn = 0; turn < MANY; turn++) {
      gm_stream **at = &scene.streams[turn * 7 % STREAMS];
      const gm_block block = take(&scene, *at, SMALL);
      if (turn % 3 == 0) work(&scene, *at);
      give(&scene, &block, *at);
      if (turn % 2 == 0) continue;
      pool_bench_ok(gm_stream_close(*at, err));
      pool_bench_ok(gm_stream_create(scene.base.device, at, err));
    }
    gm__null_advance(scene.base.device->handle, (uint64_t)MANY * SECOND);
    gm_pool_trim(scene.base.pool, 0);
    assert_int_equal(pool_bench_stats(&scene.base).reserved_bytes, 0);
    scene_close(&scene);
  }
}

/* A slot becomes free: who is in the crowd stays there, and can still free, and use. */
static void test_a_member_outlasts_a_slot(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    crowd_scene scene;
    scene_open(&scene, crowd_strategies[i]);
    gm_stream *late = scene.streams[SLOTS];
    const gm_block first = take(&scene, late, BYTES), second = take(&scene, late, BYTES);
    give(&scene, &first, late);
    pool_bench_ok(gm_stream_close(scene.streams[0], err));
    assert_int_equal(gm_use_on(scene.base.pool, &second, late), GM_OK);
    work(&scene, late);
    give(&scene, &second, late);
    assert_true(is_kept(&scene));
    gm__null_advance(scene.base.device->handle, 2 * SECOND);
    assert_false(is_kept(&scene));
    scene.streams[0] = NULL;
    scene_close(&scene);
  }
}

static void test_without_host_memory_nothing_changes(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    crowd_scene scene;
    scene_open(&scene, crowd_strategies[i]);
    gm_stream *late = scene.streams[SLOTS];
    const gm_block block = take(&scene, late, BYTES);
    scene.base.host.fail_at = scene.base.host.calls + 1;
    assert_int_equal(gm_free(scene.base.pool, &block, late), GM_ERR_OUT_OF_HOST_MEMORY);
    assert_int_equal(gm_use_on(scene.base.pool, &block, late), GM_ERR_OUT_OF_HOST_MEMORY);
    scene.base.host.fail_at = 0;
    assert_int_equal(mute_shape.waits, 0);
    give(&scene, &block, late);
    scene_close(&scene);
  }
}

/* The host program accounts for each byte of the crowd. */
static void test_all_memory_is_of_the_host_program(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    crowd_scene scene;
    stray_calls = 0;
    scene_open(&scene, crowd_strategies[i]);
    for (int at = SLOTS; at < STREAMS; at++) {
      const gm_block block = take(&scene, scene.streams[at], SMALL);
      give(&scene, &block, scene.streams[at]);
    }
    scene_close(&scene);
    assert_int_equal(stray_calls, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_free_waits),
                                     cmocka_unit_test(test_all_memory_is_of_the_host_program),
                                     cmocka_unit_test(test_work_of_a_late_stream_is_respected),
                                     cmocka_unit_test(test_a_refusal_beside_a_crowd_is_explained),
                                     cmocka_unit_test(test_a_block_used_on_a_late_stream),
                                     cmocka_unit_test(test_a_drain_meets_all_while_others_close),
                                     cmocka_unit_test(test_the_crowd_comes_and_goes),
                                     cmocka_unit_test(test_a_member_outlasts_a_slot),
                                     cmocka_unit_test(test_without_host_memory_nothing_changes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
