/* The link model of the simulated CUDA driver: virtual time, engines and the journal. */
#include <pthread.h>
#include <stdbool.h>

#include "tests/simulated/sim_link_fixture.h"

static void copies_take_their_time_on_their_engine(void **state) {
  (void)state;
  link_on("h2d:1000:5,d2h:1000:5,d2d:10000:1");
  up(0, 0, MB / 2);
  up(1, 1, MB / 2);
  down(2, 2, MB);
  assert_int_equal(now(), 0); /* calls take no time */
  take();
  assert_int_equal(now(), MB + 2 * 5000);
  assert_int_equal(link_makespan(&journal), MB + 2 * 5000);
  assert_int_equal(link_overlap(&journal, GM__LINK_H2D, GM__LINK_H2D), 0);
  assert_int_equal(link_overlap(&journal, GM__LINK_H2D, GM__LINK_D2H), MB + 5000);
  assert_cu(cu.cuMemcpyDtoDAsync_v2(blocks[0], blocks[1], MB, streams[0]));
  assert_cu(cu.cuMemsetD8Async(blocks[2], 3, MB, streams[1]));
  take();
  assert_int_equal(link_busy(&journal, GM__LINK_D2D), 2 * (MB / 10 + 1000));
  assert_int_equal(link_bytes(&journal, GM__LINK_H2D), MB);
  assert_int_equal(link_bytes(&journal, GM__LINK_D2D), 2 * MB);
}

static void half_duplex_serialises(void **state) {
  (void)state;
  link_on("h2d:1000,d2h:1000,engines:1");
  up(0, 0, MB);
  down(1, 1, MB);
  take();
  assert_int_equal(link_makespan(&journal), 2 * MB);
}

static void strided_copies_take_the_time_of_their_bytes(void **state) {
  (void)state;
  link_on("h2d:1000:5");
  const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                              .srcHost = ins[0],
                              .srcPitch = 100,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = blocks[0],
                              .dstPitch = 200,
                              .WidthInBytes = 50,
                              .Height = 1000};
  assert_cu(cu.cuMemcpy2DAsync_v2(&copy, streams[0]));
  take();
  assert_int_equal(link_busy(&journal, GM__LINK_H2D), 50000 + 5000);
  assert_int_equal(link_bytes(&journal, GM__LINK_H2D), 50000);
}

static void peers_have_links_of_their_own(void **state) {
  (void)state;
  CUcontext other = NULL, own = NULL;
  CUdeviceptr there = 0;
  assert_cu(cu.cuCtxGetCurrent(&own));
  assert_cu(cu.cuDevicePrimaryCtxRetain(&other, 1));
  assert_cu(cu.cuCtxSetCurrent(other));
  there = fixture_alloc(MB);
  assert_cu(cu.cuCtxSetCurrent(own));
  link_on("h2d:1000,d2h:1000,peer:0-1:4000:5");
  assert_cu(cu.cuMemcpyPeerAsync(there, other, blocks[0], own, MB, streams[0]));
  up(1, 0, MB);
  take();
  assert_int_equal(link_busy(&journal, GM__LINK_PEER), MB / 4 + 5000);
  assert_int_equal(link_overlap(&journal, GM__LINK_PEER, GM__LINK_H2D), MB / 4 + 5000);
  assert_cu(cu.cuMemFree_v2(there));
  assert_cu(cu.cuDevicePrimaryCtxRelease_v2(1));
}

/* A copy from or to pageable memory has ended when its call ends: nothing that the host submits later runs beside it.
 */
static void pageable_copies_do_not_overlap(void **state) {
  (void)state;
  static unsigned char pageable[MB];
  link_on("h2d:1000,d2h:1000,pageable:500");
  memset(pageable, 7, MB);
  assert_cu(cu.cuMemcpyHtoDAsync_v2(blocks[0], pageable, MB, streams[0]));
  assert_int_equal(now(), 2 * MB);
  down(1, 1, MB);
  assert_cu(cu.cuMemcpyDtoHAsync_v2(pageable, blocks[0], MB, streams[2]));
  assert_int_equal(now(), 5 * MB); /* one engine for both ways down */
  take();
  assert_int_equal(link_overlap(&journal, GM__LINK_H2D, GM__LINK_D2H), 0);
  assert_true(journal.lines[0].pageable);
}

static void kernels_cost_what_their_name_says(void **state) {
  (void)state;
  link_on("kernel:sim_add_u32:400,kernel:*:1");
  step(0, 0, 16);
  step(1, 1, 16);
  take();
  assert_int_equal(link_count(&journal, GM__LINK_COMPUTE), 2);
  assert_int_equal(link_makespan(&journal), 800000);
}

static void host_called(void *user) { *(uint64_t *)user += 1; }

static void events_order_streams_and_tell_virtual_time(void **state) {
  (void)state;
  uint64_t called = 0;
  CUevent first = fixture_event(0), second = fixture_event(0);
  link_on("h2d:1000,d2h:1000,kernel:host_function:100,poll:10");
  up(0, 0, MB);
  assert_cu(cu.cuEventRecord(first, streams[0]));
  assert_cu(cu.cuStreamWaitEvent(streams[1], first, 0));
  down(1, 1, MB);
  assert_cu(cu.cuLaunchHostFunc(streams[1], host_called, &called));
  assert_cu(cu.cuEventRecord(second, streams[1]));
  assert_int_equal(cu.cuEventQuery(first), CUDA_ERROR_NOT_READY);
  assert_int_equal(now(), 10);
  assert_cu(cu.cuEventSynchronize(first));
  assert_int_equal(now(), MB);
  assert_int_equal(cu.cuStreamQuery(streams[1]), CUDA_ERROR_NOT_READY);
  fixture_do("advance 1");
  assert_int_equal(now(), MB + 11);
  assert_int_equal(called, 0);
  assert_cu(cu.cuEventSynchronize(second));
  assert_int_equal(called, 1);
  float ms = 0;
  assert_cu(cu.cuEventElapsedTime(&ms, first, second));
  assert_true(ms > 1.0999f && ms < 1.1001f);
  assert_cu(cu.cuEventDestroy_v2(first));
  assert_cu(cu.cuEventDestroy_v2(second));
}

/* --- pipelines --- */

typedef struct pipeline {
  int steps, depth;
  bool waits, one_stream, legacy;
} pipeline;

static void pipeline_run(const pipeline *p) {
  const CUstream own = streams[0];
  const int step_stream = p->one_stream ? 0 : 1, down_stream = p->one_stream ? 0 : 2;
  CUevent downs[SLOTS];
  if (p->legacy) streams[0] = NULL;
  for (int i = 0; i < SLOTS; i++) downs[i] = fixture_event(CU_EVENT_DISABLE_TIMING);
  for (int i = 0; i < p->steps; i++) {
    const int slot = i % p->depth;
    assert_cu(cu.cuStreamWaitEvent(streams[0], downs[slot], 0));
    up(0, slot, MB / 2);
    if (p->waits) sync(0);
    pass(0, step_stream);
    step(step_stream, slot, 1);
    pass(step_stream, down_stream);
    down(down_stream, slot, MB / 2);
    assert_cu(cu.cuEventRecord(downs[slot], streams[down_stream]));
    if (p->waits) sync(down_stream);
  }
  take();
  for (int i = 0; i < SLOTS; i++) assert_cu(cu.cuEventDestroy_v2(downs[i]));
  streams[0] = own;
}

static const gm__link_kind stages[] = {GM__LINK_H2D, GM__LINK_COMPUTE, GM__LINK_D2H};
static const char *const stage_times = "h2d:500,d2h:500,kernel:sim_add_u32:800";

/* N * 1000 µs + 1000 + 800, within a hundredth. */
static void a_pipeline_takes_its_longest_stage_each_step(void **state) {
  (void)state;
  link_on(stage_times);
  pipeline_run(&(pipeline){.steps = 100, .depth = 3});
  assert_in_range(link_makespan(&journal), 101800 * UINT64_C(990), 101800 * UINT64_C(1010));
  assert_true(link_overlap_share(&journal, stages, 3) >= 0.97);
  assert_int_equal(fixture_number("get early"), 0);
  assert_int_equal(outs[0][0], 2); /* 1 came up, and the kernel added 1 */
  assert_int_equal(outs[1][1], 1);
}

static void programs_that_cannot_overlap_show_none(void **state) {
  (void)state;
  static const pipeline serial[] = {{.steps = 50, .depth = 3, .waits = true},
                                    {.steps = 50, .depth = 3, .one_stream = true},
                                    {.steps = 50, .depth = 3, .one_stream = true, .legacy = true},
                                    {.steps = 50, .depth = 1}};
  for (size_t i = 0; i < sizeof serial / sizeof serial[0]; i++) {
    link_on(stage_times);
    pipeline_run(&serial[i]);
    assert_int_equal(link_makespan(&journal), UINT64_C(50) * 2800 * 1000);
    assert_true(link_overlap_share(&journal, stages, 3) == 0);
  }
}

/* The legacy default stream waits for blocking streams, and they for it. */
static void the_legacy_stream_overlaps_with_no_blocking_one(void **state) {
  (void)state;
  CUstream blocking = fixture_stream(CU_STREAM_DEFAULT);
  link_on("h2d:1000,d2h:1000");
  assert_cu(cu.cuMemcpyHtoDAsync_v2(blocks[0], ins[0], MB, blocking));
  assert_cu(cu.cuMemcpyDtoHAsync_v2(outs[1], blocks[1], MB, NULL));
  assert_cu(cu.cuMemcpyHtoDAsync_v2(blocks[0], ins[0], MB, blocking));
  assert_cu(cu.cuCtxSynchronize());
  take();
  assert_int_equal(link_makespan(&journal), 3 * MB);
  assert_cu(cu.cuStreamDestroy_v2(blocking));
}

static void the_same_program_gives_the_same_journal(void **state) {
  (void)state;
  static gm__link_entry first[LINK_JOURNAL_LINES];
  for (int round = 0; round < 2; round++) {
    link_on("h2d:500:3,d2h:300:2,kernel:sim_add_u32:800,jitter:50,seed:5");
    pipeline_run(&(pipeline){.steps = 30, .depth = 3});
    if (!round) memcpy(first, journal.lines, journal.count * sizeof *first);
  }
  assert_true(journal.count > 90);
  for (size_t i = 0; i < journal.count; i++) {
    assert_int_equal(journal.lines[i].start, first[i].start);
    assert_int_equal(journal.lines[i].end, first[i].end);
    assert_int_equal(journal.lines[i].bytes, first[i].bytes);
  }
}

static void held_streams_stand_still_in_virtual_time(void **state) {
  (void)state;
  link_on("h2d:1000,d2h:1000");
  fixture_gate("hold", streams[0]);
  up(0, 0, MB);
  up(0, 0, MB);
  down(1, 1, MB);
  sync(1);
  assert_int_equal(cu.cuStreamQuery(streams[0]), CUDA_ERROR_NOT_READY);
  fixture_do("step");
  fixture_do("advance 5000000");
  link_journal_take(&journal, journal_copy);
  assert_int_equal(link_count(&journal, GM__LINK_H2D), 1);
  fixture_gate("release", streams[0]);
  take();
  assert_int_equal(link_count(&journal, GM__LINK_H2D), 2);
}

static void a_graph_takes_the_time_of_its_work(void **state) {
  (void)state;
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  link_on("h2d:1000,kernel:sim_add_u32:5");
  assert_cu(cu.cuStreamBeginCapture_v2(streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
  up(0, 0, MB);
  step(0, 0, 1);
  assert_cu(cu.cuStreamEndCapture(streams[0], &graph));
  assert_cu(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
  assert_cu(cu.cuGraphLaunch(exec, streams[1]));
  assert_cu(cu.cuGraphLaunch(exec, streams[1]));
  take();
  assert_int_equal(link_makespan(&journal), 2 * (MB + 5000));
  assert_cu(cu.cuGraphExecDestroy(exec));
  assert_cu(cu.cuGraphDestroy(graph));
}

/* It goes on only with nothing pending, and off at any time: the workers do what is left. */
static void the_model_comes_and_goes(void **state) {
  (void)state;
  assert_int_equal(cu.control("advance 5", NULL, 0), 1);
  assert_int_equal(cu.control("use 5 5 read", NULL, 0), 1);
  assert_int_equal(journal_copy(NULL, 0), 0);
  assert_int_equal(cu.control("set LINK colour:5", NULL, 0), 1);
  fixture_gate("hold", streams[0]);
  up(0, 0, MB);
  assert_int_equal(cu.control("set LINK h2d:1000", NULL, 0), 1);
  fixture_gate("release", streams[0]);
  sync(0);
  link_on("h2d:1000,d2h:1000");
  assert_int_equal(now(), 0);
  assert_int_equal(cu.control("use 5 5 look", NULL, 0), 1);
  up(0, 0, MB);
  down(0, 0, MB);
  assert_int_equal(cu.control("set LINK h2d:1", NULL, 0), 1);
  fixture_do("advance 10");
  link_on("off");
  sync(0);
  assert_int_equal(outs[0][MB - 1], 1);
  link_on("h2d:1000");
  up(0, 0, MB);
  fixture_do("reload");
  sync(0);
  assert_int_equal(journal_copy(NULL, 0), 0);
}

/* Threads share the clock: whoever waits does the work of both, and nobody waits for ever. */
static void *copy_and_wait(void *context) {
  void *host = NULL;
  CUdeviceptr block = 0;
  CUresult result = cu.cuCtxSetCurrent(context);
  CUstream stream = NULL;
  if (!result) result = cu.cuMemHostAlloc(&host, 1000, 0);
  if (!result) result = cu.cuMemAlloc_v2(&block, 1000);
  if (!result) result = cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  for (int i = 0; i < 100 && !result; i++) {
    result = cu.cuMemcpyHtoDAsync_v2(block, host, 1000, stream);
    if (!result) result = cu.cuStreamSynchronize(stream);
  }
  if (!result) result = cu.cuStreamDestroy_v2(stream);
  if (!result) result = cu.cuMemFree_v2(block);
  if (!result) result = cu.cuMemFreeHost(host);
  return result ? NULL : context;
}

static void threads_share_the_clock(void **state) {
  (void)state;
  enum { THREADS = 3 };
  pthread_t threads[THREADS];
  CUcontext context = NULL;
  assert_cu(cu.cuCtxGetCurrent(&context));
  link_on("h2d:1000");
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, copy_and_wait, context), 0);
  for (int i = 0; i < THREADS; i++) {
    void *done = NULL;
    assert_int_equal(pthread_join(threads[i], &done), 0);
    assert_ptr_equal(done, context);
  }
  take();
  assert_int_equal(link_count(&journal, GM__LINK_H2D), 100 * THREADS);
  assert_int_equal(link_busy(&journal, GM__LINK_H2D), UINT64_C(100000) * THREADS);
  assert_int_equal(link_overlap(&journal, GM__LINK_H2D, GM__LINK_H2D), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      LINK_TEST(copies_take_their_time_on_their_engine),
      LINK_TEST(half_duplex_serialises),
      LINK_TEST(strided_copies_take_the_time_of_their_bytes),
      LINK_TEST(peers_have_links_of_their_own),
      LINK_TEST(pageable_copies_do_not_overlap),
      LINK_TEST(kernels_cost_what_their_name_says),
      LINK_TEST(events_order_streams_and_tell_virtual_time),
      LINK_TEST(a_pipeline_takes_its_longest_stage_each_step),
      LINK_TEST(programs_that_cannot_overlap_show_none),
      LINK_TEST(the_legacy_stream_overlaps_with_no_blocking_one),
      LINK_TEST(the_same_program_gives_the_same_journal),
      LINK_TEST(held_streams_stand_still_in_virtual_time),
      LINK_TEST(a_graph_takes_the_time_of_its_work),
      LINK_TEST(threads_share_the_clock),
      LINK_TEST(the_model_comes_and_goes),
  };
  return cmocka_run_group_tests(tests, load, NULL);
}
