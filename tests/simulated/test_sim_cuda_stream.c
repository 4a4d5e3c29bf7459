/* The simulated CUDA driver by itself: order of work. A program that forgets a wait must be seen to go wrong. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "tests/simulated/sim_cuda_fixture.h"

/* Two streams, the first held: what the second does comes before it. */
static unsigned copy_after(CUstream first, CUstream second, CUevent between) {
  CUdeviceptr from = fixture_alloc(64), to = fixture_alloc(64);
  assert_cu(cu.cuMemsetD32_v2(from, 1, 16));
  assert_cu(cu.cuCtxSynchronize());
  fixture_gate("hold", first);
  assert_cu(cu.cuMemsetD32Async(from, 2, 16, first));
  if (between) {
    assert_cu(cu.cuEventRecord(between, first));
    assert_cu(cu.cuStreamWaitEvent(second, between, 0));
  }
  assert_cu(cu.cuMemcpyDtoDAsync_v2(to, from, 64, second));
  if (between) {
    assert_int_equal(cu.cuStreamQuery(second), CUDA_ERROR_NOT_READY);
    assert_int_equal(cu.cuEventQuery(between), CUDA_ERROR_NOT_READY);
    fixture_gate("release", first);
  }
  assert_cu(cu.cuStreamSynchronize(second));
  fixture_gate("release", first);
  assert_cu(cu.cuCtxSynchronize());
  unsigned word = fixture_word(to);
  assert_cu(cu.cuMemFree_v2(from));
  assert_cu(cu.cuMemFree_v2(to));
  return word;
}

static void a_forgotten_wait_corrupts(void **state) {
  (void)state;
  CUstream first = fixture_stream(CU_STREAM_NON_BLOCKING), second = fixture_stream(CU_STREAM_NON_BLOCKING);
  CUevent between = fixture_event(CU_EVENT_DISABLE_TIMING);
  assert_int_equal(copy_after(first, second, NULL), 1);
  assert_int_equal(copy_after(first, second, between), 2);
  assert_cu(cu.cuEventDestroy_v2(between));
  assert_cu(cu.cuStreamDestroy_v2(first));
  assert_cu(cu.cuStreamDestroy_v2(second));
}

/* Without any hold: among many rounds, chance alone overtakes. */
static void streams_overtake_each_other_by_chance(void **state) {
  (void)state;
  CUstream first = fixture_stream(CU_STREAM_NON_BLOCKING), second = fixture_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr word = fixture_alloc(4);
  int overtaken = 0;
  for (int round = 0; round < 200; round++) {
    assert_cu(cu.cuMemsetD32Async(word, 1, 1, first));
    assert_cu(cu.cuMemsetD32Async(word, 2, 1, second));
    assert_cu(cu.cuCtxSynchronize());
    overtaken += fixture_word(word) == 1;
  }
  assert_in_range(overtaken, 1, 199);
  assert_cu(cu.cuMemFree_v2(word));
  assert_cu(cu.cuStreamDestroy_v2(first));
  assert_cu(cu.cuStreamDestroy_v2(second));
}

static void the_legacy_stream_orders_blocking_ones(void **state) {
  (void)state;
  CUstream blocking = fixture_stream(CU_STREAM_DEFAULT), free_one = fixture_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr word = fixture_alloc(4);
  fixture_gate("hold", blocking);
  assert_cu(cu.cuMemsetD32Async(word, 1, 1, blocking));
  assert_cu(cu.cuMemsetD32Async(word, 2, 1, NULL));     /* waits for `blocking` */
  assert_cu(cu.cuMemsetD32Async(word, 3, 1, free_one)); /* waits for nobody */
  assert_cu(cu.cuStreamSynchronize(free_one));
  assert_int_equal(cu.cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
  fixture_gate("release", blocking);
  assert_cu(cu.cuStreamSynchronize(CU_STREAM_LEGACY));
  assert_int_equal(fixture_word(word), 2);
  fixture_gate("hold", NULL);
  assert_cu(cu.cuMemsetD32Async(word, 4, 1, NULL));
  assert_cu(cu.cuMemsetD32Async(word, 5, 1, blocking)); /* waits for the legacy stream */
  assert_int_equal(cu.cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
  fixture_gate("release", NULL);
  assert_cu(cu.cuStreamSynchronize(blocking));
  assert_int_equal(fixture_word(word), 5);
  assert_cu(cu.cuMemFree_v2(word));
  assert_cu(cu.cuStreamDestroy_v2(blocking));
  assert_cu(cu.cuStreamDestroy_v2(free_one));
}

static void *own_stream_id(void *context) {
  static unsigned long long id;
  if (cu.cuCtxSetCurrent(context) || cu.cuStreamGetId_ptsz(NULL, &id)) return NULL;
  return &id;
}

static void each_thread_has_a_default_stream(void **state) {
  (void)state;
  CUcontext context = NULL;
  assert_cu(cu.cuCtxGetCurrent(&context));
  unsigned long long legacy = fixture_stream_id(NULL), own = fixture_stream_id(CU_STREAM_PER_THREAD), same = 0;
  assert_cu(cu.cuStreamGetId_ptsz(NULL, &same));
  assert_true(own != legacy);
  assert_int_equal(own, same);
  pthread_t thread;
  void *other = NULL;
  assert_int_equal(pthread_create(&thread, NULL, own_stream_id, context), 0);
  assert_int_equal(pthread_join(thread, &other), 0);
  assert_non_null(other);
  assert_true(*(unsigned long long *)other != own && *(unsigned long long *)other != legacy);
}

static void handles_are_recycled(void **state) {
  (void)state;
  CUstream first = fixture_stream(CU_STREAM_NON_BLOCKING);
  unsigned long long id = fixture_stream_id(first);
  CUdeviceptr word = fixture_alloc(4);
  fixture_gate("hold", first);
  assert_cu(cu.cuMemsetD32Async(word, 9, 1, first));
  assert_cu(cu.cuStreamDestroy_v2(first)); /* its work is still done */
  CUstream second = fixture_stream(CU_STREAM_NON_BLOCKING);
  assert_ptr_equal(first, second);
  assert_true(fixture_stream_id(second) != id);
  assert_cu(cu.cuCtxSynchronize());
  assert_int_equal(fixture_word(word), 9);
  CUevent event = fixture_event(0);
  assert_cu(cu.cuEventDestroy_v2(event));
  assert_int_equal(cu.cuEventRecord(event, second), CUDA_ERROR_INVALID_HANDLE);
  assert_cu(cu.cuMemFree_v2(word));
  assert_cu(cu.cuStreamDestroy_v2(second));
  assert_int_equal(cu.cuStreamSynchronize(second), CUDA_ERROR_INVALID_HANDLE);
}

/* A wait means the record that was last when it was called. */
static void waits_hold_the_record_of_their_time(void **state) {
  (void)state;
  CUstream first = fixture_stream(CU_STREAM_NON_BLOCKING), second = fixture_stream(CU_STREAM_NON_BLOCKING);
  CUevent event = fixture_event(CU_EVENT_DISABLE_TIMING);
  assert_cu(cu.cuStreamWaitEvent(second, event, 0)); /* never recorded: nothing to wait for */
  assert_cu(cu.cuStreamSynchronize(second));
  assert_cu(cu.cuEventRecord(event, first));
  assert_cu(cu.cuEventSynchronize(event));
  fixture_gate("hold", first);
  assert_cu(cu.cuStreamWaitEvent(second, event, 0));
  assert_cu(cu.cuEventRecord(event, first));
  assert_cu(cu.cuStreamSynchronize(second)); /* not held up by the second record */
  assert_int_equal(cu.cuEventQuery(event), CUDA_ERROR_NOT_READY);
  assert_cu(cu.cuEventDestroy_v2(event)); /* while it is pending */
  fixture_gate("release", first);
  assert_cu(cu.cuStreamDestroy_v2(first));
  assert_cu(cu.cuStreamDestroy_v2(second));
}

static void pinned_copies_are_late_and_pageable_ones_are_not(void **state) {
  (void)state;
  CUstream stream = fixture_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr first = fixture_alloc(4), second = fixture_alloc(4);
  unsigned *pinned = NULL, pageable = 1;
  assert_cu(cu.cuMemHostAlloc((void **)&pinned, 4096, 0));
  *pinned = 1;
  fixture_gate("hold", stream);
  assert_cu(cu.cuMemcpyHtoDAsync_v2(first, pinned, 4, stream));
  assert_cu(cu.cuMemcpyHtoDAsync_v2(second, &pageable, 4, stream));
  *pinned = 2;
  pageable = 2;
  fixture_gate("release", stream);
  assert_cu(cu.cuStreamSynchronize(stream));
  assert_int_equal(fixture_word(first), 2);
  assert_int_equal(fixture_word(second), 1);
  unsigned back = 0;
  assert_cu(cu.cuMemcpyDtoHAsync_v2(&back, first, 4, stream));
  assert_int_equal(back, 2); /* it ended before it returned */
  assert_cu(cu.cuMemFreeHost(pinned));
  assert_cu(cu.cuMemFree_v2(first));
  assert_cu(cu.cuMemFree_v2(second));
  assert_cu(cu.cuStreamDestroy_v2(stream));
}

static void async_frees_take_effect_in_order(void **state) {
  (void)state;
  CUstream stream = fixture_stream(CU_STREAM_NON_BLOCKING), late = fixture_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr keep = fixture_alloc(64), block = 0, again = 0, other = 0;
  CUmemoryPool pool = NULL;
  uint64_t threshold = UINT64_MAX, figure = 0;
  CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  assert_cu(cu.cuMemPoolCreate(&pool, &props));
  assert_cu(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  assert_cu(cu.cuMemAllocFromPoolAsync(&block, 64, pool, stream));
  fixture_gate("hold", late);
  assert_cu(cu.cuMemsetD32Async(block, 7, 16, stream));
  assert_cu(cu.cuMemFreeAsync(block, stream));
  assert_cu(cu.cuMemcpyDtoDAsync_v2(keep, block, 64, late)); /* the mistake: no wait, and after the free */
  assert_cu(cu.cuMemAllocFromPoolAsync(&again, 64, pool, stream));
  assert_int_equal(again, block); /* its own stream may have it before the free is done */
  assert_cu(cu.cuStreamSynchronize(stream));
  fixture_gate("release", late);
  assert_cu(cu.cuStreamSynchronize(late));
  assert_int_equal(fixture_word(keep), 0xdddddddd);
  fixture_gate("hold", stream);
  assert_cu(cu.cuMemFreeAsync(again, stream));
  assert_cu(cu.cuMemAllocFromPoolAsync(&other, 64, pool, late));
  assert_true(other != again); /* another stream only after it */
  fixture_gate("release", stream);
  assert_cu(cu.cuMemFreeAsync(other, late));
  assert_cu(cu.cuCtxSynchronize());
  assert_cu(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &figure));
  assert_int_equal(figure, 1024);
  threshold = 0;
  assert_cu(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  assert_cu(cu.cuStreamSynchronize(stream));
  assert_cu(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &figure));
  assert_int_equal(figure, 0);
  assert_cu(cu.cuMemPoolDestroy(pool));
  assert_cu(cu.cuMemFree_v2(keep));
  assert_cu(cu.cuStreamDestroy_v2(stream));
  assert_cu(cu.cuStreamDestroy_v2(late));
}

/* A block that was freed twice on a stream is not for others when only the first free was reached. */
static void each_free_counts_by_itself(void **state) {
  (void)state;
  CUstream stream = fixture_stream(CU_STREAM_NON_BLOCKING), other = fixture_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = 0, again = 0, taken = 0;
  fixture_do("set LATENCY_US 0");
  assert_cu(cu.cuMemAllocAsync(&block, 4096, stream));
  fixture_gate("hold", stream);
  assert_cu(cu.cuMemFreeAsync(block, stream));
  assert_cu(cu.cuMemAllocAsync(&again, 4096, stream));
  assert_int_equal(again, block);
  assert_cu(cu.cuMemFreeAsync(again, stream));
  assert_int_equal(fixture_number("get pending"), 2);
  fixture_do("step");
  while (fixture_number("get pending") > 1) sched_yield();
  assert_cu(cu.cuMemAllocAsync(&taken, 4096, other));
  assert_true(taken != block);
  fixture_gate("release", stream);
  assert_cu(cu.cuMemFreeAsync(taken, other));
  assert_cu(cu.cuCtxSynchronize());
  assert_cu(cu.cuStreamDestroy_v2(stream));
  assert_cu(cu.cuStreamDestroy_v2(other));
}

static void wait_for_post(void *semaphore) { sem_wait(semaphore); }
static void post(void *semaphore) { sem_post(semaphore); }

static void a_blocked_host_function_blocks_its_stream_alone(void **state) {
  (void)state;
  CUstream blocked = fixture_stream(CU_STREAM_NON_BLOCKING), open_one = fixture_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr word = fixture_alloc(4);
  sem_t gate, seen;
  sem_init(&gate, 0, 0);
  sem_init(&seen, 0, 0);
  assert_cu(cu.cuLaunchHostFunc(blocked, wait_for_post, &gate));
  assert_cu(cu.cuMemsetD32Async(word, 1, 1, blocked));
  assert_cu(cu.cuMemsetD32Async(word, 2, 1, open_one));
  assert_cu(cu.cuStreamSynchronize(open_one));
  assert_int_equal(cu.cuStreamQuery(blocked), CUDA_ERROR_NOT_READY);
  sem_post(&gate);
  assert_cu(cu.cuLaunchHostFunc(blocked, post, &seen));
  sem_wait(&seen);
  assert_cu(cu.cuStreamSynchronize(blocked));
  assert_int_equal(fixture_word(word), 1);
  sem_destroy(&gate);
  sem_destroy(&seen);
  assert_cu(cu.cuMemFree_v2(word));
  assert_cu(cu.cuStreamDestroy_v2(blocked));
  assert_cu(cu.cuStreamDestroy_v2(open_one));
}

static void call_the_driver(void *answer) {
  int count = 0;
  *(CUresult *)answer = cu.cuDeviceGetCount(&count);
}

static void host_functions_may_not_call(void **state) {
  (void)state;
  CUresult answer = CUDA_SUCCESS;
  assert_cu(cu.cuLaunchHostFunc(NULL, call_the_driver, &answer));
  assert_cu(cu.cuCtxSynchronize());
  assert_int_equal(answer, CUDA_ERROR_NOT_PERMITTED);
}

/* A free that does not wait, work still queued: the context is broken for good, the next one is not. */
static void use_after_free_is_sticky(void **state) {
  (void)state;
  CUstream stream = fixture_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = fixture_alloc(64);
  fixture_do("set FREE nowait");
  fixture_gate("hold", stream);
  assert_cu(cu.cuMemsetD8Async(block, 1, 64, stream));
  assert_cu(cu.cuMemFree_v2(block));
  fixture_gate("release", stream);
  assert_int_equal(cu.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(cu.cuMemAlloc_v2(&block, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_cu(cu.cuDevicePrimaryCtxReset_v2(0));
  CUcontext context = NULL;
  assert_cu(cu.cuDevicePrimaryCtxRetain(&context, 0));
  assert_cu(cu.cuCtxSetCurrent(context));
  block = fixture_alloc(64);
  assert_cu(cu.cuMemFree_v2(block));
}

static void captures_record_and_forbid(void **state) {
  (void)state;
  CUstream origin = fixture_stream(CU_STREAM_NON_BLOCKING), joined = fixture_stream(CU_STREAM_NON_BLOCKING);
  CUevent fork_event = fixture_event(2), join_event = fixture_event(2);
  CUdeviceptr word = fixture_alloc(4), none = 0;
  CUstreamCaptureStatus status;
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  assert_cu(cu.cuMemsetD32_v2(word, 0, 1));
  assert_cu(cu.cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  assert_cu(cu.cuMemsetD32Async(word, 5, 1, origin));
  assert_cu(cu.cuEventRecord(fork_event, origin));
  assert_cu(cu.cuStreamWaitEvent(joined, fork_event, 0));
  assert_cu(cu.cuStreamIsCapturing(joined, &status));
  assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  assert_cu(cu.cuMemsetD32Async(word, 6, 1, joined));
  assert_cu(cu.cuEventRecord(join_event, joined));
  assert_cu(cu.cuStreamWaitEvent(origin, join_event, 0));
  assert_cu(cu.cuStreamEndCapture(origin, &graph));
  assert_int_equal(fixture_word(word), 0); /* nothing ran */
  assert_cu(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
  assert_cu(cu.cuGraphDestroy(graph));
  assert_cu(cu.cuGraphLaunch(exec, origin));
  assert_cu(cu.cuStreamSynchronize(origin));
  assert_int_equal(fixture_word(word), 6);
  assert_cu(cu.cuGraphExecDestroy(exec));

  assert_cu(cu.cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
  assert_int_equal(cu.cuMemAlloc_v2(&none, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  assert_cu(cu.cuStreamIsCapturing(origin, &status));
  assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  assert_int_equal(cu.cuStreamEndCapture(origin, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  assert_cu(cu.cuThreadExchangeStreamCaptureMode(&mode));
  assert_cu(cu.cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUdeviceptr allowed = fixture_alloc(64);
  assert_cu(cu.cuEventRecord(fork_event, origin));
  assert_int_equal(cu.cuEventQuery(fork_event), CUDA_ERROR_CAPTURED_EVENT);
  assert_int_equal(cu.cuStreamEndCapture(origin, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  assert_cu(cu.cuThreadExchangeStreamCaptureMode(&mode));
  assert_cu(cu.cuMemFree_v2(allowed));
  assert_cu(cu.cuMemFree_v2(word));
  assert_cu(cu.cuEventDestroy_v2(fork_event));
  assert_cu(cu.cuEventDestroy_v2(join_event));
  assert_cu(cu.cuStreamDestroy_v2(origin));
  assert_cu(cu.cuStreamDestroy_v2(joined));
}

static void kernels_run_by_name(void **state) {
  (void)state;
  static const char ptx[] =
      ".version 7.0\n.target sm_75\n.visible .entry sim_add_u32(.param .u64 a, .param .u64 b, .param .u32 c) {}\n";
  static const char other[] = ".version 7.0\n.target sm_75\n.entry sim_add_u32(.param .u64 a, .param .u64 b) {}\n";
  CUmodule module = NULL;
  CUfunction function = NULL;
  assert_int_equal(cu.cuModuleLoadData(&module, "nonsense"), CUDA_ERROR_INVALID_IMAGE);
  assert_cu(cu.cuModuleLoadData(&module, other));
  assert_int_equal(cu.cuModuleGetFunction(&function, module, "sim_add_u32"), CUDA_ERROR_INVALID_PTX);
  assert_cu(cu.cuModuleUnload(module));
  assert_cu(cu.cuModuleLoadData(&module, ptx));
  assert_int_equal(cu.cuModuleGetFunction(&function, module, "sim_add"), CUDA_ERROR_NOT_FOUND);
  assert_cu(cu.cuModuleGetFunction(&function, module, "sim_add_u32"));
  CUdeviceptr words = fixture_alloc(64);
  assert_cu(cu.cuMemsetD32_v2(words, 1, 16));
  uint64_t count = 16;
  unsigned value = 41;
  void *arguments[] = {&words, &count, &value};
  assert_cu(cu.cuLaunchKernel(function, 1, 1, 1, 16, 1, 1, 0, NULL, arguments, NULL));
  assert_int_equal(fixture_word(words + 60), 42);
  count = 17;
  assert_cu(cu.cuLaunchKernel(function, 1, 1, 1, 16, 1, 1, 0, NULL, arguments, NULL));
  assert_int_equal(cu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_cu(cu.cuDevicePrimaryCtxReset_v2(0));
  CUcontext context = NULL;
  assert_cu(cu.cuDevicePrimaryCtxRetain(&context, 0));
}

typedef struct worker {
  CUcontext context;
  unsigned value;
  int wrong;
} worker;

static void *worker_run(void *user) {
  worker *mine = user;
  CUstream stream = NULL;
  CUdeviceptr block = 0;
  mine->wrong = cu.cuCtxSetCurrent(mine->context) || cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  for (int round = 0; round < 50 && !mine->wrong; round++) {
    unsigned word = 0;
    mine->wrong = cu.cuMemAllocAsync(&block, 4096, stream) || cu.cuMemsetD32Async(block, mine->value, 1024, stream) ||
                  cu.cuMemcpyDtoHAsync_v2(&word, block + 4092, 4, stream) || cu.cuMemFreeAsync(block, stream) ||
                  word != mine->value;
  }
  mine->wrong = cu.cuStreamSynchronize(stream) || cu.cuStreamDestroy_v2(stream) || mine->wrong;
  return NULL;
}

static void threads_work_side_by_side(void **state) {
  (void)state;
  worker workers[4];
  pthread_t threads[4];
  CUcontext context = NULL;
  assert_cu(cu.cuCtxGetCurrent(&context));
  for (unsigned i = 0; i < 4; i++) {
    workers[i] = (worker){.context = context, .value = 100 + i};
    assert_int_equal(pthread_create(&threads[i], NULL, worker_run, &workers[i]), 0);
  }
  for (int i = 0; i < 4; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(workers[i].wrong);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_begin, fixture_end)
  const struct CMUnitTest tests[] = {
      TEST(a_forgotten_wait_corrupts),
      TEST(streams_overtake_each_other_by_chance),
      TEST(the_legacy_stream_orders_blocking_ones),
      TEST(each_thread_has_a_default_stream),
      TEST(handles_are_recycled),
      TEST(waits_hold_the_record_of_their_time),
      TEST(pinned_copies_are_late_and_pageable_ones_are_not),
      TEST(async_frees_take_effect_in_order),
      TEST(each_free_counts_by_itself),
      TEST(a_blocked_host_function_blocks_its_stream_alone),
      TEST(host_functions_may_not_call),
      TEST(use_after_free_is_sticky),
      TEST(captures_record_and_forbid),
      TEST(kernels_run_by_name),
      TEST(threads_work_side_by_side),
  };
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}
