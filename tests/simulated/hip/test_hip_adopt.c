/* Which adoptions of HIP streams name the same one: gm on the simulated runtimes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "support/adopt_scene.h"
#include "tests/simulated/hip/hip_world.h"

static gm_hip_stream native_of(uintptr_t handle) {
  return (gm_hip_stream){.head = {sizeof(gm_hip_stream), GM_API_HIP}, .stream = handle};
}

static uintptr_t create(void) {
  hipStream_t stream = NULL;
  assert_int_equal(engine.hipStreamCreateWithFlags(&stream, 0), hipSuccess);
  return (uintptr_t)stream;
}

static void play(const char *library) {
  gm_device *device = NULL;
  gm_error err;
  world_load(library);
  assert_int_equal(engine.hipSetDevice(0), hipSuccess);
  gm_context *ctx = adopt_scene_context("hip", library);
  adopt_scene_ok(gm_device_open_index(ctx, "hip", 0, &device, &err), &err);
  const gm_hip_stream native = native_of(create()), other = native_of(create());
  const gm_hip_stream null_stream = native_of(0), legacy = native_of(1);
  adopt_scene_counts(device, &native.head, &other.head);
  adopt_scene_counts(device, &null_stream.head, &native.head);
  adopt_scene_threads(device, &native.head);
  gm_stream *first = adopt_scene_adopt(device, &null_stream.head);
  assert_ptr_equal(adopt_scene_adopt(device, &legacy.head), first);
  adopt_scene_close(first);
  adopt_scene_close(first);
  adopt_scene_end(ctx, device);
  assert_int_equal(engine.hipStreamDestroy((hipStream_t)native.stream), hipSuccess);
  assert_int_equal(engine.hipStreamDestroy((hipStream_t)other.stream), hipSuccess);
  world_end(NULL);
}

static void test_a_stream_adopted_twice_is_one(void **state) {
  (void)state;
  play(SIM_HIP6_LIBRARY);
  play(SIM_HIP5_LIBRARY);
}

/* hipStreamPerThread is none of them, however many there are. */
static void test_the_per_thread_stream_is_refused_beside_others(void **state) {
  gm_device *device = NULL;
  gm_stream *out = NULL;
  gm_error err;
  (void)state;
  world_load(SIM_HIP6_LIBRARY);
  gm_context *ctx = adopt_scene_context("hip", SIM_HIP6_LIBRARY);
  adopt_scene_ok(gm_device_open_index(ctx, "hip", 0, &device, &err), &err);
  const gm_hip_stream null_stream = native_of(0), mine = native_of(2);
  gm_stream *stream = adopt_scene_adopt(device, &null_stream.head);
  assert_int_equal(gm_stream_adopt(device, &mine.head, &out, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "hipStreamPerThread"));
  adopt_scene_close(stream);
  adopt_scene_end(ctx, device);
  world_end(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_stream_adopted_twice_is_one),
      cmocka_unit_test(test_the_per_thread_stream_is_refused_beside_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
