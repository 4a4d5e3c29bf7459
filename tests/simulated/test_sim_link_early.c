/* The link model of the simulated CUDA driver: bytes arrive at the end of their copy, and who comes too early is seen.
 */
#include <stdbool.h>

#include "tests/simulated/sim_link_fixture.h"
/* cmocka.h before it */
#include "support/random.h"

static void bytes_are_there_at_the_end_of_their_copy(void **state) {
  (void)state;
  char command[96], answer[8];
  link_on("h2d:1000,d2h:1000");
  up(0, 0, MB);
  down(0, 0, MB);
  fixture_do("advance 1999999");
  assert_int_equal(outs[0][0], 0); /* read too early */
  snprintf(command, sizeof command, "use %llu 1 read", (unsigned long long)(uintptr_t)outs[0]);
  assert_int_equal(cu.control(command, answer, sizeof answer), 0);
  assert_string_equal(answer, "0");
  assert_int_equal(fixture_number("get early"), 1);
  fixture_do("advance 1");
  assert_int_equal(outs[0][0], 1);
  assert_int_equal(outs[0][MB - 1], 1);
  assert_int_equal(cu.control(command, answer, sizeof answer), 0);
  assert_string_equal(answer, "1");
  take();
}

static void a_source_that_is_overwritten_too_early_is_seen(void **state) {
  (void)state;
  char command[96];
  link_on("h2d:1000,d2h:1000");
  up(0, 0, MB);
  fixture_do("advance 999999");
  memset(ins[0], 9, MB);
  snprintf(command, sizeof command, "use %llu %d write", (unsigned long long)(uintptr_t)ins[0], MB);
  fixture_do(command);
  assert_int_equal(fixture_number("get early"), 1);
  down(0, 0, MB);
  take();
  assert_int_equal(outs[0][0], 9); /* the wrong bytes went */
}

/* A kernel that begins before its input is there, or writes what is still going down: whoever ends first. */
static void a_kernel_that_comes_too_early_is_seen(void **state) {
  (void)state;
  static const char *const costs[] = {"h2d:1000,d2h:1000,kernel:sim_add_u32:10",
                                      "h2d:1000,d2h:1000,kernel:sim_add_u32:9000"};
  for (int i = 0; i < 4; i++) {
    for (int waits = 0; waits < 2; waits++) {
      link_on(costs[i % 2]);
      if (i < 2)
        up(0, 0, MB);
      else
        down(0, 0, MB);
      if (waits) pass(0, 1);
      step(1, 0, 16);
      take();
      assert_int_equal(fixture_number("get early"), !waits);
    }
  }
}

/* A kernel that only reads what goes down disturbs nobody. */
static void reading_together_is_no_early_use(void **state) {
  (void)state;
  uint32_t nothing = 0;
  uint64_t words = 16;
  void *arguments[] = {&blocks[0], &words, &nothing};
  link_on("d2h:1000,kernel:*:10");
  down(0, 0, MB);
  assert_cu(cu.cuLaunchKernel(add, 1, 1, 1, 16, 1, 1, 0, streams[1], arguments, NULL));
  take();
  assert_int_equal(fixture_number("get early"), 0);
}

/* Items of random sizes, each with bytes of its own, through three slots; `forgotten`: the item that does not wait.
 * True: every item came down as it should. */
static bool random_schedule(uint64_t *random, int forgotten) {
  enum { ITEMS = 9 };
  CUevent downs[SLOTS];
  uint32_t *all[ITEMS];
  bool right = true;
  link_on("h2d:1000:1,d2h:700:2,kernel:sim_add_u32:2,jitter:90");
  for (int i = 0; i < SLOTS; i++) downs[i] = fixture_event(CU_EVENT_DISABLE_TIMING);
  for (int i = 0; i < ITEMS; i++) {
    const int slot = i % SLOTS;
    const uint64_t words = 1 + test_random(random) % 1000;
    uint32_t *in = (uint32_t *)(void *)ins[0] + 1000 * i, *out = (uint32_t *)(void *)outs[0] + 1000 * i;
    void *arguments[] = {&blocks[slot], (void *)(uintptr_t)&words, &(uint32_t){1000}};
    for (uint64_t w = 0; w < words; w++) in[w] = (uint32_t)i;
    out[words - 1] = 0;
    all[i] = &out[words - 1];
    if (i != forgotten) assert_cu(cu.cuStreamWaitEvent(streams[0], downs[slot], 0));
    assert_cu(cu.cuMemcpyHtoDAsync_v2(blocks[slot], in, words * 4, streams[0]));
    pass(0, 1);
    assert_cu(cu.cuLaunchKernel(add, 1, 1, 1, 16, 1, 1, 0, streams[1], arguments, NULL));
    pass(1, 2);
    assert_cu(cu.cuMemcpyDtoHAsync_v2(out, blocks[slot], words * 4, streams[2]));
    assert_cu(cu.cuEventRecord(downs[slot], streams[2]));
    if (test_random(random) % 4 == 0) cu.cuEventQuery(downs[slot]);
  }
  take();
  for (int i = 0; i < ITEMS; i++) right = right && *all[i] == (uint32_t)i + 1000;
  for (int i = 0; i < SLOTS; i++) assert_cu(cu.cuEventDestroy_v2(downs[i]));
  return right;
}

static void random_schedules_show_a_forgotten_wait(void **state) {
  (void)state;
  uint64_t random = 20261127;
  int seen = 0;
  for (int i = 0; i < 200; i++) {
    assert_true(random_schedule(&random, -1));
    assert_int_equal(fixture_number("get early"), 0);
    const bool right = random_schedule(&random, 3 + i % 6);
    const bool early = fixture_number("get early") > 0;
    assert_true(right || early); /* wrong bytes are never unseen */
    seen += early;
  }
  assert_true(seen > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      LINK_TEST(bytes_are_there_at_the_end_of_their_copy), LINK_TEST(a_source_that_is_overwritten_too_early_is_seen),
      LINK_TEST(a_kernel_that_comes_too_early_is_seen),    LINK_TEST(reading_together_is_no_early_use),
      LINK_TEST(random_schedules_show_a_forgotten_wait),
  };
  return cmocka_run_group_tests(tests, load, NULL);
}
