/* Which adoptions of CUDA streams name the same one: gm on the simulated driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "support/adopt_scene.h"
#include "support/cuda_fixture.h"

enum { LEGACY = 1, PER_THREAD = 2 };

static struct {
  CUresult (*init)(unsigned flags);
  CUresult (*retain)(CUcontext *out, CUdevice device);
  CUresult (*release)(CUdevice device);
  CUresult (*set)(CUcontext context);
  CUresult (*stream_create)(CUstream *out, unsigned flags);
  CUresult (*stream_destroy)(CUstream stream);
} engine;

static gm_context *ctx;
static gm_device *device;

static int open_engine(void **state) {
  CUcontext context = NULL;
  (void)state;
  cuda_entry("cuInit", &engine.init);
  cuda_entry("cuDevicePrimaryCtxRetain", &engine.retain);
  cuda_entry("cuDevicePrimaryCtxRelease_v2", &engine.release);
  cuda_entry("cuCtxSetCurrent", &engine.set);
  cuda_entry("cuStreamCreate", &engine.stream_create);
  cuda_entry("cuStreamDestroy_v2", &engine.stream_destroy);
  cuda_say("reload");
  assert_int_equal(engine.init(0), CUDA_SUCCESS);
  assert_int_equal(engine.retain(&context, 0), CUDA_SUCCESS);
  assert_int_equal(engine.set(context), CUDA_SUCCESS);
  return 0;
}

static int close_engine(void **state) {
  char left[1024];
  (void)state;
  assert_int_equal(engine.set(NULL), CUDA_SUCCESS);
  assert_int_equal(engine.release(0), CUDA_SUCCESS);
  if (cuda_script("leaks", left, sizeof left)) fail_msg("left at the driver:\n%s", left);
  return 0;
}

static void open_device(void) {
  gm_error err;
  ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  adopt_scene_ok(gm_device_open_index(ctx, "cuda", 0, &device, &err), &err);
}

static gm_cuda_stream native_of(uintptr_t handle) {
  return (gm_cuda_stream){.head = {sizeof(gm_cuda_stream), GM_API_CUDA}, .stream = handle};
}

static uintptr_t create(void) {
  CUstream stream = NULL;
  assert_int_equal(engine.stream_create(&stream, 0), CUDA_SUCCESS);
  return (uintptr_t)stream;
}

static void destroy(uintptr_t stream) { assert_int_equal(engine.stream_destroy((CUstream)stream), CUDA_SUCCESS); }

static gm_stream *adopt(uintptr_t handle) {
  const gm_cuda_stream native = native_of(handle);
  return adopt_scene_adopt(device, &native.head);
}

static void play_created(void) {
  const gm_cuda_stream native = native_of(create()), other = native_of(create());
  open_device();
  adopt_scene_counts(device, &native.head, &other.head);
  adopt_scene_threads(device, &native.head);
  adopt_scene_end(ctx, device);
  destroy(native.stream);
  destroy(other.stream);
}

static void test_a_stream_adopted_twice_is_one(void **state) {
  (void)state;
  play_created();
}

static void test_without_numbers_the_handle_tells(void **state) {
  (void)state;
  cuda_say("set VERSION 11080");
  play_created();
  cuda_say("set VERSION 13000");
}

static void test_both_names_of_the_legacy_stream(void **state) {
  (void)state;
  open_device();
  const gm_cuda_stream zero = native_of(0);
  gm_stream *first = adopt(0), *second = adopt(LEGACY), *mine = adopt(PER_THREAD);
  assert_ptr_equal(first, second);
  assert_ptr_not_equal(first, mine);
  adopt_scene_close(first);
  adopt_scene_close(second);
  adopt_scene_counts(device, &zero.head, NULL);
  adopt_scene_close(mine);
  adopt_scene_end(ctx, device);
}

static void *adopt_of_thread(void *user) {
  gm_stream **out = user;
  out[0] = adopt(PER_THREAD);
  out[1] = adopt(PER_THREAD);
  adopt_scene_close(out[1]);
  adopt_scene_close(out[0]);
  return NULL;
}

static void test_each_threads_own_stream_is_one(void **state) {
  pthread_t thread;
  gm_stream *others[2];
  (void)state;
  open_device();
  gm_stream *first = adopt(PER_THREAD);
  assert_int_equal(pthread_create(&thread, NULL, adopt_of_thread, others), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_ptr_equal(others[0], others[1]);
  assert_ptr_not_equal(others[0], first);
  assert_ptr_equal(adopt(PER_THREAD), first);
  adopt_scene_close(first);
  adopt_scene_close(first);
  adopt_scene_end(ctx, device);
}

/* The engine destroyed its stream under gm, and the driver gave the handle to the next one. */
static void test_a_handle_that_came_again_is_another_stream(void **state) {
  (void)state;
  const uintptr_t handle = create();
  open_device();
  gm_stream *first = adopt(handle);
  destroy(handle);
  assert_int_equal(create(), handle);
  gm_stream *second = adopt(handle);
  assert_ptr_not_equal(first, second);
  assert_int_not_equal(gm_stream_id(first), gm_stream_id(second));
  assert_ptr_equal(adopt(handle), second);
  adopt_scene_close(second);
  adopt_scene_close(second);
  adopt_scene_close(first);
  adopt_scene_end(ctx, device);
  destroy(handle);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_stream_adopted_twice_is_one),
      cmocka_unit_test(test_without_numbers_the_handle_tells),
      cmocka_unit_test(test_both_names_of_the_legacy_stream),
      cmocka_unit_test(test_each_threads_own_stream_is_one),
      cmocka_unit_test(test_a_handle_that_came_again_is_another_stream),
  };
  return cmocka_run_group_tests(tests, open_engine, close_engine);
}
