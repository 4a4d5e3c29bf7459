/* torch's smaller hooks through the functions for cards, where only a simulated driver lets one look: its work is held
 * back. torch_play.c plays all of them on any card. */
#include "tests/integrations/torch_scene.h"

/* torch frees a tensor while another stream still reads it: who gets the memory next must not write it before. */
static void test_recorded_use_delays_the_reuse(void **state) {
  (void)state;
  const size_t bytes = 4 << 20;
  unsigned *seen = NULL;
  assert_cu(cu.cuMemHostAlloc((void **)&seen, sizeof *seen, 0));
  for (unsigned round = 0; round < 20; round++) {
    const CUdeviceptr first = torch_alloc(bytes, 1);
    torch_fill(first, bytes, 1, 1);
    torch_follow(0, 1);
    fixture_gate("hold", torch_streams[0]);
    assert_cu(cu.cuMemcpyDtoHAsync_v2(seen, first, sizeof *seen, torch_streams[0]));
    gm_torch_record_stream(torch_pointer(first + 4096), torch_streams[0]);
    torch_free(first, bytes, 1);
    const CUdeviceptr second = torch_alloc(bytes, 1);
    torch_fill(second, bytes, 2, 1);
    torch_free(second, bytes, 1);
    fixture_gate("release", torch_streams[0]);
    torch_sync();
    assert_int_equal(*seen, 1);
  }
  assert_cu(cu.cuMemFreeHost(seen));
}

/* Wrong calls, as a broken engine makes them. */
static void test_wrong_calls_change_nothing(void **state) {
  (void)state;
  const CUdeviceptr kept = torch_alloc(1000, 0);
  assert_null(gm_torch_alloc(0, 0, torch_streams[0]));
  assert_null(gm_torch_alloc(-1, 0, torch_streams[0]));
  assert_null(gm_torch_alloc(1000, -1, torch_streams[0]));
  assert_null(gm_torch_alloc(1000, 63, torch_streams[0]));
  assert_null(gm_torch_alloc(1000, 1 << 20, torch_streams[0]));
  gm_torch_free(NULL, 0, 0, torch_streams[0]);
  gm_torch_free(torch_pointer(kept + 16), 1000, 0, torch_streams[0]);
  gm_torch_free(torch_pointer(kept), 1000, 7, torch_streams[0]);
  gm_torch_record_stream(torch_pointer(1), torch_streams[0]);
  gm_torch_memory_fraction(-1, 0);
  gm_torch_memory_fraction(0.5, 99);
  assert_int_equal(gm_cards_figure(0, "active"), 1);
  torch_free(kept, 1000, 0);
  torch_free(kept, 1000, 0);
  assert_int_equal(gm_cards_figure(0, "active"), 0);
}

/* More streams than a pool follows one by one. */
static void test_two_hundred_streams(void **state) {
  enum { MANY = 200 };
  (void)state;
  CUstream many[MANY];
  void *held[MANY];
  for (int i = 0; i < MANY; i++) many[i] = fixture_stream(1);
  for (int i = 0; i < MANY; i++) {
    held[i] = gm_torch_alloc(5000, 0, many[i]);
    assert_non_null(held[i]);
    assert_cu(cu.cuMemsetD32Async((CUdeviceptr)(uintptr_t)held[i], (unsigned)i, 1250, many[i]));
  }
  for (int i = 0; i < MANY; i++) assert_cu(cu.cuStreamSynchronize(many[i]));
  for (int i = 0; i < MANY; i++) assert_int_equal(fixture_word((CUdeviceptr)(uintptr_t)held[i] + 4996), i);
  for (int i = 0; i < MANY; i++) gm_torch_free(held[i], 5000, 0, many[i]);
  assert_int_equal(gm_cards_figure(0, "active"), 0);
  assert_int_equal(gm_cards_close(), 0);
  for (int i = 0; i < MANY; i++) assert_cu(cu.cuStreamDestroy_v2(many[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_recorded_use_delays_the_reuse, torch_scene_begin, torch_scene_end),
      cmocka_unit_test_setup_teardown(test_wrong_calls_change_nothing, torch_scene_begin, torch_scene_end),
      cmocka_unit_test_setup_teardown(test_two_hundred_streams, torch_scene_begin, torch_scene_end),
  };
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}
