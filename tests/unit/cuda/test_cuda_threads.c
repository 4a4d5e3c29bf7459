/* gm's pools beside CU_STREAM_PER_THREAD of another thread, on the simulated CUDA driver. Its work can be neither asked
 * for nor waited for elsewhere, so nothing that it may use is given up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include <pthread.h>

#include "gm/copy.h"
#include "gm/share.h"
#include "support/cuda_fixture.h"
#include "support/pool_bench.h"

enum { PER_THREAD = 2, BYTES = 8 << 20, FILLS = 4 };

typedef enum thread_turn { TURN_WORKER, TURN_MAIN } thread_turn;

typedef struct thread_scene {
  pool_bench bench;
  gm_pool *pool;
  gm_block block;
  gm_stream *stream;
  bool used_only;   /* the worker uses the block, and main frees it */
  bool leaves_open; /* the worker ends without closing its stream */
  gm_status last;   /* of the worker's wait for its work */
  pthread_t worker;
  pthread_mutex_t lock;
  pthread_cond_t turned;
  thread_turn turn;
} thread_scene;

static void turn_give(thread_scene *scene, thread_turn to) {
  pthread_mutex_lock(&scene->lock);
  scene->turn = to;
  pthread_cond_broadcast(&scene->turned);
  pthread_mutex_unlock(&scene->lock);
}

static void turn_await(thread_scene *scene, thread_turn mine) {
  pthread_mutex_lock(&scene->lock);
  while (scene->turn != mine) pthread_cond_wait(&scene->turned, &scene->lock);
  pthread_mutex_unlock(&scene->lock);
}

static void worker_work(thread_scene *scene) {
  const unsigned char pattern = 7;
  for (int i = 0; i < FILLS; i++) {
    gm_point point;
    pool_bench_ok(
        gm_block_fill(scene->pool, &scene->block, 0, scene->block.bytes, &pattern, 1, scene->stream, &point, err));
    gm_point_release(scene->bench.device, &point);
  }
}

static void *worker_run(void *user) {
  thread_scene *scene = user;
  const gm_cuda_stream lent = {.head = {sizeof lent, GM_API_CUDA}, .stream = PER_THREAD};
  pool_bench_ok(gm_stream_adopt(scene->bench.device, &lent.head, &scene->stream, err));
  const gm_request request = {.bytes = BYTES, .stream = scene->stream};
  if (!scene->used_only) assert_true(gm_alloc(scene->pool, &request, &scene->block) <= GM_ACQUIRE_FRESH);
  worker_work(scene);
  if (scene->used_only) {
    assert_int_equal(gm_use_on(scene->pool, &scene->block, scene->stream), GM_OK);
  } else {
    assert_int_equal(gm_free(scene->pool, &scene->block, scene->stream), GM_OK);
  }
  turn_give(scene, TURN_MAIN);
  turn_await(scene, TURN_WORKER);
  scene->last = gm_stream_sync(scene->stream, NULL);
  if (!scene->leaves_open) pool_bench_ok(gm_stream_close(scene->stream, err));
  return NULL;
}

/* The worker has submitted its work, which takes a while, and waits. */
static void scene_begin(thread_scene *scene) {
  cuda_say("set LATENCY_US 20000");
  pthread_mutex_init(&scene->lock, NULL);
  pthread_cond_init(&scene->turned, NULL);
  assert_int_equal(pthread_create(&scene->worker, NULL, worker_run, scene), 0);
  turn_await(scene, TURN_MAIN);
}

static void scene_end_worker(thread_scene *scene) {
  turn_give(scene, TURN_WORKER);
  pthread_join(scene->worker, NULL);
  assert_int_equal(scene->last, GM_OK);
  assert_int_equal(gm_device_state(scene->bench.device, NULL), GM_OK);
  cuda_say("set LATENCY_US 0");
}

static void scene_open(thread_scene *scene, gm_strategy strategy) {
  char libraries[512];
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy};
  *scene = (thread_scene){.turn = TURN_WORKER};
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  snprintf(libraries, sizeof libraries, "cuda=%s", getenv("GM_CUDA_LIBRARY"));
  counted_services_init(&scene->bench.host);
  const gm_context_params context = {.struct_size = sizeof context,
                                     .services = &scene->bench.host.services,
                                     .libraries = libraries,
                                     .ignore_environment = true};
  pool_bench_ok(gm_context_create(&context, &scene->bench.ctx, err));
  pool_bench_ok(gm_device_open_index(scene->bench.ctx, "cuda", 0, &scene->bench.device, err));
  pool_bench_ok(gm_pool_create(scene->bench.device, &params, &scene->bench.pool, err));
  scene->pool = scene->bench.pool;
}

static void scene_close(thread_scene *scene) {
  char left[1024];
  pool_bench_close(&scene->bench);
  if (cuda_script("leaks", left, sizeof left)) fail_msg("left at the driver:\n%s", left);
}

static void test_a_pool_does_not_end_under_another_threads_stream(void **state) {
  (void)state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};
  for (int i = 0; i < 2; i++) {
    thread_scene scene;
    scene_open(&scene, strategies[i]);
    scene_begin(&scene);
    gm_error err = {.status = GM_OK};
    assert_int_equal(gm_pool_destroy(scene.pool, &err), GM_ERR_BUSY);
    assert_non_null(strstr(err.message, "per-thread default stream of another thread"));
    assert_int_equal(gm_stream_close(scene.stream, &err), GM_ERR_BUSY);
    scene_end_worker(&scene);
    scene_close(&scene);
  }
}

static void test_an_imported_block_stays_under_another_threads_stream(void **state) {
  (void)state;
  thread_scene scene;
  gm_pool *other = NULL;
  gm_block made;
  gm_shared shared = {.struct_size = sizeof shared};
  const gm_pool_params params = {.struct_size = sizeof params, .share = GM_SHARE_FD};
  const gm_request request = {.bytes = BYTES, .flags = GM_SHAREABLE};
  scene_open(&scene, GM_STRATEGY_AUTO);
  pool_bench_ok(gm_pool_create(scene.bench.device, &params, &other, err));
  assert_true(gm_alloc(other, &request, &made) <= GM_ACQUIRE_FRESH);
  pool_bench_ok(gm_block_export(other, &made, &shared, err));
  pool_bench_ok(gm_block_import(scene.pool, &shared, &scene.block, err));
  gm_shared_close(&shared);
  scene.used_only = true;
  scene_begin(&scene);
  assert_int_equal(gm_free(scene.pool, &scene.block, NULL), GM_ERR_BUSY);
  assert_int_equal(gm_free(scene.pool, &scene.block, NULL), GM_ERR_BUSY); /* nothing has changed */
  scene_end_worker(&scene);
  assert_int_equal(gm_free(scene.pool, &scene.block, NULL), GM_OK);
  assert_int_equal(gm_free(other, &made, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(other, err));
  scene_close(&scene);
}

/* A thread may end and leave its stream open: a word of the engine lets any thread close it. */
static void test_the_stream_of_a_thread_that_has_ended_closes(void **state) {
  (void)state;
  thread_scene scene;
  scene_open(&scene, GM_STRATEGY_BEST_FIT);
  scene.leaves_open = true;
  scene_begin(&scene);
  const gm_request request = {.bytes = BYTES};
  gm_block late;
  assert_true(gm_alloc(scene.pool, &request, &late) <= GM_ACQUIRE_FRESH);
  turn_give(&scene, TURN_WORKER);
  pthread_join(scene.worker, NULL);
  assert_int_equal(gm_use_on(scene.pool, &late, scene.stream), GM_OK); /* after the thread's own wait */
  assert_int_equal(gm_stream_close(scene.stream, NULL), GM_ERR_BUSY);
  assert_int_equal(gm_device_close(scene.bench.device, NULL), GM_ERR_BUSY);
  pool_bench_ok(gm_stream_passed(scene.stream, NULL, err));
  pool_bench_ok(gm_stream_close(scene.stream, err));
  assert_int_equal(gm_free(scene.pool, &late, scene.stream), GM_OK);
  cuda_say("set LATENCY_US 0");
  scene_close(&scene);
}

static int scene_find(void **state) {
  (void)state;
  cuda_entry("simCudaControl", &cuda_script);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_pool_does_not_end_under_another_threads_stream),
                                     cmocka_unit_test(test_an_imported_block_stays_under_another_threads_stream),
                                     cmocka_unit_test(test_the_stream_of_a_thread_that_has_ended_closes)};
  return cmocka_run_group_tests(tests, scene_find, NULL);
}
