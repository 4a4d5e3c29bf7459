/* Streams by their handles (gm_stream_of). One look-up finds a known one. A handle that came again is a new stream.
 * More streams than a pool follows one by one work. gm on the simulated driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "gm/pool.h"
#include "support/cuda_engine.h"
#include "support/cuda_fixture.h"

enum { PER_THREAD = 2, MANY = 200, ROUNDS = 3, BYTES = 65536, THREADS = 4 };

static CUresult (*engine_fill)(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream);

static gm_context *ctx;
static gm_device *device;
static gm_pool *pool;

static int open_engine(void **state) {
  cuda_entry("cuMemsetD8Async", &engine_fill);
  return cuda_engine_open(state);
}

static void scene_open(void) {
  gm_error err;
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true};
  cuda_say("set LATENCY_US 0");
  ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  adopt_scene_ok(gm_device_open_index(ctx, "cuda", 0, &device, &err), &err);
  adopt_scene_ok(gm_pool_create(device, &params, &pool, &err), &err);
}

static void scene_close(void) {
  gm_error err;
  cuda_say("set LATENCY_US 0");
  adopt_scene_ok(gm_pool_destroy(pool, &err), &err);
  adopt_scene_end(ctx, device);
}

static gm_stream *of(uintptr_t handle) {
  const gm_cuda_stream native = cuda_engine_native(handle);
  gm_stream *stream = NULL;
  gm_error err;
  adopt_scene_ok(gm_stream_of(device, &native.head, &stream, &err), &err);
  return stream;
}

static gm_status forget(uintptr_t handle) {
  const gm_cuda_stream native = cuda_engine_native(handle);
  return gm_stream_forget(device, &native.head, NULL);
}

static gm_block take(gm_stream *stream) {
  const gm_request request = {.bytes = BYTES, .stream = stream, .flags = GM_INSERT_WAIT};
  gm_block block = {0};
  assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
  return block;
}

/* A stream that is known costs the driver's number and nothing else. */
static void test_a_known_stream_costs_one_call(void **state) {
  (void)state;
  const uintptr_t handle = cuda_engine_stream_create();
  scene_open();
  gm_stream *stream = of(handle);
  cuda_say("zero");
  for (int i = 0; i < 10; i++) assert_ptr_equal(of(handle), stream);
  assert_int_equal(cuda_calls("cuStreamGetId"), 10);
  assert_int_equal(cuda_calls("cuCtxPushCurrent_v2"), 0);
  assert_int_equal(cuda_calls("cuCtxGetCurrent"), 0);
  assert_ptr_equal(of(0), of(1)); /* both names of the default stream */
  assert_ptr_not_equal(of(0), stream);
  scene_close();
  cuda_engine_stream_destroy(handle);
}

/* The device closes the streams that it owns; a pool still keeps it. */
static void test_the_device_owns_them(void **state) {
  (void)state;
  const uintptr_t handle = cuda_engine_stream_create();
  gm_error why;
  scene_open();
  gm_stream *stream = of(handle);
  assert_int_equal(gm_stream_close(stream, &why), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(why.message, "gm_stream_forget"));
  const gm_cuda_stream native = cuda_engine_native(handle);
  assert_ptr_equal(adopt_scene_adopt(device, &native.head), stream);
  adopt_scene_close(stream); /* that adoption was the caller's */
  assert_int_equal(gm_stream_close(stream, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_close(device, NULL), GM_ERR_BUSY); /* the pool */
  scene_close();
  cuda_engine_stream_destroy(handle);
}

static void test_a_stream_is_forgotten(void **state) {
  (void)state;
  const uintptr_t handle = cuda_engine_stream_create(), unseen = cuda_engine_stream_create();
  gm_error err;
  scene_open();
  gm_stream *stream = of(handle);
  const uint64_t id = gm_stream_id(stream);
  assert_int_equal(forget(unseen), GM_OK);
  adopt_scene_ok(gm_device_set_default_stream(device, stream, &err), &err);
  assert_int_equal(forget(handle), GM_ERR_BUSY);
  assert_ptr_equal(of(handle), stream);
  adopt_scene_ok(gm_device_set_default_stream(device, NULL, &err), &err);
  assert_int_equal(forget(handle), GM_OK);
  assert_int_equal(forget(handle), GM_OK);
  assert_int_equal(gm_stream_flush(stream, NULL), GM_ERR_INVALID_ARGUMENT); /* it is closed */
  assert_int_not_equal(gm_stream_id(of(handle)), id);
  scene_close();
  cuda_engine_stream_destroy(handle);
  cuda_engine_stream_destroy(unseen);
}

/* The engine destroyed its stream under gm while work ran, and the driver gave the handle to the next one. gm waits for
 * the device once. Then the memory that was freed on the old stream is free for everybody. */
static void test_a_handle_that_came_again(void **state) {
  (void)state;
  const uintptr_t handle = cuda_engine_stream_create();
  scene_open();
  gm_stream *first = of(handle);
  const uint64_t id = gm_stream_id(first);
  const gm_block block = take(first);
  cuda_say("set LATENCY_US 20000");
  assert_int_equal(engine_fill(block.address, 1, BYTES, (CUstream)handle), CUDA_SUCCESS);
  assert_int_equal(gm_free(pool, &block, first), GM_OK);
  cuda_engine_stream_destroy(handle);
  assert_int_equal(cuda_engine_stream_create(), handle);
  cuda_say("zero");
  gm_stream *second = of(handle);
  assert_int_equal(cuda_calls("cuCtxSynchronize"), 1);
  assert_int_not_equal(gm_stream_id(second), id);
  assert_ptr_equal(of(handle), second);
  assert_int_equal(cuda_calls("cuCtxSynchronize"), 1);
  const gm_request request = {.bytes = BYTES, .flags = GM_POOLED_ONLY};
  gm_block again;
  assert_int_equal(gm_alloc(pool, &request, &again), GM_ACQUIRE_OK);
  assert_int_equal(again.address, block.address);
  assert_int_equal(gm_free(pool, &again, NULL), GM_OK);
  scene_close();
  cuda_engine_stream_destroy(handle);
}

/* Another part of the program had adopted the old stream: it keeps its gm_stream, and closes it. */
static void test_others_keep_the_old_stream(void **state) {
  (void)state;
  const uintptr_t handle = cuda_engine_stream_create();
  const gm_cuda_stream native = cuda_engine_native(handle);
  scene_open();
  gm_stream *adopted = adopt_scene_adopt(device, &native.head), *first = of(handle);
  assert_ptr_equal(adopted, first);
  cuda_engine_stream_destroy(handle);
  assert_int_equal(cuda_engine_stream_create(), handle);
  assert_ptr_not_equal(of(handle), adopted);
  assert_true(gm_stream_device(adopted) == device);
  adopt_scene_close(adopted);
  scene_close();
  cuda_engine_stream_destroy(handle);
}

/* The old stream is the default one: calls that name none would use it. So it stays until another one is chosen. */
static void test_the_old_stream_is_chosen(void **state) {
  (void)state;
  const uintptr_t handle = cuda_engine_stream_create();
  const gm_cuda_stream native = cuda_engine_native(handle);
  gm_stream *second = NULL;
  gm_error err;
  scene_open();
  gm_stream *first = of(handle);
  adopt_scene_ok(gm_device_set_default_stream(device, first, &err), &err);
  cuda_engine_stream_destroy(handle);
  assert_int_equal(cuda_engine_stream_create(), handle);
  assert_int_equal(gm_stream_of(device, &native.head, &second, &err), GM_ERR_BUSY);
  assert_non_null(strstr(err.message, "default stream"));
  adopt_scene_ok(gm_device_set_default_stream(device, NULL, &err), &err);
  assert_ptr_not_equal(of(handle), NULL);
  scene_close();
  cuda_engine_stream_destroy(handle);
}

/* An older driver numbers no streams: forgetting in time is then what tells them apart. */
static void test_without_numbers(void **state) {
  (void)state;
  cuda_say("set VERSION 11080");
  const uintptr_t handle = cuda_engine_stream_create();
  scene_open();
  gm_stream *stream = of(handle);
  const uint64_t id = gm_stream_id(stream);
  assert_ptr_equal(of(handle), stream);
  assert_int_equal(forget(handle), GM_OK);
  cuda_engine_stream_destroy(handle);
  assert_int_equal(cuda_engine_stream_create(), handle);
  assert_int_not_equal(gm_stream_id(of(handle)), id);
  scene_close();
  cuda_engine_stream_destroy(handle);
  cuda_say("set VERSION 13000");
}

/* Blocks are freed as torch frees them: they go from stream to stream, each used on a second one. No request and no
 * free waits on the host. Afterwards all memory comes back. */
static void test_two_hundred_streams(void **state) {
  (void)state;
  uintptr_t handles[MANY];
  gm_block blocks[MANY];
  scene_open();
  for (int i = 0; i < MANY; i++) handles[i] = cuda_engine_stream_create();
  cuda_say("set LATENCY_US 200");
  cuda_say("zero");
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < MANY; i++) blocks[i] = take(of(handles[i]));
    for (int i = 0; i < MANY; i++) {
      const uintptr_t second = handles[(i + 101) % MANY];
      assert_int_equal(engine_fill(blocks[i].address, (unsigned char)i, BYTES, (CUstream)second), CUDA_SUCCESS);
      assert_int_equal(gm_use_on_ptr(NULL, (const void *)(uintptr_t)blocks[i].address, of(second)), GM_OK);
      assert_int_equal(gm_free(pool, &blocks[i], of(handles[i])), GM_OK);
    }
  }
  assert_int_equal(cuda_calls("cuStreamSynchronize"), 0);
  assert_int_equal(cuda_calls("cuEventSynchronize"), 0);
  assert_int_equal(cuda_calls("cuCtxSynchronize"), 0);
  cuda_say("set LATENCY_US 0");
  for (int i = 0; i < MANY; i++) assert_int_equal(forget(handles[i]), GM_OK);
  gm_pool_trim(pool, 0);
  gm_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_pool_stats(pool, &stats), GM_OK);
  assert_int_equal(stats.reserved_bytes, 0);
  scene_close();
  for (int i = 0; i < MANY; i++) cuda_engine_stream_destroy(handles[i]);
}

static uintptr_t raced[16];
static gm_stream *found[THREADS][16];

static void *look_up(void *user) {
  gm_stream **mine = user;
  for (int round = 0; round < 50; round++) {
    for (int i = 0; i < 16; i++) {
      gm_stream *stream = of(raced[i]);
      if (round && stream != mine[i]) return user;
      mine[i] = stream;
    }
  }
  return NULL;
}

static void test_threads_find_the_same(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  scene_open();
  for (int i = 0; i < 16; i++) raced[i] = cuda_engine_stream_create();
  for (int t = 0; t < THREADS; t++) assert_int_equal(pthread_create(&threads[t], NULL, look_up, found[t]), 0);
  for (int t = 0; t < THREADS; t++) {
    void *changed = NULL;
    assert_int_equal(pthread_join(threads[t], &changed), 0);
    assert_null(changed);
  }
  for (int t = 1; t < THREADS; t++) assert_memory_equal(found[t], found[0], sizeof found[0]);
  scene_close();
  for (int i = 0; i < 16; i++) cuda_engine_stream_destroy(raced[i]);
}

static void *own_stream(void *user) {
  gm_stream **out = user;
  out[0] = of(PER_THREAD);
  out[1] = of(PER_THREAD);
  assert_int_equal(forget(PER_THREAD), GM_OK);
  return NULL;
}

static void test_each_thread_has_its_own(void **state) {
  (void)state;
  pthread_t thread;
  gm_stream *others[2];
  scene_open();
  gm_stream *mine = of(PER_THREAD);
  assert_int_equal(pthread_create(&thread, NULL, own_stream, others), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_ptr_equal(others[0], others[1]);
  assert_ptr_not_equal(others[0], mine);
  assert_ptr_equal(of(PER_THREAD), mine);
  scene_close();
}

static void test_wrong_arguments(void **state) {
  (void)state;
  gm_stream *stream = NULL;
  const gm_native_stream foreign = {sizeof foreign, GM_API_VULKAN};
  const gm_cuda_stream native = cuda_engine_native(0);
  gm_device *cpu = NULL;
  gm_error err;
  scene_open();
  assert_int_equal(gm_stream_of(NULL, &native.head, &stream, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_of(device, NULL, &stream, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_of(device, &native.head, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_of(device, &foreign, &stream, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_forget(device, &foreign, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_context *other = adopt_scene_context("cpu", NULL);
  adopt_scene_ok(gm_device_open_index(other, "cpu", 0, &cpu, &err), &err);
  assert_int_equal(gm_stream_of(cpu, &native.head, &stream, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "gm_stream_adopt"));
  adopt_scene_end(other, cpu);
  scene_close();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_known_stream_costs_one_call),
      cmocka_unit_test(test_the_device_owns_them),
      cmocka_unit_test(test_a_stream_is_forgotten),
      cmocka_unit_test(test_a_handle_that_came_again),
      cmocka_unit_test(test_others_keep_the_old_stream),
      cmocka_unit_test(test_the_old_stream_is_chosen),
      cmocka_unit_test(test_without_numbers),
      cmocka_unit_test(test_two_hundred_streams),
      cmocka_unit_test(test_threads_find_the_same),
      cmocka_unit_test(test_each_thread_has_its_own),
      cmocka_unit_test(test_wrong_arguments),
  };
  return cmocka_run_group_tests_name("cuda_stream_of", tests, open_engine, cuda_engine_close);
}
