/* torch's private pools while streams are captured: lack of memory, several captures, other hooks. */
#include <pthread.h>

#include "tests/integrations/torch_graph_scene.h"

/* ---- lack of memory ---- */

/* The capture is refused, stays whole, and comes to its end. Later there is room. */
static void test_a_capture_runs_out_of_memory(void **state) {
  (void)state;
  uint64_t free_bytes = 0, total = 0;
  CUdeviceptr out[PARTS];
  meant filter;
  assert_int_equal(gm_cards_memory(0, &free_bytes, &total), 0);
  const size_t most = (size_t)free_bytes - 64 * MIB;
  const CUdeviceptr large = torch_alloc(most, 1);
  begin(one, &filter, 0);
  capture_begin(0);
  const CUdeviceptr small = torch_alloc(BYTES, 0);
  torch_fill(small, BYTES, 9, 0);
  for (int i = 0; i < 3; i++) assert_null(gm_torch_alloc(200 * MIB, 0, torch_streams[0]));
  assert_true(is_captured(0));
  CUgraphExec run = capture_end(0);
  end(one, &filter);
  assert_cu(cu.cuGraphLaunch(run, torch_streams[0]));
  torch_sync();
  assert_int_equal(fixture_word(small), 9);
  assert_cu(cu.cuGraphExecDestroy(run));
  torch_free(small, BYTES, 0);
  gm_torch_release_pool(0, one);
  torch_free(large, most, 1);
  run = capture(one, out);
  replay(run, out);
  assert_cu(cu.cuGraphExecDestroy(run));
  free_outputs(out);
  gm_torch_release_pool(0, one);
}

/* Memory that the card's pool keeps for reuse makes room for a graph, during the capture, too. */
static void test_idle_memory_of_the_card_serves_a_capture(void **state) {
  (void)state;
  uint64_t free_bytes = 0, total = 0;
  meant filter;
  assert_int_equal(gm_cards_memory(0, &free_bytes, &total), 0);
  const size_t most = (size_t)free_bytes - 64 * MIB;
  torch_free(torch_alloc(most, 1), most, 1);
  torch_sync();
  begin(one, &filter, 0);
  capture_begin(0);
  const CUdeviceptr block = torch_alloc(200 * MIB, 0);
  assert_true(is_captured(0));
  CUgraphExec run = capture_end(0);
  end(one, &filter);
  torch_free(block, 200 * MIB, 0);
  assert_cu(cu.cuGraphExecDestroy(run));
  gm_torch_release_pool(0, one);
}

/* The driver itself refuses, once and then for good; gm asks no more of it than it may. */
static void test_the_driver_fails_in_a_capture(void **state) {
  (void)state;
  CUdeviceptr out[PARTS];
  meant filter;
  static const char *const scripts[] = {"fail cuMemAlloc:1:2", "fail cuMemAlloc:*:2", "fail cuMemAlloc:*:999"};
  for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
    begin(one, &filter, 0);
    capture_begin(0);
    fixture_do(scripts[i]);
    void *pointer = gm_torch_alloc(BYTES, 0, torch_streams[0]);
    fixture_do("fail");
    assert_true(is_captured(0));
    const CUdeviceptr block = torch_alloc(BYTES, 0);
    CUgraphExec run = capture_end(0);
    end(one, &filter);
    gm_torch_free(pointer, BYTES, 0, torch_streams[0]);
    torch_free(block, BYTES, 0);
    assert_cu(cu.cuGraphExecDestroy(run));
    gm_torch_release_pool(0, one);
  }
  CUgraphExec run = capture(one, out);
  replay(run, out);
  assert_cu(cu.cuGraphExecDestroy(run));
  free_outputs(out);
  gm_torch_release_pool(0, one);
}

/* torch bounds the process: a graph takes no memory while the process holds more than that share. */
static void test_a_fraction_bounds_graphs(void **state) {
  (void)state;
  uint64_t free_bytes = 0, total = 0;
  meant filter;
  assert_int_equal(gm_cards_memory(0, &free_bytes, &total), 0);
  gm_torch_memory_fraction(0.25, 0);
  const size_t share = (size_t)total / 4;
  const CUdeviceptr block = torch_alloc(share / 2, 1);
  begin(one, &filter, 0);
  capture_begin(0);
  assert_null(gm_torch_alloc((ptrdiff_t)(share / 2 + 32 * MIB), 0, torch_streams[0]));
  const CUdeviceptr fits = torch_alloc(share / 4, 0);
  assert_true(is_captured(0));
  assert_cu(cu.cuGraphExecDestroy(capture_end(0)));
  end(one, &filter);
  torch_free(fits, share / 4, 0);
  torch_free(block, share / 2, 1);
  gm_torch_release_pool(0, one);
  gm_torch_memory_fraction(1, 0);
}

/* ---- several captures, other threads ---- */

typedef struct capturer {
  pthread_barrier_t *both;
  gm_torch_pool_id id;
  int stream;
  CUdeviceptr blocks[PARTS];
  CUgraphExec run;
} capturer;

static void *capture_in_thread(void *user) {
  capturer *self = user;
  CUcontext context = NULL;
  CUgraph graph = NULL;
  meant filter;
  assert_cu(cu.cuDevicePrimaryCtxRetain(&context, 0));
  assert_cu(cu.cuCtxSetCurrent(context));
  begin(self->id, &filter, self->stream);
  assert_cu(cu.cuStreamBeginCapture_v2(torch_streams[self->stream], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  pthread_barrier_wait(self->both);
  for (unsigned i = 0; i < PARTS; i++) {
    self->blocks[i] = torch_alloc(BYTES, self->stream);
    torch_fill(self->blocks[i], BYTES, (unsigned)self->id.first * 10 + i, self->stream);
  }
  assert_cu(cu.cuStreamEndCapture(torch_streams[self->stream], &graph));
  assert_cu(cu.cuGraphInstantiateWithFlags(&self->run, graph, 0));
  assert_cu(cu.cuGraphDestroy(graph));
  end(self->id, &filter);
  assert_cu(cu.cuDevicePrimaryCtxRelease_v2(0));
  return NULL;
}

static void test_two_threads_capture_at_once(void **state) {
  (void)state;
  pthread_barrier_t both;
  pthread_t threads[2];
  capturer captures[2] = {{&both, {1, 0}, 0, {0}, NULL}, {&both, {2, 0}, 1, {0}, NULL}};
  const long long before = held();
  pthread_barrier_init(&both, NULL, 2);
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, capture_in_thread, &captures[i]), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < 2; i++) assert_cu(cu.cuGraphLaunch(captures[i].run, torch_streams[1 - i]));
  torch_sync();
  for (unsigned i = 0; i < 2 * PARTS; i++) {
    const capturer *it = &captures[i / PARTS];
    assert_int_equal(fixture_word(it->blocks[i % PARTS]), it->id.first * 10 + i % PARTS);
    torch_free(it->blocks[i % PARTS], BYTES, it->stream);
  }
  for (int i = 0; i < 2; i++) assert_cu(cu.cuGraphExecDestroy(captures[i].run));
  gm_torch_release_pool(0, captures[0].id);
  gm_torch_release_pool(0, captures[1].id);
  assert_int_equal(held(), before);
  pthread_barrier_destroy(&both);
}

/* torch warms up in a graph's pool before it captures. Memory that the warm-up has freed serves the capture. */
static void test_a_warm_up_in_the_pool_serves_the_capture(void **state) {
  (void)state;
  meant filter;
  begin(one, &filter, 0);
  const CUdeviceptr warm = torch_alloc(BYTES, 0);
  torch_fill(warm, BYTES, 1, 0);
  torch_free(warm, BYTES, 0);
  end(one, &filter);
  const long long then = held();
  begin(one, &filter, 0);
  capture_begin(0);
  const CUdeviceptr block = torch_alloc(BYTES, 0);
  assert_true(block == warm);
  assert_int_equal(held(), then);
  assert_cu(cu.cuGraphExecDestroy(capture_end(0)));
  end(one, &filter);
  torch_free(block, BYTES, 0);
  gm_torch_release_pool(0, one);
  gm_torch_release_pool(0, one);
}

/* An output is read by another stream when it is freed. The next graph of the pool does not write it meanwhile. */
static void test_a_recorded_use_keeps_an_output(void **state) {
  (void)state;
  CUdeviceptr first[PARTS], second[PARTS];
  unsigned *seen = NULL;
  assert_cu(cu.cuMemHostAlloc((void **)&seen, sizeof *seen, 0));
  CUgraphExec run = capture(one, first);
  replay(run, first);
  fixture_gate("hold", torch_streams[1]);
  assert_cu(cu.cuMemcpyDtoHAsync_v2(seen, first[0], sizeof *seen, torch_streams[1]));
  gm_torch_record_stream(torch_pointer(first[0] + 4096), torch_streams[1]);
  torch_free(first[0], BYTES, 0);
  CUgraphExec next = capture(one, second);
  for (unsigned i = 0; i < PARTS; i++) assert_true(second[i] != first[0]);
  assert_cu(cu.cuGraphLaunch(next, torch_streams[0]));
  fixture_gate("release", torch_streams[1]);
  torch_sync();
  assert_int_equal(*seen, 100);
  assert_cu(cu.cuGraphExecDestroy(run));
  assert_cu(cu.cuGraphExecDestroy(next));
  for (unsigned i = 2; i < PARTS; i += 2) torch_free(first[i], BYTES, 0);
  free_outputs(second);
  gm_torch_release_pool(0, one);
  gm_torch_release_pool(0, one);
  assert_cu(cu.cuMemFreeHost(seen));
}

/* torch's own cache takes segments of gm (MemPool). It names no pool to gm when it captures. */
static void test_a_segment_for_a_capture_that_names_no_pool(void **state) {
  (void)state;
  const long long before = held();
  capture_begin(0);
  const CUdeviceptr segment = torch_alloc(2 * MIB, 0);
  torch_fill(segment, 2 * MIB, 5, 0);
  assert_true(is_captured(0));
  CUgraphExec run = capture_end(0);
  gm_torch_reset();
  for (int i = 0; i < 20; i++) {
    const CUdeviceptr beside = torch_alloc(2 * MIB, i % TORCH_STREAMS);
    assert_true(beside + 2 * MIB <= segment || segment + 2 * MIB <= beside);
    torch_free(beside, 2 * MIB, i % TORCH_STREAMS);
  }
  assert_cu(cu.cuGraphLaunch(run, torch_streams[1]));
  torch_sync();
  assert_int_equal(fixture_word(segment), 5);
  assert_cu(cu.cuGraphExecDestroy(run));
  torch_free(segment, 2 * MIB, 0);
  gm_torch_reset();
  assert_int_equal(held(), before);
}

/* empty_cache, frees and questions of other streams, while one is captured in the strictest mode. */
static void test_other_hooks_leave_a_capture_alone(void **state) {
  (void)state;
  size_t bytes = 0;
  const CUdeviceptr idle = torch_alloc(32 * MIB, 1), live = torch_alloc(BYTES, 1);
  meant filter;
  begin(one, &filter, 0);
  capture_begin(0);
  const CUdeviceptr block = torch_alloc(BYTES, 0);
  torch_free(idle, 32 * MIB, 1);
  gm_torch_reset();
  gm_torch_record_stream(torch_pointer(live), torch_streams[0]);
  gm_torch_record_stream(torch_pointer(block), torch_streams[1]);
  assert_non_null(gm_torch_base_alloc(torch_pointer(block), &bytes));
  gm_torch_memory_fraction(0.5, 0);
  gm_torch_memory_fraction(1, 0);
  assert_true(is_captured(0));
  assert_cu(cu.cuGraphExecDestroy(capture_end(0)));
  end(one, &filter);
  torch_free(live, BYTES, 1);
  torch_free(block, BYTES, 0);
  gm_torch_release_pool(0, one);
}

int main(void) {
#define SCENE(name) cmocka_unit_test_setup_teardown(name, torch_scene_begin, torch_scene_end)
  const struct CMUnitTest tests[] = {
      SCENE(test_a_capture_runs_out_of_memory),      SCENE(test_idle_memory_of_the_card_serves_a_capture),
      SCENE(test_the_driver_fails_in_a_capture),     SCENE(test_a_fraction_bounds_graphs),
      SCENE(test_two_threads_capture_at_once),       SCENE(test_a_warm_up_in_the_pool_serves_the_capture),
      SCENE(test_a_recorded_use_keeps_an_output),    SCENE(test_a_segment_for_a_capture_that_names_no_pool),
      SCENE(test_other_hooks_leave_a_capture_alone),
  };
#undef SCENE
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}
