/* The owners of blocks of a pool beside an engine that captures: batches, buffers, warm-ups, loads. gm_free takes a
 * block back in the order of a captured stream only where the pool can note it. Where it cannot, nothing may be lost.
 * Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_CAPTURE_OWNERS_H
#define GM_TESTS_SUPPORT_CAPTURE_OWNERS_H

#include "gm/batch.h"
#include "gm/buffer.h"
#include "gm/load.h"
#include "gm/spans.h"
#include "gm/warm_up.h"
#include "support/capture_scene.h"
#include "support/safetensors_bytes.h"
#include "support/temp_folder.h"

/* The pool is as it was, and so is the capture. */
static inline void capture_owner_gave_back(capture_scene *scene, const gm_stats *before) {
  const gm_stats after = pool_bench_stats(&scene->bench);
  assert_int_equal(after.active, before->active);
  assert_int_equal(after.requested_bytes, before->requested_bytes);
  assert_int_equal(after.in_use_bytes, before->in_use_bytes);
  assert_int_equal(after.pooled_bytes, before->pooled_bytes);
  assert_true(scene->engine->is_active(scene->native));
}

/* A block that serves a captured stream, which the pool cannot note. */
static inline void capture_owner_open(capture_scene *scene, gm_stream **crowd, const capture_engine *engine,
                                      gm_strategy strategy) {
  capture_open(scene, engine, strategy);
  capture_crowd_open(scene, crowd);
  const gm_block pooled = capture_alloc(scene, NULL, CAPTURE_LARGE);
  capture_free(scene, &pooled, NULL);
}

static inline void capture_owner_close(capture_scene *scene, gm_stream **crowd) {
  assert_int_equal(pool_bench_stats(&scene->bench).active, 0);
  capture_crowd_close(crowd);
  capture_close(scene);
}

static inline void capture_batch_refused(capture_scene *scene, const gm_batch_params *params, gm_status status,
                                         size_t failed) {
  gm_part parts[2];
  gm_error why = {.status = GM_OK};
  size_t at = 77;
  const gm_stats before = pool_bench_stats(&scene->bench);
  assert_int_equal(gm_alloc_batch(scene->bench.pool, params, parts, &at, &why), status);
  assert_int_equal(why.status, status);
  assert_int_equal(at, failed);
  capture_owner_gave_back(scene, &before);
}

/* The blocks that a batch was served and does not keep. */
static inline void capture_play_batch(const capture_engine *engine, gm_strategy strategy) {
  const char word[4] = "abc";
  const void *const contents[1] = {word};
  capture_scene scene;
  gm_stream *crowd[CAPTURE_CROWD];
  capture_owner_open(&scene, crowd, engine, strategy);
  const gm_request requests[2] = {{.bytes = CAPTURE_LARGE, .stream = scene.captured},
                                  {.bytes = CAPTURE_OTHER << 3, .stream = scene.captured}};
  const gm_batch_params too_large = {.struct_size = sizeof too_large, .requests = requests, .count = 2};
  gm_batch_params written = {.struct_size = sizeof written, .requests = requests, .count = 1, .contents = contents};
  engine->begin(scene.native, 0);
  capture_batch_refused(&scene, &too_large, GM_ERR_BUSY, 1);
  capture_batch_refused(&scene, &written, GM_ERR_NOT_SUPPORTED, 0);
  written.flags = GM_BATCH_GROUPED;
  capture_batch_refused(&scene, &written, GM_ERR_NOT_SUPPORTED, 0);
  engine->end(scene.native);
  capture_owner_close(&scene, crowd);
}

/* The place that a buffer could have gone to. */
static inline void capture_play_promotion(const capture_engine *engine, gm_strategy strategy) {
  const gm_buffer_params params = {
      .struct_size = sizeof params, .request = {.bytes = CAPTURE_LARGE}, .fallback = GM_FALLBACK_HOST};
  capture_scene scene;
  gm_stream *crowd[CAPTURE_CROWD];
  gm_buffer *buffer;
  capture_open(&scene, engine, strategy);
  pool_bench_ok(gm_pool_set_max_bytes(scene.bench.pool, 1, err));
  pool_bench_ok(gm_buffer_create(scene.bench.pool, &params, &buffer, err));
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_HOST);
  pool_bench_ok(gm_pool_set_max_bytes(scene.bench.pool, 0, err));
  capture_crowd_open(&scene, crowd);
  const gm_block pooled = capture_alloc(&scene, NULL, CAPTURE_LARGE);
  capture_free(&scene, &pooled, NULL);
  engine->begin(scene.native, 0);
  const gm_stats before = pool_bench_stats(&scene.bench);
  assert_int_equal(gm_buffer_promote(buffer, scene.captured, NULL), GM_ERR_NOT_SUPPORTED);
  capture_owner_gave_back(&scene, &before);
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_HOST);
  engine->end(scene.native);
  pool_bench_ok(gm_buffer_promote(buffer, scene.captured, err));
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_DEVICE);
  gm_buffer_release(buffer, scene.captured);
  capture_owner_close(&scene, crowd);
}

static inline void capture_play_warm_up(const capture_engine *engine, gm_strategy strategy) {
  const gm_warm_up list[2] = {{CAPTURE_LARGE, 1}, {CAPTURE_OTHER << 3, 1}};
  capture_scene scene;
  gm_stream *crowd[CAPTURE_CROWD];
  capture_owner_open(&scene, crowd, engine, strategy);
  engine->begin(scene.native, 0);
  const gm_stats before = pool_bench_stats(&scene.bench);
  assert_int_equal(gm_pool_warm_up(scene.bench.pool, list, 1, scene.captured, NULL, NULL), GM_OK);
  capture_owner_gave_back(&scene, &before);
  assert_int_equal(gm_pool_warm_up(scene.bench.pool, list, 2, scene.captured, NULL, NULL), GM_ERR_BUSY);
  capture_owner_gave_back(&scene, &before);
  engine->end(scene.native);
  capture_owner_close(&scene, crowd);
}

/* A model of one tensor, in a folder of its own. */
static inline gm_model *capture_model_open(capture_scene *scene, temp_folder *folder) {
  static const char header[] = "{\"only\":{\"dtype\":\"U8\",\"shape\":[1048576],\"data_offsets\":[0,1048576]}}";
  gm_model *model = NULL;
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), CAPTURE_LARGE, 1);
  temp_folder_make(folder);
  const char *path = temp_folder_write(folder, "m.safetensors", file.bytes, file.length);
  safetensors_bytes_free(&file);
  pool_bench_ok(gm_model_open(&scene->bench.host.services, path, &model, err));
  return model;
}

static inline void capture_model_close(gm_model *model, temp_folder *folder) {
  gm_model_close(model);
  temp_folder_remove(folder);
}

/* The memory that was taken for a tensor that cannot be written. */
static inline void capture_play_load(const capture_engine *engine, gm_strategy strategy) {
  capture_scene scene;
  gm_stream *crowd[CAPTURE_CROWD];
  temp_folder folder;
  capture_owner_open(&scene, crowd, engine, strategy);
  gm_model *model = capture_model_open(&scene, &folder);
  gm_loaded_model *loaded = NULL;
  const gm_load_params params = {.struct_size = sizeof params, .request = {.stream = scene.captured}};
  engine->begin(scene.native, 0);
  const gm_stats before = pool_bench_stats(&scene.bench);
  assert_int_equal(gm_model_load(model, scene.bench.pool, &params, &loaded, NULL, NULL), GM_ERR_NOT_SUPPORTED);
  assert_null(loaded);
  capture_owner_gave_back(&scene, &before);
  engine->end(scene.native);
  capture_model_close(model, &folder);
  capture_owner_close(&scene, crowd);
}

/* One block of several memories: either all of them can be noted, or none is freed. */
static inline void capture_play_spanned(const capture_engine *engine) {
  enum { BLOCKS = 5 };
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BEST_FIT, .no_vmm = true};
  const gm_request request = {.bytes = 2 << 20, .flags = GM_ALLOW_SPANS};
  capture_scene scene;
  gm_stream *crowd[CAPTURE_CROWD];
  gm_block blocks[BLOCKS], whole;
  uint32_t count = 0;
  capture_open(&scene, engine, GM_STRATEGY_BEST_FIT);
  pool_bench_ok(gm_pool_destroy(scene.bench.pool, err));
  pool_bench_ok(gm_config_set(scene.bench.ctx, "segment_size", "5M", err));
  pool_bench_ok(gm_pool_create(scene.bench.device, &params, &scene.bench.pool, err));
  capture_crowd_open(&scene, crowd);
  for (int i = 0; i < CAPTURE_CROWD; i++) pool_bench_ok(gm_stream_sync(crowd[i], err));
  gm_pool_trim(scene.bench.pool, 0);
  pool_bench_ok(gm_pool_set_max_bytes(scene.bench.pool, BLOCKS << 20, err));
  for (int i = 0; i < BLOCKS; i++) blocks[i] = capture_alloc(&scene, NULL, 1 << 20);
  for (int i = 1; i < BLOCKS; i += 2) capture_free(&scene, &blocks[i], NULL);
  assert_true(gm_alloc(scene.bench.pool, &request, &whole) <= GM_ACQUIRE_FRESH);
  pool_bench_ok(gm_block_spans(scene.bench.pool, &whole, 0, 0, NULL, &count, err));
  assert_int_equal(count, 2);
  engine->begin(scene.native, 0);
  const gm_stats before = pool_bench_stats(&scene.bench);
  capture_host_memory(&scene, false);
  assert_int_equal(gm_free(scene.bench.pool, &whole, scene.captured), GM_ERR_OUT_OF_HOST_MEMORY);
  capture_host_memory(&scene, true);
  capture_owner_gave_back(&scene, &before);
  pool_bench_ok(gm_block_spans(scene.bench.pool, &whole, 0, 0, NULL, &count, err));
  capture_free(&scene, &whole, scene.captured);
  engine->end(scene.native);
  for (int i = 0; i < BLOCKS; i += 2) capture_free(&scene, &blocks[i], NULL);
  capture_owner_close(&scene, crowd);
}

static inline void capture_play_owners(const capture_engine *engine, gm_strategy strategy) {
  capture_play_batch(engine, strategy);
  capture_play_promotion(engine, strategy);
  capture_play_warm_up(engine, strategy);
  capture_play_load(engine, strategy);
  if (strategy == GM_STRATEGY_BEST_FIT) capture_play_spanned(engine);
}

#endif
