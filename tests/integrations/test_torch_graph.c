/* torch's private pools through the functions for cards: giving back, wrong order, wrong ids. The memory that a graph
 * holds while other work goes on is played by torch_play.c. */
#include "tests/integrations/torch_graph_scene.h"

static const gm_torch_pool_id other = {0, 2};

/* ---- giving back ---- */

static void test_release_gives_the_memory_back(void **state) {
  (void)state;
  CUdeviceptr out[PARTS];
  const long long before = held();
  CUgraphExec run = capture(one, out);
  assert_true(held() > before);
  replay(run, out);
  free_outputs(out);
  gm_torch_reset(); /* the graph is there: nothing of it goes */
  assert_true(held() > before);
  torch_fill(out[1], BYTES, 7, 1); /* memory that was freed in the capture is there, too */
  torch_sync();
  assert_cu(cu.cuGraphExecDestroy(run));
  gm_torch_release_pool(0, one);
  assert_int_equal(held(), before);
}

static void test_outputs_outlive_their_graph(void **state) {
  (void)state;
  CUdeviceptr out[PARTS];
  const long long before = held();
  CUgraphExec run = capture(one, out);
  replay(run, out);
  assert_cu(cu.cuGraphExecDestroy(run));
  gm_torch_release_pool(0, one);
  gm_torch_release_pool(0, one); /* once too often */
  gm_torch_reset();
  for (unsigned i = 0; i < PARTS; i += 2) assert_int_equal(fixture_word(out[i]), 100 + i);
  assert_true(held() > before);
  free_outputs(out);
  assert_int_equal(held(), before);
  torch_free(out[0], BYTES, 0); /* twice */
  assert_int_equal(held(), before);
}

/* There are as many begins as releases: the first release takes nothing from the other graph. */
static void test_two_graphs_share_a_pool(void **state) {
  (void)state;
  CUdeviceptr first[PARTS], second[PARTS];
  const long long before = held();
  CUgraphExec run = capture(one, first), next = capture(one, second);
  for (unsigned i = 0; i < PARTS; i += 2)
    for (unsigned k = 0; k < PARTS; k += 2) assert_true(first[i] != second[k]);
  for (int round = 0; round < 20; round++) {
    replay(run, first);
    replay(next, second);
  }
  assert_cu(cu.cuGraphExecDestroy(run));
  gm_torch_release_pool(0, one);
  free_outputs(first);
  gm_torch_reset();
  replay(next, second);
  assert_cu(cu.cuGraphExecDestroy(next));
  free_outputs(second);
  assert_true(held() > before);
  gm_torch_release_pool(0, one);
  assert_int_equal(held(), before);
}

/* More pools than a table would have. */
static void test_hundreds_of_pools(void **state) {
  (void)state;
  enum { MANY = 300 };
  CUdeviceptr blocks[MANY];
  const long long before = held();
  for (unsigned i = 0; i < MANY; i++) {
    const gm_torch_pool_id id = {i + 1, 0};
    gm_torch_pool_begin(0, id, NULL);
    blocks[i] = torch_alloc(1000, 0);
    gm_torch_end_allocate_to_pool(0, id);
  }
  for (unsigned i = 0; i < MANY; i++) gm_torch_release_pool(0, (gm_torch_pool_id){MANY - i, 0});
  for (unsigned i = 0; i < MANY; i++) torch_free(blocks[i], 1000, 0);
  assert_int_equal(held(), before);
}

/* ---- wrong order, wrong ids ---- */

static void test_nested_and_interleaved_pools(void **state) {
  (void)state;
  meant outer, inner;
  const long long before = held();
  for (int nested = 0; nested < 2; nested++) {
    begin(one, &outer, 0);
    begin(other, &inner, 1);
    const CUdeviceptr first = torch_alloc(BYTES, 0), second = torch_alloc(BYTES, 1);
    assert_int_equal(gm_cards_figure(0, "allocs"), 0);
    assert_true(outer.asked > 0 && inner.asked > 0);
    end(nested ? other : one, nested ? &inner : &outer);
    const meant *left = nested ? &outer : &inner;
    const int asked = left->asked;
    const CUdeviceptr third = torch_alloc(BYTES, nested ? 0 : 1);
    assert_int_equal(left->asked, asked + 1);
    end(nested ? one : other, left);
    torch_free(first, BYTES, 0), torch_free(second, BYTES, 1), torch_free(third, BYTES, nested ? 0 : 1);
    gm_torch_release_pool(0, nested ? one : other);
    gm_torch_release_pool(0, nested ? other : one);
    assert_int_equal(held(), before);
  }
}

/* Both want it: the one that was begun first serves, as in torch. */
static void test_the_pool_that_was_begun_first_serves(void **state) {
  (void)state;
  meant older, newer;
  begin(other, &newer, 0);
  end(other, &newer);
  begin(one, &older, 0);
  begin(other, &newer, 0);
  const CUdeviceptr block = torch_alloc(BYTES, 0);
  end(other, &newer);
  gm_torch_release_pool(0, other);
  gm_torch_release_pool(0, other); /* its memory would be gone */
  torch_fill(block, BYTES, 1, 0);
  torch_sync();
  end(one, &older);
  torch_free(block, BYTES, 0);
  gm_torch_release_pool(0, one);
}

/* A pool that is begun again goes on with the newer filter, and ends with one end. */
static void test_a_pool_is_begun_twice(void **state) {
  (void)state;
  meant older, newer;
  const long long before = held();
  begin(one, &older, 0);
  begin(one, &newer, 1);
  assert_int_equal(older.dropped, 1);
  const CUdeviceptr block = torch_alloc(BYTES, 1);
  assert_int_equal(newer.asked, 1);
  end(one, &newer);
  gm_torch_end_allocate_to_pool(0, one);
  assert_int_equal(newer.dropped, 1);
  torch_free(block, BYTES, 1);
  gm_torch_release_pool(0, one);
  assert_true(held() > before);
  gm_torch_release_pool(0, one);
  assert_int_equal(held(), before);
}

/* The last release also ends what was begun. During a capture the memory stays until a later call. */
static void test_release_comes_before_the_end(void **state) {
  (void)state;
  meant filter;
  const long long before = held();
  begin(one, &filter, 0);
  capture_begin(0);
  const CUdeviceptr block = torch_alloc(BYTES, 0);
  torch_fill(block, BYTES, 1, 0);
  torch_free(block, BYTES, 0);
  gm_torch_release_pool(0, one);
  assert_int_equal(filter.dropped, 1);
  assert_true(is_captured(0));
  assert_true(held() > before);
  CUgraphExec run = capture_end(0);
  assert_cu(cu.cuGraphExecDestroy(run));
  gm_torch_end_allocate_to_pool(0, one);
  assert_int_equal(filter.dropped, 1);
  assert_int_equal(held(), before);
}

static void test_unknown_pools_are_ignored(void **state) {
  (void)state;
  static const int ordinals[] = {0, 1, -1, 63, 64, INT32_MAX, INT32_MIN};
  static const gm_torch_pool_id ids[] = {{0, 0}, {1, 0}, {UINT64_MAX, UINT64_MAX}};
  const CUdeviceptr kept = torch_alloc(BYTES, 0);
  for (size_t i = 0; i < sizeof ordinals / sizeof *ordinals; i++) {
    for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
      gm_torch_end_allocate_to_pool(ordinals[i], ids[k]);
      gm_torch_release_pool(ordinals[i], ids[k]);
    }
  }
  for (size_t i = 2; i < sizeof ordinals / sizeof *ordinals; i++) { /* no such cards */
    meant filter = {0};
    const gm_torch_filter given = {meant_wants, meant_drop, &filter};
    gm_torch_pool_begin(ordinals[i], one, &given);
    gm_torch_pool_begin(ordinals[i], one, NULL);
    assert_int_equal(filter.dropped, 1);
  }
  torch_free(kept, BYTES, 0);
  assert_int_equal(gm_cards_figure(0, "active"), 0);
}

/* The id that the library keeps for itself is torch's, too, if torch should say it. */
static void test_the_id_zero_is_an_id(void **state) {
  (void)state;
  CUdeviceptr out[PARTS];
  const long long before = held();
  CUgraphExec run = capture((gm_torch_pool_id){0, 0}, out);
  free_outputs(out);
  replay(run, out);
  assert_cu(cu.cuGraphExecDestroy(run));
  gm_torch_release_pool(0, (gm_torch_pool_id){0, 0});
  assert_int_equal(held(), before);
}

int main(void) {
#define SCENE(name) cmocka_unit_test_setup_teardown(name, torch_scene_begin, torch_scene_end)
  const struct CMUnitTest tests[] = {
      SCENE(test_release_gives_the_memory_back), SCENE(test_outputs_outlive_their_graph),
      SCENE(test_two_graphs_share_a_pool),       SCENE(test_hundreds_of_pools),
      SCENE(test_nested_and_interleaved_pools),  SCENE(test_the_pool_that_was_begun_first_serves),
      SCENE(test_a_pool_is_begun_twice),         SCENE(test_release_comes_before_the_end),
      SCENE(test_unknown_pools_are_ignored),     SCENE(test_the_id_zero_is_an_id),
  };
#undef SCENE
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}
