/* Which adoptions of CUDA streams name the same one: gm on the simulated driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "gm/pool.h"
#include "support/cuda_engine.h"
#include "support/cuda_fixture.h"

enum { LEGACY = 1, PER_THREAD = 2 };

static gm_context *ctx;
static gm_device *device;

static void open_device(void) {
  gm_error err;
  ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  adopt_scene_ok(gm_device_open_index(ctx, "cuda", 0, &device, &err), &err);
}

static gm_stream *adopt(uintptr_t handle) {
  const gm_cuda_stream native = cuda_engine_native(handle);
  return adopt_scene_adopt(device, &native.head);
}

static void play_created(void) {
  const gm_cuda_stream native = cuda_engine_native(cuda_engine_stream_create()),
                       other = cuda_engine_native(cuda_engine_stream_create());
  open_device();
  adopt_scene_counts(device, &native.head, &other.head);
  adopt_scene_threads(device, &native.head);
  adopt_scene_end(ctx, device);
  cuda_engine_stream_destroy(native.stream);
  cuda_engine_stream_destroy(other.stream);
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
  const gm_cuda_stream zero = cuda_engine_native(0);
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
  const uintptr_t handle = cuda_engine_stream_create();
  open_device();
  gm_stream *first = adopt(handle);
  cuda_engine_stream_destroy(handle);
  assert_int_equal(cuda_engine_stream_create(), handle);
  gm_stream *second = adopt(handle);
  assert_ptr_not_equal(first, second);
  assert_int_not_equal(gm_stream_id(first), gm_stream_id(second));
  assert_ptr_equal(adopt(handle), second);
  adopt_scene_close(second);
  adopt_scene_close(second);
  adopt_scene_close(first);
  adopt_scene_end(ctx, device);
  cuda_engine_stream_destroy(handle);
}

/* The engine has planned the card's memory: no default of gm holds for it. Its own limits do. */
static void test_defaults_do_not_hold_on_an_adopted_context(void **state) {
  (void)state;
  const gm_cuda_device native = {.head = {sizeof native, GM_API_CUDA}};
  const gm_pool_params half = {.struct_size = sizeof half, .memory_fraction = 0.5};
  gm_memory_info memory = {.struct_size = sizeof memory};
  gm_heap_info heap = {.struct_size = sizeof heap};
  gm_pool *pool = NULL;
  gm_error err;
  gm_block block;
  uint32_t count = 0;
  ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  adopt_scene_ok(gm_device_adopt(ctx, &native.head, &device, &err), &err);
  adopt_scene_ok(gm_device_memory_info(device, &memory, &err), &err);
  assert_int_equal(memory.margin_bytes, 0);
  adopt_scene_ok(gm_device_heap_count(device, &count, &err), &err);
  assert_in_range(count, 2, 3);
  adopt_scene_ok(gm_device_heap(device, 0, &heap, &err), &err);
  assert_int_equal(heap.total_bytes, memory.total_bytes);
  assert_int_equal(heap.free_state, GM_FIGURE_KNOWN);
  const gm_request request = {.bytes = memory.total_bytes / 100 * 60};
  adopt_scene_ok(gm_pool_create(device, NULL, &pool, &err), &err);
  const gm_request large = {.bytes = memory.free_bytes / 1000 * 985};
  assert_true(gm_acquired(gm_alloc(pool, &large, &block))); /* beyond nine tenths */
  assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
  adopt_scene_ok(gm_pool_destroy(pool, &err), &err);
  adopt_scene_ok(gm_pool_create(device, &half, &pool, &err), &err);
  assert_int_equal(gm_alloc(pool, &request, &block), GM_ACQUIRE_OVER_LIMIT);
  adopt_scene_ok(gm_pool_destroy(pool, &err), &err);
  adopt_scene_end(ctx, device);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_defaults_do_not_hold_on_an_adopted_context),
      cmocka_unit_test(test_a_stream_adopted_twice_is_one),
      cmocka_unit_test(test_without_numbers_the_handle_tells),
      cmocka_unit_test(test_both_names_of_the_legacy_stream),
      cmocka_unit_test(test_each_threads_own_stream_is_one),
      cmocka_unit_test(test_a_handle_that_came_again_is_another_stream),
  };
  return cmocka_run_group_tests(tests, cuda_engine_open, cuda_engine_close);
}
