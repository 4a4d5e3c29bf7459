/* torch's CUDA graphs through the functions for cards: what a graph uses is handed to nobody else while it may run. */
#include "tests/integrations/torch_scene.h"

enum { BYTES = 256 << 10, PARTS = 6 };

static const gm_torch_pool_id graph_id = {1, 0};

/* Captures: fills blocks one after the other, each freed before the next one comes, as temporaries are. */
static CUgraphExec capture(CUdeviceptr out[PARTS]) {
  CUgraph graph = NULL;
  CUgraphExec run = NULL;
  gm_torch_begin_allocate_to_pool(0, graph_id, NULL);
  assert_cu(cu.cuStreamBeginCapture_v2(torch_streams[0], 1 /* thread local */));
  for (unsigned i = 0; i < PARTS; i++) {
    out[i] = torch_alloc(BYTES, 0);
    torch_fill(out[i], BYTES, 100 + i, 0);
    if (i % 2) torch_free(out[i], BYTES, 0);
  }
  assert_cu(cu.cuStreamEndCapture(torch_streams[0], &graph));
  gm_torch_end_allocate_to_pool(0, graph_id);
  assert_cu(cu.cuGraphInstantiateWithFlags(&run, graph, 0));
  assert_cu(cu.cuGraphDestroy(graph));
  return run;
}

/* Blocks outside of the graph, made and filled while it runs, keep what they have. */
static void work_beside(CUgraphExec run, unsigned round) {
  CUdeviceptr blocks[PARTS * 2];
  for (unsigned i = 0; i < PARTS * 2; i++) {
    blocks[i] = torch_alloc(BYTES, i % TORCH_STREAMS);
    torch_fill(blocks[i], BYTES, 1000 * round + i, i % TORCH_STREAMS);
  }
  assert_cu(cu.cuGraphLaunch(run, torch_streams[0]));
  torch_sync();
  for (unsigned i = 0; i < PARTS * 2; i++) {
    assert_int_equal(fixture_word(blocks[i]), 1000 * round + i);
    assert_int_equal(fixture_word(blocks[i] + BYTES - 4), 1000 * round + i);
    torch_free(blocks[i], BYTES, i % TORCH_STREAMS);
  }
}

static void test_a_graph_keeps_its_memory(void **state) {
  (void)state;
  CUdeviceptr parts[PARTS];
  const CUdeviceptr warm = torch_alloc(BYTES * PARTS, 0); /* torch warms up before it captures */
  torch_free(warm, BYTES * PARTS, 0);
  torch_sync();
  CUgraphExec run = capture(parts);
  for (unsigned round = 1; round <= 20; round++) {
    work_beside(run, round);
    for (unsigned i = 0; i < PARTS; i += 2) assert_int_equal(fixture_word(parts[i]), 100 + i);
  }
  assert_cu(cu.cuGraphExecDestroy(run));
  for (unsigned i = 0; i < PARTS; i += 2) torch_free(parts[i], BYTES, 0);
  gm_torch_release_pool(0, graph_id);
  assert_int_equal(gm_cards_figure(0, "active"), 0);
}

/* torch lets go of a graph while its outputs live: the pool goes with the last of them. */
static void test_outputs_outlive_their_graph(void **state) {
  (void)state;
  CUdeviceptr parts[PARTS];
  const CUdeviceptr warm = torch_alloc(BYTES * PARTS, 0);
  torch_free(warm, BYTES * PARTS, 0);
  torch_sync();
  CUgraphExec run = capture(parts);
  assert_cu(cu.cuGraphLaunch(run, torch_streams[0]));
  torch_sync();
  assert_cu(cu.cuGraphExecDestroy(run));
  gm_torch_release_pool(0, graph_id);
  gm_torch_release_pool(0, graph_id); /* once too often */
  for (unsigned i = 0; i < PARTS; i += 2) {
    assert_int_equal(fixture_word(parts[i]), 100 + i);
    torch_free(parts[i], BYTES, 0);
  }
  torch_free(parts[0], BYTES, 0); /* twice */
}

/* Two captures into one pool, as torch does for graphs that share memory. */
static void test_two_graphs_share_a_pool(void **state) {
  (void)state;
  CUdeviceptr first[PARTS], second[PARTS];
  const CUdeviceptr warm = torch_alloc(4 * BYTES * PARTS, 0);
  torch_free(warm, 4 * BYTES * PARTS, 0);
  torch_sync();
  CUgraphExec one = capture(first), other = capture(second);
  for (unsigned i = 0; i < PARTS; i += 2)
    for (unsigned k = 0; k < PARTS; k += 2) assert_true(first[i] != second[k]);
  assert_cu(cu.cuGraphLaunch(one, torch_streams[0]));
  assert_cu(cu.cuGraphLaunch(other, torch_streams[0]));
  work_beside(one, 3);
  assert_cu(cu.cuGraphExecDestroy(one));
  assert_cu(cu.cuGraphExecDestroy(other));
  for (unsigned i = 0; i < PARTS; i += 2) torch_free(first[i], BYTES, 0), torch_free(second[i], BYTES, 0);
  gm_torch_release_pool(0, graph_id);
  gm_torch_release_pool(0, graph_id);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_a_graph_keeps_its_memory, torch_scene_begin, torch_scene_end),
      cmocka_unit_test_setup_teardown(test_outputs_outlive_their_graph, torch_scene_begin, torch_scene_end),
      cmocka_unit_test_setup_teardown(test_two_graphs_share_a_pool, torch_scene_begin, torch_scene_end),
  };
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}
