/* A recorded training step, played through the functions for cards: each tensor keeps its contents until it is freed,
 * although the driver works late and streams run at random. */
#include <time.h>

#include "tests/integrations/torch_scene.h"

enum { TENSORS = 4096 };

typedef struct tensor {
  CUdeviceptr address;
  size_t bytes;
  int stream, user; /* user: the stream that last worked with it */
} tensor;

static tensor tensors[TENSORS];
static unsigned *seen; /* pinned: what the engine's last work with each tensor read */

static void play_alloc(unsigned long number, size_t bytes, int stream) {
  tensor *it = &tensors[number];
  *it = (tensor){torch_alloc(bytes, stream), bytes, stream, stream};
  assert_int_equal(it->address % 256, 0);
  torch_fill(it->address, bytes, (unsigned)number + 1, stream);
}

static void play_use(unsigned long number, int stream) {
  torch_follow(stream, tensors[number].stream);
  gm_torch_record_stream(torch_pointer(tensors[number].address), torch_streams[stream]);
  tensors[number].user = stream;
}

/* The last word is read late, in the order of the tensor's last user. */
static void play_free(unsigned long number) {
  const tensor *it = &tensors[number];
  const size_t last = it->bytes / sizeof *seen;
  seen[number] = (unsigned)number + 1;
  if (last)
    assert_cu(cu.cuMemcpyDtoHAsync_v2(&seen[number], it->address + (last - 1) * sizeof *seen, sizeof *seen,
                                      torch_streams[it->user]));
  torch_free(it->address, it->bytes, it->stream);
}

static unsigned long play(const char *path) {
  char line[64];
  unsigned long number = 0, most = 0;
  size_t bytes;
  int stream;
  FILE *trace = fopen(path, "r");
  assert_non_null(trace);
  while (fgets(line, sizeof line, trace)) {
    if (sscanf(line, "a %lu %zu %d", &number, &bytes, &stream) == 3)
      play_alloc(number, bytes, stream);
    else if (sscanf(line, "r %lu %d", &number, &stream) == 2)
      play_use(number, stream);
    else if (sscanf(line, "f %lu", &number) == 1)
      play_free(number);
    else
      fail_msg("%s: %s", path, line);
    most = number > most ? number : most;
  }
  assert_int_equal(fclose(trace), 0);
  return most + 1;
}

static void test_a_training_step_keeps_every_tensor(void **state) {
  (void)state;
  assert_cu(cu.cuMemHostAlloc((void **)&seen, TENSORS * sizeof *seen, 0));
  unsigned long count = 0;
  for (int round = 0; round < 3; round++) {
    count = play(GM_TEST_DATA "/torch/training.txt");
    torch_sync();
    assert_in_range(count, 500, TENSORS);
    for (unsigned i = 0; i < count; i++) assert_int_equal(seen[i], i + 1);
  }
  assert_int_equal(gm_cards_figure(0, "active"), 0);
  assert_int_equal(gm_cards_figure(0, "allocs"), 3 * count);
  assert_true(gm_cards_figure(0, "driver_allocs") < count / 20);
  assert_cu(cu.cuMemFreeHost(seen));
}

/* torch frees a tensor while another stream still reads it: who gets the memory next must not write it before. */
static void test_recorded_use_delays_the_reuse(void **state) {
  (void)state;
  const size_t bytes = 4 << 20;
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

static void test_fraction_reset_and_base(void **state) {
  (void)state;
  uint64_t free_bytes = 0, total = 0;
  size_t bytes = 0;
  assert_int_equal(gm_cards_memory(0, &free_bytes, &total), 0);
  assert_in_range(free_bytes, 1, total);
  const CUdeviceptr small = torch_alloc(1000, 0);
  void *base = gm_torch_base_alloc(torch_pointer(small + 999), &bytes);
  assert_non_null(base);
  assert_in_range(small, (uintptr_t)base, (uintptr_t)base + bytes - 1000);
  assert_null(gm_torch_base_alloc(torch_pointer(1), &bytes));
  gm_torch_memory_fraction(0.25, 0);
  assert_null(gm_torch_alloc((ptrdiff_t)(total / 2), 0, torch_streams[0]));
  gm_torch_memory_fraction(1, 0);
  const CUdeviceptr large = torch_alloc(total / 2, 0);
  torch_free(large, total / 2, 0);
  torch_free(small, 1000, 0);
  torch_sync();
  const struct timespec turn = {.tv_nsec = 1000000};
  for (int turns = 0; turns < 10000; turns++) { /* a stream tells late that it is done */
    gm_torch_reset();
    if (gm_cards_figure(0, "reserved_bytes") == 0) break;
    nanosleep(&turn, NULL);
  }
  assert_int_equal(gm_cards_figure(0, "reserved_bytes"), 0);
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
      cmocka_unit_test_setup_teardown(test_a_training_step_keeps_every_tensor, torch_scene_begin, torch_scene_end),
      cmocka_unit_test_setup_teardown(test_recorded_use_delays_the_reuse, torch_scene_begin, torch_scene_end),
      cmocka_unit_test_setup_teardown(test_fraction_reset_and_base, torch_scene_begin, torch_scene_end),
      cmocka_unit_test_setup_teardown(test_wrong_calls_change_nothing, torch_scene_begin, torch_scene_end),
      cmocka_unit_test_setup_teardown(test_two_hundred_streams, torch_scene_begin, torch_scene_end),
  };
  return cmocka_run_group_tests(tests, fixture_load, NULL);
}
