/* The change that gm_explain names works: on devices without a driver, with every bound, and with streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/change_scene.h"
#include "support/mute_backend.h"

static void test_a_device_of_its_own(void **state) {
  (void)state;
  const gm_context_params params = {
      .struct_size = sizeof params, .backend_options = "null:capacity=64M", .ignore_environment = true};
  change_scene_on("null", &params, true, 80 * MIB, 3000);
}

/* No driver allocation has more than 8 MiB. */
static void test_small_allocations(void **state) {
  (void)state;
  const gm_context_params params = {
      .struct_size = sizeof params, .backend_options = "null:capacity=64M,max_alloc=8M", .ignore_environment = true};
  change_scene_on("null", &params, true, 80 * MIB, 1000);
}

static void test_the_hosts_memory(void **state) {
  (void)state;
  const gm_context_params params = {.struct_size = sizeof params, .ignore_environment = true};
  change_scene_on("cpu", &params, false, 64 * MIB, 2000);
}

/* ---- with streams: the first is the host, the second tells gm all, the third tells nothing ---- */

static void submit_work(change_scene *scene, gm_pool *pool, const gm_block *block, gm_stream *stream) {
  gm_memory nowhere = {.handle = 1, .bytes = 64};
  gm_backend_point point;
  const bool was_mute = mute_place(stream->handle) != NULL;
  (void)pool;
  (void)block;
  mute(stream, false);
  assert_int_equal(gm__null_backend.fill(scene->device->handle, stream->handle, &nowhere, 0, 64, "", 1, &point, NULL),
                   GM_OK);
  gm__null_backend.point_release(scene->device->handle, &point, GM_CLOSE_NORMAL);
  if (was_mute) mute(stream, true);
}

static void pass_time(change_scene *scene) { gm__null_advance(scene->device->handle, UINT64_C(3600000000000)); }

static void test_streams(void **state) {
  (void)state;
  pool_bench bench;
  mute_open(&bench, GM_STREAM_FIFO, GM_STRATEGY_AUTO);
  change_scene scene = {.ctx = bench.ctx,
                        .device = bench.device,
                        .limits = true,
                        .most = 80 * MIB,
                        .work = submit_work,
                        .pass = pass_time};
  for (int i = 1; i < CHANGE_STREAMS; i++) pool_bench_ok(gm_stream_create(bench.device, &scene.streams[i], err));
  mute(scene.streams[2], true);
  change_scene_run_all(&scene, "streams", 2000);
  mute(scene.streams[2], false);
  for (int i = 1; i < CHANGE_STREAMS; i++) pool_bench_ok(gm_stream_close(scene.streams[i], err));
  mute_close(&bench);
  change_scene_check(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_device_of_its_own),
      cmocka_unit_test(test_small_allocations),
      cmocka_unit_test(test_the_hosts_memory),
      cmocka_unit_test(test_streams),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
