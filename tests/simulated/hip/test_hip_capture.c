/* gm's pools beside an engine that captures, on the simulated HIP runtimes; and what the seam says of a capture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "support/capture_owners.h"
#include "tests/simulated/hip/hip_world.h"

static void engine_enter(void) { assert_int_equal(engine.hipSetDevice(0), hipSuccess); }

static uintptr_t engine_stream_create(void) {
  hipStream_t stream = NULL;
  assert_int_equal(engine.hipStreamCreateWithFlags(&stream, 0), hipSuccess);
  return (uintptr_t)stream;
}

static void engine_stream_destroy(uintptr_t stream) {
  assert_int_equal(engine.hipStreamDestroy((hipStream_t)stream), hipSuccess);
}

static gm_status engine_lend(gm_device *device, uintptr_t stream, gm_stream **out) {
  const gm_hip_stream lent = {.head = {sizeof lent, GM_API_HIP}, .stream = stream};
  return gm_stream_adopt(device, &lent.head, out, NULL);
}

static void engine_begin(uintptr_t stream, int mode) {
  assert_int_equal(engine.hipStreamBeginCapture((hipStream_t)stream, (hipStreamCaptureMode)mode), hipSuccess);
}

static bool engine_is_active(uintptr_t stream) {
  hipStreamCaptureStatus state = hipStreamCaptureStatusNone;
  return engine.hipStreamIsCapturing((hipStream_t)stream, &state) == hipSuccess &&
         state == hipStreamCaptureStatusActive;
}

static void engine_end(uintptr_t stream) {
  hipGraph_t graph = NULL;
  assert_int_equal(engine.hipStreamEndCapture((hipStream_t)stream, &graph), hipSuccess);
  assert_int_equal(engine.hipGraphDestroy(graph), hipSuccess);
}

typedef void capture_play_fn(const capture_engine *engine, gm_strategy strategy);

static void scene_play(capture_play_fn *play, const char *library, gm_strategy strategy) {
  world_load(library);
  const capture_engine hip_engine = {.backend = "hip",
                                     .library = library,
                                     .enter = engine_enter,
                                     .stream_create = engine_stream_create,
                                     .stream_destroy = engine_stream_destroy,
                                     .lend = engine_lend,
                                     .begin = engine_begin,
                                     .is_active = engine_is_active,
                                     .end = engine_end,
                                     .control = engine.simHipControl};
  play(&hip_engine, strategy);
  world_end(NULL);
}

static void test_pools_beside_a_capture(void **state) {
  (void)state;
  scene_play(capture_play_all, SIM_HIP6_LIBRARY, GM_STRATEGY_BUCKET);
  scene_play(capture_play_all, SIM_HIP5_LIBRARY, GM_STRATEGY_BUCKET);
}

static void test_segments_beside_a_capture(void **state) {
  (void)state;
  scene_play(capture_play_all, SIM_HIP6_LIBRARY, GM_STRATEGY_BEST_FIT);
}

static void test_owners_of_blocks_beside_a_capture(void **state) {
  (void)state;
  scene_play(capture_play_owners, SIM_HIP6_LIBRARY, GM_STRATEGY_BUCKET);
  scene_play(capture_play_owners, SIM_HIP6_LIBRARY, GM_STRATEGY_BEST_FIT);
}

static void *adopt(uintptr_t stream) {
  const gm_hip_stream lent = {.head = {sizeof lent, GM_API_HIP}, .stream = stream};
  gm_stream_kind kind;
  void *out = NULL;
  assert_int_equal(world.ops->stream_adopt(world.device, &lent.head, &out, &kind, NULL), GM_OK);
  return out;
}

static bool asked(void *stream) {
  bool capturing = false;
  assert_int_equal(world.ops->stream_capturing(world.device, stream, &capturing, NULL), GM_OK);
  return capturing;
}

/* The null stream waits for blocking ones, so it cannot be used either; asking breaks nothing. */
static void test_which_streams_are_captured(void **state) {
  (void)state;
  world_open(SIM_HIP6_LIBRARY, 0);
  engine_enter();
  const uintptr_t native = engine_stream_create();
  void *lent = adopt(native), *null_stream = adopt(0);
  assert_false(asked(lent));
  engine_begin(native, hipStreamCaptureModeGlobal);
  control("zero");
  assert_false(asked(NULL));
  assert_int_equal(number("calls cuStreamIsCapturing"), 0);
  assert_true(asked(lent));
  assert_true(asked(null_stream));
  assert_true(engine_is_active(native));
  engine_end(native);
  assert_false(asked(lent));
  assert_false(asked(null_stream));
  world.ops->stream_close(world.device, lent, GM_CLOSE_NORMAL);
  world.ops->stream_close(world.device, null_stream, GM_CLOSE_NORMAL);
  engine_stream_destroy(native);
  world_end(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_which_streams_are_captured),
      cmocka_unit_test(test_pools_beside_a_capture),
      cmocka_unit_test(test_segments_beside_a_capture),
      cmocka_unit_test(test_owners_of_blocks_beside_a_capture),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
