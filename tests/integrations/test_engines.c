/* Several engines of one process on gm's pools, and engines that do wrong. They free twice, forget their streams,
 * destroy the device first, and run out of memory in the middle of a model. On a simulated card, and on the host. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integrations/cupy/gm_cupy.h"
#include "integrations/numpy/gm_numpy.h"
#include "integrations/shared/engines.h"
#include "tests/integrations/torch_scene.h"

enum { BYTES = 256 << 10, MIB = 1 << 20 };

static CUdeviceptr address_of(const void *pointer) { return (CUdeviceptr)(uintptr_t)pointer; }

/* ---- one context, one pool for each card ---- */

static void *card_of_zero(void *unused) {
  (void)unused;
  return gm_card_of(0);
}

static void test_engines_share_a_context_and_a_pool(void **state) {
  (void)state;
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  void *card = NULL;
  assert_int_equal(gm_cards_close(), 0); /* the scene had opened it */
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, card_of_zero, NULL), 0);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_join(threads[i], &card), 0);
    assert_ptr_equal(card, gm_card_of(0));
  }
  const gm_device *device = gm_pool_device(gm_card_pool(gm_card_of(0)));
  const gm_device *second = gm_pool_device(gm_card_pool(gm_card_of(1)));
  assert_ptr_not_equal(device, second);
  assert_ptr_equal(gm_device_context(device), gm_engines_context());
  assert_ptr_equal(gm_device_context(second), gm_engines_context());
  assert_ptr_equal(gm_device_context(gm_pool_device(gm_engines_host_pool())), gm_engines_context());
}

static void test_the_environment_chooses_the_api(void **state) {
  (void)state;
  assert_int_equal(gm_cards_close(), 0);
  assert_int_equal(setenv("GM_BACKENDS", "cpu,opencl", 1), 0);
  assert_null(gm_card_of(0));
  assert_non_null(strstr(gm_engines_why(), "GM_BACKENDS"));
  assert_int_equal(setenv("GM_BACKENDS", "cpu,hip", 1), 0);
  assert_null(gm_card_of(0)); /* there is no runtime of HIP */
  assert_true(strlen(gm_engines_why()) > 0);
  assert_int_equal(setenv("GM_BACKENDS", "cuda", 1), 0);
  assert_non_null(gm_card_of(0));
  assert_int_equal(unsetenv("GM_BACKENDS"), 0);
}

/* PyTorch; CuPy in C; CuPy by stream, numba and RMM, which call gm_cards_alloc. Memory that one gives up serves
 * another. */
static void test_engines_use_the_same_memory(void **state) {
  (void)state;
  uint64_t free_bytes = 0, total = 0;
  const CUdeviceptr torch = torch_alloc(BYTES, 0);
  void *cupy = gm_cupy_malloc(NULL, BYTES, 0), *numba = gm_cards_alloc(BYTES, 0, torch_streams[1]);
  assert_non_null(cupy);
  assert_non_null(numba);
  assert_int_equal(gm_cards_figure(0, "active"), 3);
  const uint64_t calls = gm_cards_figure(0, "driver_allocs");
  gm_cupy_free(NULL, cupy, 0);
  torch_free(torch, BYTES, 0);
  assert_int_equal(gm_cards_free(numba, 0, torch_streams[1]), 0);
  torch_sync();
  assert_cu(cu.cuCtxSynchronize());
  assert_int_equal(gm_cards_memory(0, &free_bytes, &total), 0);
  void *pointers[3] = {gm_cards_alloc(BYTES, 0, torch_streams[0]), gm_cupy_malloc(NULL, BYTES, 0),
                       torch_pointer(torch_alloc(BYTES, 1))};
  assert_int_equal(gm_cards_figure(0, "driver_allocs"), calls);
  gm_cupy_free(NULL, pointers[0], 0); /* any of them may free it, as torch does with a tensor of DLPack */
  gm_torch_free(pointers[1], BYTES, 0, NULL);
  assert_int_equal(gm_cards_free(pointers[2], 0, torch_streams[1]), 0);
  assert_int_equal(gm_cards_figure(0, "active"), 0);
}

/* ---- frees ---- */

static void test_engines_free_twice(void **state) {
  (void)state;
  void *kept = gm_cards_alloc(BYTES, 0, NULL), *gone = gm_cards_alloc(BYTES, 0, NULL);
  assert_int_equal(gm_cards_free(gone, 0, NULL), 0);
  assert_int_equal(gm_cards_free(gone, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_cupy_free(NULL, gone, 0);
  gm_torch_free(gone, BYTES, 0, torch_streams[0]);
  assert_int_equal(gm_cards_free((char *)kept + 256, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cards_free(kept, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cards_free(kept, -1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cards_figure(0, "active"), 1);
  assert_int_equal(gm_cards_free(kept, 0, NULL), 0);
  const gm_numpy_functions *numpy = &gm_numpy.functions;
  char *array = numpy->allocate(numpy->user, 1000), *other = numpy->allocate(numpy->user, 1000);
  numpy->release(numpy->user, array, 1000);
  numpy->release(numpy->user, array, 1000);
  numpy->release(numpy->user, other + 64, 1000);
  assert_null(numpy->resize(numpy->user, other + 64, 5000)); /* no array begins there */
  assert_int_equal(gm_engines_host_figure("active"), 1);
  numpy->release(numpy->user, other, 1000);
  assert_int_equal(gm_engines_host_figure("active"), 0);
}

/* ---- streams that gm was not told of ---- */

/* The engine destroys a stream with work under way, and the driver gives the handle to the next one. */
static void test_a_stream_is_forgotten_and_its_handle_comes_again(void **state) {
  (void)state;
  unsigned *seen = NULL;
  assert_cu(cu.cuMemHostAlloc((void **)&seen, sizeof *seen, 0));
  CUstream stream = fixture_stream(1);
  for (unsigned round = 1; round <= 10; round++) {
    void *first = gm_cards_alloc(BYTES, 0, stream);
    assert_cu(cu.cuMemsetD32Async(address_of(first), round, BYTES / 4, stream));
    assert_cu(cu.cuMemcpyDtoHAsync_v2(seen, address_of(first), sizeof *seen, stream));
    assert_int_equal(gm_cards_free(first, 0, stream), 0);
    assert_cu(cu.cuStreamDestroy_v2(stream));
    const CUstream next = fixture_stream(1);
    assert_ptr_equal(next, stream);
    void *second = gm_cards_alloc(BYTES, 0, next);
    assert_non_null(second);
    assert_cu(cu.cuMemsetD32Async(address_of(second), 1000, BYTES / 4, next));
    assert_cu(cu.cuCtxSynchronize());
    assert_int_equal(*seen, round);
    assert_int_equal(gm_cards_free(second, 0, next), 0);
  }
  torch_sync();
  assert_int_equal(gm_cards_close(), 0);
  assert_cu(cu.cuStreamDestroy_v2(stream));
  assert_cu(cu.cuMemFreeHost(seen));
}

/* A handle comes again while another stream is captured, where nobody may wait for the device. */
static void test_a_handle_comes_again_beside_a_capture(void **state) {
  (void)state;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = NULL;
  CUstream stream = fixture_stream(1);
  void *first = gm_cards_alloc(BYTES, 0, stream);
  assert_int_equal(gm_cards_free(first, 0, stream), 0);
  assert_cu(cu.cuStreamDestroy_v2(stream));
  assert_ptr_equal(fixture_stream(1), stream);
  torch_free(torch_alloc(BYTES, 0), BYTES, 0);
  assert_cu(cu.cuStreamBeginCapture_v2(torch_streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
  void *second = gm_cards_alloc(BYTES, 0, stream);
  assert_cu(cu.cuStreamIsCapturing(torch_streams[0], &status));
  assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  if (!second) assert_true(strlen(gm_engines_why()) > 0);
  assert_cu(cu.cuStreamEndCapture(torch_streams[0], &graph));
  assert_cu(cu.cuGraphDestroy(graph));
  if (!second) second = gm_cards_alloc(BYTES, 0, stream);
  assert_non_null(second);
  assert_int_equal(gm_cards_free(second, 0, stream), 0);
  torch_sync();
  assert_int_equal(gm_cards_close(), 0);
  assert_cu(cu.cuStreamDestroy_v2(stream));
}

/* The engine destroys a stream, and then frees memory in its order. The memory serves nobody until gm sees that the
 * handle belongs to another stream, and has waited for the device. */
static void test_memory_outlives_its_stream(void **state) {
  (void)state;
  enum { OTHERS = 40 };
  CUdeviceptr others[OTHERS];
  CUstream stream = fixture_stream(1);
  void *block = gm_cards_alloc(BYTES, 0, stream);
  assert_non_null(block);
  assert_cu(cu.cuMemsetD32Async(address_of(block), 1, BYTES / 4, stream));
  assert_cu(cu.cuStreamDestroy_v2(stream));
  assert_null(gm_cards_alloc(BYTES, 0, stream));
  assert_true(strlen(gm_engines_why()) > 0);
  assert_int_equal(gm_cards_free((char *)block + 256, 0, stream), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cards_free(block, 0, stream), 0);
  assert_int_equal(gm_cards_free(block, 0, stream), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cards_figure(0, "active"), 0);
  for (int i = 0; i < OTHERS; i++) assert_true((others[i] = torch_alloc(BYTES, i % 2)) != address_of(block));
  assert_ptr_equal(fixture_stream(1), stream);
  void *again = gm_cards_alloc(BYTES, 0, stream);
  assert_ptr_equal(again, block);
  assert_int_equal(gm_cards_free(again, 0, stream), 0);
  for (int i = 0; i < OTHERS; i++) torch_free(others[i], BYTES, i % 2);
  torch_sync();
  assert_int_equal(gm_cards_close(), 0);
  assert_cu(cu.cuStreamDestroy_v2(stream));
}

/* Handles that were never streams. */
static void test_streams_that_are_none(void **state) {
  (void)state;
  void *const none = (void *)(uintptr_t)0xdead0, *block = gm_cards_alloc(BYTES, 0, NULL);
  assert_null(gm_cards_alloc(BYTES, 0, none));
  assert_true(strlen(gm_engines_why()) > 0);
  gm_torch_record_stream(block, none);
  assert_int_equal(gm_cards_free(block, 0, none), 0);
  assert_int_equal(gm_cards_figure(0, "active"), 0);
}

/* ---- the device goes first ---- */

static void test_the_device_is_destroyed_first(void **state) {
  (void)state;
  const CUdeviceptr blocks[2] = {torch_alloc(BYTES, 0), torch_alloc(40 * MIB, 1)};
  void *cupy = gm_cupy_malloc(NULL, BYTES, 0);
  gm_torch_pool_begin(0, (gm_torch_pool_id){1, 0}, NULL);
  const CUdeviceptr of_graph = torch_alloc(BYTES, 0);
  gm_torch_end_allocate_to_pool(0, (gm_torch_pool_id){1, 0});
  torch_free(blocks[1], 40 * MIB, 1);
  assert_cu(cu.cuDevicePrimaryCtxReset_v2(0));
  void *pointer = gm_torch_alloc(BYTES, 0, NULL);
  if (pointer) gm_torch_free(pointer, BYTES, 0, NULL);
  assert_null(gm_torch_alloc(100 * MIB, 0, torch_streams[0]));
  gm_torch_record_stream(torch_pointer(blocks[0]), torch_streams[1]);
  gm_torch_reset();
  torch_free(blocks[0], BYTES, 0);
  torch_free(of_graph, BYTES, 0);
  gm_torch_release_pool(0, (gm_torch_pool_id){1, 0});
  gm_cupy_free(NULL, cupy, 0);
  gm_torch_free(torch_pointer(blocks[0]), BYTES, 0, NULL);
  assert_int_equal(gm_cards_figure(0, "active"), 0);
}

/* ---- no memory in the middle of a model ---- */

enum { TENSORS = 200 };

/* Loads tensors until there is no memory, and gives them up again, as an engine does that fails. */
static int load_on_card(size_t bytes) {
  void *tensors[TENSORS];
  int count = 0;
  while (count < TENSORS && (tensors[count] = gm_torch_alloc((ptrdiff_t)bytes, 0, torch_streams[count % 2]))) {
    assert_cu(cu.cuMemsetD32Async(address_of(tensors[count]), (unsigned)count, 16, torch_streams[count % 2]));
    count++;
  }
  for (int i = count; i-- > 0;) gm_torch_free(tensors[i], (ptrdiff_t)bytes, 0, torch_streams[i % 2]);
  return count;
}

static void test_a_model_does_not_fit_on_the_card(void **state) {
  (void)state;
  void *cupy = gm_cupy_malloc(NULL, BYTES, 0);
  assert_cu(cu.cuMemsetD32Async(address_of(cupy), 77, BYTES / 4, NULL));
  const int most = load_on_card(20 * MIB);
  assert_in_range(most, 30, TENSORS - 1);
  for (int i = 0; i < 5; i++) assert_in_range(load_on_card(20 * MIB), most - 2, most + 2);
  assert_int_equal(load_on_card(2 * MIB), TENSORS); /* a smaller model fits */
  assert_int_equal(gm_cards_figure(0, "active"), 1);
  torch_sync();
  assert_int_equal(fixture_word(address_of(cupy) + BYTES - 4), 77);
  gm_cupy_free(NULL, cupy, 0);
}

static void test_a_model_does_not_fit_on_the_host(void **state) {
  (void)state;
  const gm_numpy_functions *numpy = &gm_numpy.functions;
  void *tensors[TENSORS];
  assert_int_equal(gm_engines_host_limit(UINT64_C(64) * MIB), 0);
  for (int round = 0; round < 3; round++) {
    int count = 0;
    while (count < TENSORS && (tensors[count] = numpy->allocate(numpy->user, 4 * MIB))) count++;
    assert_in_range(count, 8, 16);
    assert_true(strlen(gm_engines_why()) > 0);
    void *grown = numpy->resize(numpy->user, tensors[0], 64 * MIB);
    assert_null(grown); /* and the array stays */
    for (int i = 0; i < count; i++) numpy->release(numpy->user, tensors[i], 4 * MIB);
  }
  assert_int_equal(gm_engines_host_figure("active"), 0);
  assert_int_equal(gm_engines_host_limit(0), 0);
}

/* ---- a forked child ---- */

/* Prints nothing and ends by itself. Returns the number of the first call that did wrong, or 0. */
static int child_calls(void *kept) {
  uint64_t free_bytes = 0, total = 0;
  const gm_numpy_functions *numpy = &gm_numpy.functions;
  if (!freopen("/dev/null", "w", stderr)) return 9;
  if (gm_torch_alloc(BYTES, 0, torch_streams[0])) return 1;
  if (gm_cupy_malloc(NULL, BYTES, 0)) return 2;
  if (gm_cards_free(kept, 0, NULL) == 0) return 3;
  if (gm_cards_memory(0, &free_bytes, &total) == 0) return 4;
  if (numpy->allocate(numpy->user, 1000)) return 5;
  gm_torch_free(kept, BYTES, 0, torch_streams[0]);
  gm_torch_record_stream(kept, torch_streams[0]);
  gm_torch_pool_begin(0, (gm_torch_pool_id){1, 0}, NULL);
  if (gm_torch_alloc(BYTES, 0, torch_streams[0])) return 6;
  gm_torch_release_pool(0, (gm_torch_pool_id){1, 0});
  gm_torch_reset();
  return 0;
}

static void test_a_forked_child_gets_nothing(void **state) {
  (void)state;
  int status = -1;
  void *kept = gm_cards_alloc(BYTES, 0, NULL);
  assert_non_null(gm_engines_host_pool());
  const pid_t child = fork();
  if (child == 0) _exit(child_calls(kept));
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_int_equal(gm_cards_free(kept, 0, NULL), 0);
}

int main(void) {
#define SCENE(name) cmocka_unit_test_setup_teardown(name, torch_scene_begin, torch_scene_end)
  const struct CMUnitTest tests[] = {
      SCENE(test_engines_share_a_context_and_a_pool),
      SCENE(test_the_environment_chooses_the_api),
      SCENE(test_engines_use_the_same_memory),
      SCENE(test_engines_free_twice),
      SCENE(test_a_stream_is_forgotten_and_its_handle_comes_again),
      SCENE(test_a_handle_comes_again_beside_a_capture),
      SCENE(test_memory_outlives_its_stream),
      SCENE(test_streams_that_are_none),
      SCENE(test_a_model_does_not_fit_on_the_card),
      SCENE(test_a_model_does_not_fit_on_the_host),
      SCENE(test_a_forked_child_gets_nothing),
      SCENE(test_the_device_is_destroyed_first),
  };
#undef SCENE
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}
