/* An engine that captures one of its streams while gm's pools are used. It shows what must hold on every API that can
 * capture, on a simulated driver. Needs cmocka.h included before.
 *
 * The scene is played for each mode of capture; `captured` is the engine's stream, `own` gm's. */
#ifndef GM_TESTS_SUPPORT_CAPTURE_SCENE_H
#define GM_TESTS_SUPPORT_CAPTURE_SCENE_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/copy.h"
#include "gm/device.h"
#include "gm/memory_info.h"
#include "support/pool_bench.h"

/* The engine's side, past gm. Each fails the test where its call fails. */
typedef struct capture_engine {
  const char *backend, *library;
  void (*enter)(void); /* in every thread that calls the others */
  uintptr_t (*stream_create)(void);
  void (*stream_destroy)(uintptr_t stream);
  gm_status (*lend)(gm_device *device, uintptr_t stream, gm_stream **out);
  void (*begin)(uintptr_t stream, int mode);
  bool (*is_active)(uintptr_t stream);
  void (*end)(uintptr_t stream); /* gives a graph, which is destroyed */
  int (*control)(const char *command, char *reply, size_t capacity);
} capture_engine;

typedef struct capture_scene {
  pool_bench bench;
  const capture_engine *engine;
  uintptr_t native;
  gm_stream *captured, *own;
} capture_scene;

enum { CAPTURE_SMALL = 1 << 16, CAPTURE_LARGE = 1 << 20, CAPTURE_OTHER = 1 << 22 };

static inline void capture_say(const capture_scene *scene, const char *command) {
  assert_int_equal(scene->engine->control(command, NULL, 0), 0);
}

static inline long capture_calls(const capture_scene *scene, const char *symbol) {
  char command[96], reply[64] = "";
  snprintf(command, sizeof command, "calls %s", symbol);
  assert_int_equal(scene->engine->control(command, reply, sizeof reply), 0);
  return strtol(reply, NULL, 10);
}

static inline gm_block capture_alloc(const capture_scene *scene, gm_stream *stream, uint64_t bytes) {
  const gm_request request = {.bytes = bytes, .stream = stream};
  gm_block block = {0};
  const gm_acquire answer = gm_alloc(scene->bench.pool, &request, &block);
  if (answer != GM_ACQUIRE_OK && answer != GM_ACQUIRE_FRESH) fail_msg("gm_alloc answered %d", (int)answer);
  return block;
}

static inline void capture_free(const capture_scene *scene, const gm_block *block, gm_stream *stream) {
  assert_int_equal(gm_free(scene->bench.pool, block, stream), GM_OK);
}

static inline void capture_open(capture_scene *scene, const capture_engine *engine, gm_strategy strategy) {
  char libraries[512];
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy};
  *scene = (capture_scene){.engine = engine};
  capture_say(scene, "reload");
  capture_say(scene, "set LATENCY_US 0");
  snprintf(libraries, sizeof libraries, "%s=%s", engine->backend, engine->library);
  counted_services_init(&scene->bench.host);
  const gm_context_params context = {.struct_size = sizeof context,
                                     .services = &scene->bench.host.services,
                                     .libraries = libraries,
                                     .ignore_environment = true};
  pool_bench_ok(gm_context_create(&context, &scene->bench.ctx, err));
  pool_bench_ok(gm_device_open_index(scene->bench.ctx, engine->backend, 0, &scene->bench.device, err));
  pool_bench_ok(gm_pool_create(scene->bench.device, &params, &scene->bench.pool, err));
  engine->enter();
  scene->native = engine->stream_create();
  assert_int_equal(engine->lend(scene->bench.device, scene->native, &scene->captured), GM_OK);
  pool_bench_ok(gm_stream_create(scene->bench.device, &scene->own, err));
}

static inline void capture_close(capture_scene *scene) {
  pool_bench_ok(gm_stream_close(scene->captured, err));
  pool_bench_ok(gm_stream_close(scene->own, err));
  scene->engine->stream_destroy(scene->native);
  pool_bench_close(&scene->bench);
}

/* Refused by gm, with the reason; the driver was asked for nothing but whether the stream is captured. */
static inline void capture_refused(const capture_scene *scene, uint64_t bytes, uint32_t flags) {
  const gm_request request = {.bytes = bytes, .flags = flags, .stream = scene->captured};
  gm_explanation why = {.struct_size = sizeof why};
  gm_block block;
  capture_say(scene, "zero");
  assert_int_equal(gm_alloc(scene->bench.pool, &request, &block), GM_ACQUIRE_EXHAUSTED);
  assert_true(capture_calls(scene, "cuStreamIsCapturing") > 0);
  assert_int_equal(capture_calls(scene, "cuMemAlloc_v2"), 0);
  assert_int_equal(capture_calls(scene, "cuEventRecord"), 0);
  assert_int_equal(capture_calls(scene, "cuEventQuery"), 0);
  pool_bench_ok(gm_explain(scene->bench.pool, &request, &why, err));
  assert_int_equal(why.status, GM_OK);
  assert_int_equal(why.last_failure.status, GM_ERR_BUSY);
  assert_true(why.last_failure_bytes == bytes);
  assert_non_null(strstr(why.text, "the stream is being captured: until that ends only pooled memory serves"));
  assert_non_null(strstr(why.text, "none is zeroed"));
}

/* A block of a kind of memory that plain requests do not get, taken and freed on the captured stream. */
static inline void capture_take_rare(const capture_scene *scene, gm_acquire most) {
  const gm_request request = {.bytes = CAPTURE_SMALL, .usage = GM_USAGE_UNIFORM, .stream = scene->captured};
  gm_block block = {0};
  assert_true(gm_alloc(scene->bench.pool, &request, &block) <= most);
  capture_free(scene, &block, scene->captured);
}

/* Memory that serves without a driver's call serves inside a capture too, and asks for nothing. */
static inline void capture_serves_its_own(const capture_scene *scene, gm_strategy strategy) {
  capture_say(scene, "zero");
  const gm_block block = capture_alloc(scene, scene->captured, CAPTURE_SMALL);
  capture_free(scene, &block, scene->captured);
  capture_take_rare(scene, GM_ACQUIRE_OK);
  assert_int_equal(capture_calls(scene, "cuMemAlloc_v2"), 0);
  assert_int_equal(capture_calls(scene, "cuEventRecord"), 0);
  assert_int_equal(capture_calls(scene, "cuEventQuery"), 0);
  if (strategy == GM_STRATEGY_BUCKET) assert_int_equal(capture_calls(scene, "cuStreamIsCapturing"), 0);
}

/* Another thread, which may do all that an engine's does, meanwhile. */
static inline void *capture_meanwhile(void *user) {
  const capture_scene *scene = user;
  const gm_request fresh = {.bytes = CAPTURE_OTHER, .stream = scene->own};
  gm_memory_info info = {.struct_size = sizeof info};
  gm_block more;
  scene->engine->enter();
  const gm_block block = capture_alloc(scene, scene->own, CAPTURE_LARGE);
  capture_free(scene, &block, scene->own);
  const gm_acquire answer = gm_alloc(scene->bench.pool, &fresh, &more);
  if (answer == GM_ACQUIRE_OK || answer == GM_ACQUIRE_FRESH) capture_free(scene, &more, NULL);
  pool_bench_ok(gm_device_memory_info(scene->bench.device, &info, err));
  gm_pool_trim(scene->bench.pool, 0);
  assert_int_equal(gm_stream_sync(scene->own, NULL), GM_OK);
  return NULL;
}

static inline void capture_play(const capture_engine *engine, gm_strategy strategy, int mode) {
  capture_scene scene;
  pthread_t thread;
  gm_error why;
  capture_open(&scene, engine, strategy);
  const gm_block first = capture_alloc(&scene, scene.captured, CAPTURE_SMALL);
  const gm_block other = capture_alloc(&scene, scene.own, CAPTURE_LARGE);
  const uint32_t word = 7;
  pool_bench_ok(gm_block_fill(scene.bench.pool, &other, 0, CAPTURE_LARGE, &word, 4, scene.own, NULL, err));
  capture_free(&scene, &first, scene.captured);
  capture_free(&scene, &other, scene.own);
  capture_take_rare(&scene, GM_ACQUIRE_FRESH);
  engine->begin(scene.native, mode);
  capture_serves_its_own(&scene, strategy);
  capture_refused(&scene, CAPTURE_OTHER << 3, 0);
  capture_refused(&scene, CAPTURE_SMALL, GM_ZERO);
  if (strategy == GM_STRATEGY_BUCKET) capture_refused(&scene, CAPTURE_LARGE, 0); /* pooled, but of another stream */
  assert_true(engine->is_active(scene.native));
  assert_int_equal(pthread_create(&thread, NULL, capture_meanwhile, &scene), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_true(engine->is_active(scene.native));
  assert_int_equal(gm_stream_close(scene.captured, &why), GM_ERR_BUSY);
  assert_int_equal(gm_pool_destroy(scene.bench.pool, &why), GM_ERR_BUSY);
  assert_non_null(strstr(why.message, "captured"));
  assert_true(engine->is_active(scene.native));
  engine->end(scene.native);
  const gm_block after = capture_alloc(&scene, scene.captured, CAPTURE_OTHER << 3);
  capture_free(&scene, &after, scene.captured);
  capture_close(&scene);
}

/* A pool follows 63 streams one by one. A free on one more waits for nothing, as a captured one must have it. */
enum { CAPTURE_CROWD = 64 };

static inline void capture_crowd_open(const capture_scene *scene, gm_stream **crowd) {
  for (int i = 0; i < CAPTURE_CROWD; i++) {
    pool_bench_ok(gm_stream_create(scene->bench.device, &crowd[i], err));
    const gm_block block = capture_alloc(scene, crowd[i], CAPTURE_SMALL);
    capture_free(scene, &block, crowd[i]);
  }
}

static inline void capture_crowd_close(gm_stream **crowd) {
  for (int i = 0; i < CAPTURE_CROWD; i++) pool_bench_ok(gm_stream_close(crowd[i], err));
}

static inline void capture_play_crowd(const capture_engine *engine, gm_strategy strategy) {
  capture_scene scene;
  gm_stream *crowd[CAPTURE_CROWD];
  capture_open(&scene, engine, strategy);
  capture_crowd_open(&scene, crowd);
  const gm_block last = capture_alloc(&scene, NULL, CAPTURE_LARGE);
  engine->begin(scene.native, 0);
  capture_free(&scene, &last, scene.captured);
  assert_true(engine->is_active(scene.native));
  engine->end(scene.native);
  capture_crowd_close(crowd);
  capture_close(&scene);
}

static inline void capture_host_memory(capture_scene *scene, bool there) { scene->bench.host.fail_at = there ? 0 : 1; }

/* The pool's kept memory serves `stream` with something else than the block, or not at all. */
static inline void capture_is_kept_from(const capture_scene *scene, const gm_block *block, gm_stream *stream) {
  const gm_request request = {.bytes = block->bytes, .flags = GM_POOLED_ONLY, .stream = stream};
  gm_block other;
  const gm_acquire answer = gm_alloc(scene->bench.pool, &request, &other);
  if (answer == GM_ACQUIRE_EXHAUSTED) return;
  assert_int_equal(answer, GM_ACQUIRE_OK);
  assert_true(other.address + other.bytes <= block->address || block->address + block->bytes <= other.address);
  capture_free(scene, &other, stream);
}

/* A free in the order of a captured stream that there is no host memory to note. */
static inline void capture_refuses_what_it_cannot_note(capture_scene *scene, const gm_block *block) {
  capture_host_memory(scene, false);
  assert_int_equal(gm_free(scene->bench.pool, block, scene->captured), GM_ERR_OUT_OF_HOST_MEMORY);
  capture_host_memory(scene, true);
  assert_true(scene->engine->is_active(scene->native));
  capture_is_kept_from(scene, block, NULL);
  capture_free(scene, block, scene->captured);
}

/* A free in the order of a stream that is known takes no host memory, and none of the streams is forgotten. */
static inline void capture_notes_without_memory(capture_scene *scene, const gm_block *block, gm_stream *stream) {
  capture_host_memory(scene, false);
  capture_free(scene, block, stream);
  capture_host_memory(scene, true);
  assert_true(scene->engine->is_active(scene->native));
  capture_is_kept_from(scene, block, NULL);
  capture_is_kept_from(scene, block, scene->own);
}

static inline void capture_play_without_memory(const capture_engine *engine) {
  capture_scene scene;
  gm_stream *other;
  capture_open(&scene, engine, GM_STRATEGY_BEST_FIT);
  const uintptr_t native = engine->stream_create();
  assert_int_equal(engine->lend(scene.bench.device, native, &other), GM_OK);
  const gm_block unknown = capture_alloc(&scene, NULL, CAPTURE_LARGE);
  const gm_block own = capture_alloc(&scene, scene.own, CAPTURE_SMALL);
  capture_free(&scene, &own, scene.own);
  const gm_block shared = capture_alloc(&scene, other, CAPTURE_SMALL);
  capture_free(&scene, &shared, other);
  engine->begin(scene.native, 0);
  engine->begin(native, 0);
  capture_refuses_what_it_cannot_note(&scene, &unknown); /* the stream has no lane */
  const gm_block again = capture_alloc(&scene, other, CAPTURE_SMALL);
  capture_notes_without_memory(&scene, &again, scene.captured); /* it is of two streams then */
  const gm_block last = capture_alloc(&scene, scene.captured, CAPTURE_LARGE);
  capture_notes_without_memory(&scene, &last, scene.own);
  engine->end(native);
  engine->end(scene.native);
  assert_int_equal(pool_bench_stats(&scene.bench).active, 0);
  pool_bench_ok(gm_stream_close(other, err));
  engine->stream_destroy(native);
  engine->enter();
  capture_close(&scene);
}

static inline void capture_play_all(const capture_engine *engine, gm_strategy strategy) {
  for (int mode = 0; mode < 3; mode++) capture_play(engine, strategy, mode);
  capture_play_crowd(engine, strategy);
  if (strategy == GM_STRATEGY_BEST_FIT) capture_play_without_memory(engine); /* buckets note it in the block */
}

#endif
