/* The memory of cards for ONNX Runtime, called as its CUDA provider calls it, on a simulated card. Sessions compute on
 * streams that wait for nobody. */
#include "integrations/onnxruntime/card_allocator.h"
#include "integrations/onnxruntime/card_functions.h"
#include "integrations/shared/cards.h"
#include "integrations/shared/engines.h"
#include "tests/integrations/played_ort.h"
#include "tests/simulated/sim_cuda_fixture.h"

enum { SESSIONS = 2, BYTES = 4 << 20, NON_BLOCKING = 1, MANY = 70, MORE = 8 };

static CUstream streams[SESSIONS];
static unsigned *seen; /* pinned */

static int begin(void **state) {
  played_reset();
  if (fixture_begin(state)) return 1;
  for (int i = 0; i < SESSIONS; i++) streams[i] = fixture_stream(NON_BLOCKING);
  return (int)cu.cuMemHostAlloc((void **)&seen, sizeof *seen, 0);
}

static int end(void **state) {
  fixture_do("release");
  for (int i = 0; i < SESSIONS; i++)
    if (gm_ort_card_functions_end(0, streams[i])) return 1;
  if (gm_cards_close() || cu.cuMemFreeHost(seen)) return 1;
  for (int i = 0; i < SESSIONS; i++) cu.cuStreamDestroy_v2(streams[i]);
  return fixture_end(state);
}

static CUdeviceptr number_of(const void *pointer) { return (CUdeviceptr)(uintptr_t)pointer; }

static void sync(void) {
  for (int i = 0; i < SESSIONS; i++) assert_cu(cu.cuStreamSynchronize(streams[i]));
}

static void test_a_pair_has_functions_of_its_own(void **state) {
  (void)state;
  gm_ort_functions first, again, other;
  assert_int_equal(gm_ort_card_functions(0, streams[0], &first), GM_OK);
  assert_int_equal(gm_ort_card_functions(0, streams[0], &again), GM_OK);
  assert_int_equal(gm_ort_card_functions(0, streams[1], &other), GM_OK);
  assert_true(first.alloc == again.alloc && first.free == again.free && first.empty_cache == again.empty_cache);
  assert_true(first.alloc != other.alloc && first.free != other.free && first.empty_cache != other.empty_cache);
  assert_null(first.alloc(0));
  first.free(NULL);
  void *block = first.alloc(1000);
  assert_non_null(block);
  assert_int_equal(gm_cards_figure(0, "active"), 1);
  first.free(block);
  assert_int_equal(gm_cards_figure(0, "active"), 0);
  assert_true(played_function_refuses(first.alloc, (size_t)1 << 50));
  assert_true(strlen(gm_engines_why()) > 10);
  sync();
  first.empty_cache();
}

static void test_pairs_run_out_and_come_back(void **state) {
  (void)state;
  CUstream more[GM_ORT_LANES];
  gm_ort_functions functions[GM_ORT_LANES], none = {NULL, NULL, NULL};
  for (int i = 0; i < GM_ORT_LANES; i++) {
    more[i] = fixture_stream(NON_BLOCKING);
    assert_int_equal(gm_ort_card_functions(0, more[i], &functions[i]), GM_OK);
  }
  assert_int_equal(gm_ort_card_functions(0, streams[0], &none), GM_ERR_OVER_LIMIT);
  assert_int_equal(gm_ort_card_functions(1, NULL, &none), GM_ERR_OVER_LIMIT); /* another card is another pair */
  assert_null(none.alloc);
  assert_int_equal(gm_ort_card_functions(40, NULL, &none), GM_ERR_UNAVAILABLE);
  assert_int_equal(gm_ort_card_functions(-1, NULL, &none), GM_ERR_UNAVAILABLE);
  assert_int_equal(gm_ort_card_functions_end(40, NULL), GM_OK);
  for (int i = 0; i < GM_ORT_LANES; i++) {
    assert_int_equal(gm_ort_card_functions_end(0, more[i]), GM_OK);
    assert_int_equal(gm_ort_card_functions_end(0, more[i]), GM_OK); /* twice */
    assert_cu(cu.cuStreamDestroy_v2(more[i]));
  }
  assert_int_equal(gm_ort_card_functions(0, streams[0], &none), GM_OK);
  void *block = none.alloc(1000);
  assert_non_null(block);
  none.free(block);
}

/* One session frees memory that its kernels still read. The other session gets none of it before they are done. */
static void test_sessions_do_not_write_into_each_other(void **state) {
  (void)state;
  gm_ort_functions of[SESSIONS];
  for (int i = 0; i < SESSIONS; i++) assert_int_equal(gm_ort_card_functions(0, streams[i], &of[i]), GM_OK);
  for (unsigned round = 0; round < 20; round++) {
    const unsigned reader = round % 2, writer = 1 - reader;
    void *first = of[reader].alloc(BYTES);
    assert_cu(cu.cuMemsetD32Async(number_of(first), 1, BYTES / 4, streams[reader]));
    fixture_gate("hold", streams[reader]);
    assert_cu(cu.cuMemcpyDtoHAsync_v2(seen, number_of(first), sizeof *seen, streams[reader]));
    of[reader].free(first);
    void *second = of[writer].alloc(BYTES);
    assert_cu(cu.cuMemsetD32Async(number_of(second), 2, BYTES / 4, streams[writer]));
    of[writer].free(second);
    fixture_gate("release", streams[reader]);
    sync();
    assert_int_equal(*seen, 1);
  }
  assert_int_equal(gm_cards_figure(0, "active"), 0);
  assert_in_range(gm_cards_figure(0, "driver_allocs"), 1, 6);
}

/* A request and a free for each stream in turn, with an allocator that ONNX Runtime tells the stream. */
static void play_streams(struct OrtAllocator *it, CUstream const *on, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    const unsigned reader = i % 2, writer = 1 - reader;
    void *first = played_alloc_on(it, BYTES, on[reader]);
    assert_non_null(first);
    assert_cu(cu.cuMemsetD32Async(number_of(first), 1, BYTES / 4, on[reader]));
    fixture_gate("hold", on[reader]);
    assert_cu(cu.cuMemcpyDtoHAsync_v2(seen, number_of(first), sizeof *seen, on[reader]));
    played_free(it, first);
    void *second = played_alloc_on(it, BYTES, on[writer]);
    assert_cu(cu.cuMemsetD32Async(number_of(second), 2, BYTES / 4, on[writer]));
    played_free(it, second);
    fixture_gate("release", on[reader]);
    sync();
    assert_int_equal(*seen, 1);
  }
}

static void test_an_allocator_frees_in_the_order_of_the_request(void **state) {
  (void)state;
  struct OrtAllocator *it = gm_ort_card_allocator_create(played_base(), 0);
  assert_non_null(it);
  play_streams(it, streams, 20);
  void *block = played_alloc(it, BYTES); /* the legacy default stream */
  assert_non_null(block);
  played_free(it, block);
  assert_null(played_alloc(it, 0));
  assert_null(played_alloc_on(it, 0, streams[0]));
  assert_true(played_refuses_on(it, (size_t)1 << 50, streams[0]));
  played_free(it, NULL);
  played_free(it, seen); /* no block of the card */
  assert_int_equal(gm_cards_figure(0, "active"), 0);
  gm_ort_card_allocator_destroy(it);
  gm_ort_card_allocator_destroy(NULL);
  assert_int_equal(played.infos + played.statuses, 0);
}

/* Blocks of streams that asked long ago, and of streams that are gone. */
static void test_more_streams_than_an_allocator_remembers(void **state) {
  (void)state;
  CUstream many[MANY];
  void *blocks[MANY], *more[MORE];
  struct OrtAllocator *it = gm_ort_card_allocator_create(played_base(), 0);
  for (unsigned i = 0; i < MANY; i++) {
    many[i] = fixture_stream(NON_BLOCKING);
    blocks[i] = played_alloc_on(it, BYTES, many[i]);
    assert_non_null(blocks[i]);
    assert_cu(cu.cuMemsetD32Async(number_of(blocks[i]), 1, BYTES / 4, many[i]));
  }
  fixture_gate("hold", many[0]);
  assert_cu(cu.cuMemcpyDtoHAsync_v2(seen, number_of(blocks[0]), sizeof *seen, many[0]));
  played_free(it, blocks[0]);
  for (unsigned i = 0; i < MORE; i++) {
    more[i] = played_alloc_on(it, BYTES, many[MANY - 1]);
    assert_cu(cu.cuMemsetD32Async(number_of(more[i]), 2, BYTES / 4, many[MANY - 1]));
  }
  fixture_gate("release", many[0]);
  for (unsigned i = 0; i < MANY; i++) assert_cu(cu.cuStreamSynchronize(many[i]));
  assert_int_equal(*seen, 1);
  for (unsigned i = 0; i < MORE; i++) played_free(it, more[i]);
  for (unsigned i = 1; i + 1 < MANY; i++) played_free(it, blocks[i]);
  for (unsigned i = 0; i < MANY; i++) {
    assert_int_equal(gm_ort_card_functions_end(0, many[i]), GM_OK);
    assert_cu(cu.cuStreamDestroy_v2(many[i]));
  }
  played_free(it, blocks[MANY - 1]); /* its stream is gone */
  assert_int_equal(gm_cards_figure(0, "active"), 0);
  gm_ort_card_allocator_destroy(it);
}

static void test_no_card_and_no_onnx_runtime(void **state) {
  (void)state;
  assert_null(gm_ort_card_allocator_create(played_base(), 40));
  assert_null(gm_ort_card_allocator_create(played_base(), -1));
  played.version = "1.2.0";
  assert_null(gm_ort_card_allocator_create(played_base(), 0));
  assert_int_equal(played.infos + played.statuses, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_a_pair_has_functions_of_its_own, begin, end),
      cmocka_unit_test_setup_teardown(test_pairs_run_out_and_come_back, begin, end),
      cmocka_unit_test_setup_teardown(test_sessions_do_not_write_into_each_other, begin, end),
      cmocka_unit_test_setup_teardown(test_an_allocator_frees_in_the_order_of_the_request, begin, end),
      cmocka_unit_test_setup_teardown(test_more_streams_than_an_allocator_remembers, begin, end),
      cmocka_unit_test_setup_teardown(test_no_card_and_no_onnx_runtime, begin, end),
  };
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}
