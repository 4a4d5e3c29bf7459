/* Processes that race for one card, and die: never is more promised than it has, and the dead hold nothing. The card's
 * bytes are counted in memory that all processes share. Simulated. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gm/reserve.h"
#include "support/shared_card.h"
#include "support/temp_folder.h"

enum { CAPACITY = 64 /* MiB */, PARTS = 4, CHILDREN = 8, ROUNDS = 60, KILLS = 24, ANSWERS = 128 };

static const gm_pool_params exact = {.struct_size = sizeof exact, .strategy = GM_STRATEGY_BUCKET};

typedef struct child_answer {
  _Atomic pid_t child;
  int answer;
} child_answer;

/* The bytes that processes hold by their own count: an oracle beside gm's. */
typedef struct oracle {
  shared_card_state card;
  _Atomic uint32_t holders; /* a bit for each child that holds a part */
  _Atomic uint32_t most;    /* the most at a time */
  _Atomic uint32_t grants;
  _Atomic uint32_t answered;
  child_answer answers[ANSWERS];
} oracle;

static oracle *seen;
static temp_folder folder;

static int set_up(void **state) {
  (void)state;
  temp_folder_make(&folder);
  seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (seen == MAP_FAILED) return -1;
  shared_card = &seen->card;
  shared_card_folder = folder.path;
  shared_card_share = "require";
  shared_card_reset(CAPACITY * MIB);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  munmap(seen, sizeof *seen);
  temp_folder_remove(&folder);
  return 0;
}

/* A child that runs `run`, and leaves its answer. It then kills itself: valgrind would call the parent's objects, which
 * it has copies of, lost. */
static pid_t child_start(int (*run)(int number), int number) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child) return child;
  alarm(120);
  const int answer = run(number);
  child_answer *mine = &seen->answers[atomic_fetch_add(&seen->answered, 1) % ANSWERS];
  mine->answer = answer;
  atomic_store(&mine->child, getpid());
  kill(getpid(), SIGKILL);
  _exit(1);
}

static void child_expect(pid_t child, int answer) {
  int status = 0;
  const child_answer *found = seen->answers;
  assert_int_equal(waitpid(child, &status, 0), child);
  while (found < seen->answers + ANSWERS && atomic_load(&found->child) != child) found++;
  assert_true(found < seen->answers + ANSWERS);
  assert_int_equal(found->answer, answer);
}

static gm_status hold(gm_device *device, uint64_t bytes, gm_reservation **out, gm_error *err) {
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = bytes};
  return gm_reserve(device, &params, out, err);
}

static bool take(gm_pool *pool, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes};
  return gm_alloc(pool, &request, out) <= GM_ACQUIRE_FRESH;
}

static void give(gm_pool *pool, gm_block *block) {
  gm_free(pool, block, NULL);
  gm_pool_trim(pool, 0);
}

static void note_holder(int number) {
  const uint32_t bit = UINT32_C(1) << number;
  const uint32_t count = (uint32_t)__builtin_popcount(atomic_fetch_or(&seen->holders, bit) | bit);
  uint32_t most = atomic_load(&seen->most);
  while (count > most && !atomic_compare_exchange_weak(&seen->most, &most, count)) {}
  atomic_fetch_add(&seen->grants, 1);
}

/* One round: holds a part of the card, and perhaps takes it. Returns false where a promise was not kept. */
static bool race_round(const pool_bench *bench, int number, int round) {
  gm_reservation *held = NULL;
  gm_block block;
  bool kept = true;
  if (hold(bench->device, CAPACITY / PARTS * MIB, &held, NULL)) return true;
  note_holder(number);
  if (round % 4 == 0) usleep(200); /* time for others to come in, too */
  if (round % 2) {
    kept = gm_reservation_commit(held, bench->pool, NULL) == GM_OK && take(bench->pool, CAPACITY / PARTS * MIB, &block);
  }
  atomic_fetch_and(&seen->holders, ~(UINT32_C(1) << number)); /* what a pool gives back is for all at once */
  if (round % 2 && kept) give(bench->pool, &block);
  gm_reservation_cancel(held);
  return kept;
}

static int race(int number) {
  pool_bench bench;
  int broken = 0;
  shared_card_open(&bench, &exact);
  for (int round = 0; round < ROUNDS; round++) broken += !race_round(&bench, number, round);
  pool_bench_close(&bench);
  return broken ? 1 : 0;
}

static int hold_all_parts(int number) {
  pool_bench bench;
  gm_reservation *held[PARTS] = {NULL};
  int got = 0;
  (void)number;
  shared_card_open(&bench, &exact);
  for (int i = 0; i < PARTS; i++) got += hold(bench.device, CAPACITY / PARTS * MIB, &held[i], NULL) == GM_OK;
  for (int i = 0; i < PARTS; i++) gm_reservation_cancel(held[i]);
  pool_bench_close(&bench);
  return got;
}

static void test_processes_never_get_more_than_the_card_has(void **state) {
  (void)state;
  pid_t children[CHILDREN];
  for (int i = 0; i < CHILDREN; i++) children[i] = child_start(race, i);
  for (int i = 0; i < CHILDREN; i++) child_expect(children[i], 0);
  assert_true(atomic_load(&seen->grants) >= PARTS);
  assert_true(atomic_load(&seen->most) <= PARTS);
  assert_true(atomic_load(&seen->card.most) <= CAPACITY * MIB);
  child_expect(child_start(hold_all_parts, 0), PARTS);
}

/* Holds parts until it is killed. */
static int hold_on(int number) {
  pool_bench bench;
  shared_card_open(&bench, &exact);
  while (getppid() != 1) {
    gm_reservation *held = NULL;
    if (hold(bench.device, CAPACITY / PARTS * MIB, &held, NULL)) continue;
    note_holder(number);
    usleep(500);
    atomic_fetch_and(&seen->holders, ~(UINT32_C(1) << number));
    gm_reservation_cancel(held);
  }
  return 0;
}

/* Stopped first, so that its bit goes while its promise still counts. */
static void child_kill(pid_t child, int number) {
  int status = 0;
  kill(child, SIGSTOP);
  assert_int_equal(waitpid(child, &status, WUNTRACED), child);
  assert_true(WIFSTOPPED(status));
  atomic_fetch_and(&seen->holders, ~(UINT32_C(1) << number));
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, &status, 0), child);
}

static void test_the_dead_hold_nothing(void **state) {
  (void)state;
  pid_t children[CHILDREN];
  for (int i = 0; i < CHILDREN; i++) children[i] = child_start(hold_on, i);
  for (int i = 0; i < KILLS; i++) {
    const int number = i * 5 % CHILDREN;
    usleep(3000);
    child_kill(children[number], number);
    children[number] = child_start(hold_on, number);
  }
  while (atomic_load(&seen->grants) < PARTS) usleep(1000);
  for (int i = 0; i < CHILDREN; i++) child_kill(children[i], i);
  assert_true(atomic_load(&seen->most) <= PARTS);
  child_expect(child_start(hold_all_parts, 0), PARTS);
}

/* ---- one process beside another one's promise ---- */

/* The process has the file of its first folder for ever, so only one test uses gm in the parent. */

static int look_at_others(int least_free) {
  pool_bench bench;
  gm_block block;
  gm_reservation *held = NULL;
  gm_error why = {.status = GM_OK};
  gm_memory_info memory = {.struct_size = sizeof memory};
  gm_pool_params params = exact;
  params.memory_fraction = 1;
  params.min_free_bytes = least_free ? 0 : GM_NO_LIMIT;
  shared_card_open(&bench, &params);
  if (gm_device_memory_info(bench.device, &memory, NULL)) return 1;
  if (memory.promised_by_others_bytes != 40 * MIB || memory.promised_bytes) return 2;
  if (take(bench.pool, 32 * MIB, &block)) return 3;
  if (!take(bench.pool, 16 * MIB, &block)) return 4;
  give(bench.pool, &block);
  if (hold(bench.device, 32 * MIB, &held, &why) != GM_ERR_OVER_LIMIT || !strstr(why.message, "other promises"))
    return 5;
  if (hold(bench.device, 24 * MIB, &held, NULL)) return 6;
  gm_reservation_cancel(held);
  pool_bench_close(&bench);
  return 0;
}

static int take_most(int number) {
  pool_bench bench;
  gm_block block;
  (void)number;
  shared_card_open(&bench, &exact);
  const bool taken = take(bench.pool, 32 * MIB, &block);
  if (taken) give(bench.pool, &block);
  pool_bench_close(&bench);
  return taken;
}

static void test_a_process_respects_what_another_one_promised(void **state) {
  (void)state;
  pool_bench bench;
  gm_reservation *held = NULL;
  gm_reservation_info info = {.struct_size = sizeof info};
  gm_block block;
  shared_card_open(&bench, &exact);
  pool_bench_ok(gm_pool_reserve(bench.pool, 40 * MIB, &held, err));
  pool_bench_ok(gm_reservation_read(held, &info, err));
  assert_true(info.shared);
  child_expect(child_start(look_at_others, 0), 0);
  child_expect(child_start(look_at_others, 1), 0);
  assert_true(take(bench.pool, 40 * MIB, &block)); /* from now on it is used, not promised */
  child_expect(child_start(take_most, 0), 0);
  give(bench.pool, &block);
  child_expect(child_start(take_most, 0), 1);
  gm_reservation_cancel(held);
  pool_bench_close(&bench);
}

/* Two ends of a pipe each way: [0] from the child, [1] to it. */
static int pipes[2][2];

static void say(int way) { assert_int_equal(write(pipes[way][1], "x", 1), 1); }

static void await_word(int way) {
  char word;
  assert_int_equal(read(pipes[way][0], &word, 1), 1);
}

static int hold_until_told(int number) {
  pool_bench bench;
  gm_reservation *held = NULL;
  (void)number;
  shared_card_open(&bench, &exact);
  if (hold(bench.device, 40 * MIB, &held, NULL)) return 1;
  say(0);
  await_word(1);
  gm_reservation_cancel(held);
  say(0);
  await_word(1);
  pool_bench_close(&bench);
  return 0;
}

static int take_when_cancelled(int number) {
  pool_bench bench;
  gm_block block;
  gm_memory_info memory = {.struct_size = sizeof memory};
  (void)number;
  await_word(0);
  shared_card_open(&bench, &exact);
  if (take(bench.pool, 32 * MIB, &block)) return 1;
  say(1);
  await_word(0);
  if (!take(bench.pool, 32 * MIB, &block)) return 2;
  if (gm_device_memory_info(bench.device, &memory, NULL) || memory.promised_by_others_bytes) return 3;
  say(1);
  give(bench.pool, &block);
  pool_bench_close(&bench);
  return 0;
}

/* A process that was refused is served as soon as the other one has cancelled: nothing old is believed. */
static void test_a_cancelled_promise_is_gone_at_once(void **state) {
  (void)state;
  assert_true(pipe(pipes[0]) == 0 && pipe(pipes[1]) == 0);
  const pid_t holder = child_start(hold_until_told, 0), taker = child_start(take_when_cancelled, 0);
  child_expect(taker, 0);
  child_expect(holder, 0);
}

/* ---- where the file cannot be ---- */

static int reserve_without_a_file(int number) {
  pool_bench bench;
  gm_reservation *held = NULL;
  gm_reservation_info info = {.struct_size = sizeof info};
  gm_error why = {.status = GM_OK};
  shared_card_share = number == 0 ? "require" : number == 1 ? "auto" : "off";
  shared_card_open(&bench, &exact);
  const gm_status status = hold(bench.device, MIB, &held, &why);
  if (number == 0) {
    if (status == GM_OK || status == GM_ERR_OVER_LIMIT || !why.message[0]) return 1;
  } else if (status || gm_reservation_read(held, &info, NULL) || info.shared) {
    return 2;
  }
  gm_memory_info memory = {.struct_size = sizeof memory};
  if (gm_device_memory_info(bench.device, &memory, NULL)) return 3;
  if (memory.promised_bytes != (number ? MIB : 0)) return 4;
  gm_reservation_cancel(held);
  pool_bench_close(&bench);
  return 0;
}

static void test_a_file_that_cannot_be(void **state) {
  (void)state;
  char missing[256], name[64];
  snprintf(missing, sizeof missing, "%s/none", folder.path);
  snprintf(name, sizeof name, "gm-promises-%u", (unsigned)geteuid());
  shared_card_folder = missing;
  for (int i = 0; i < 3; i++) child_expect(child_start(reserve_without_a_file, i), 0);
  shared_card_folder = "not/absolute";
  for (int i = 0; i < 2; i++) child_expect(child_start(reserve_without_a_file, i), 0);
  shared_card_folder = folder.path;
  temp_folder_write(&folder, name, "garbage of another program, long enough to be read as a head: 64 bytes", 70);
  chmod(temp_folder_join(&folder, name), 0600);
  for (int i = 0; i < 2; i++) child_expect(child_start(reserve_without_a_file, i), 0);
}

static void test_nothing_is_made_before_the_first_reservation(void **state) {
  (void)state;
  char name[64];
  snprintf(name, sizeof name, "gm-promises-%u", (unsigned)geteuid());
  child_expect(child_start(take_most, 0), 1);
  assert_int_equal(access(temp_folder_join(&folder, name), F_OK), -1);
  shared_card_share = "off";
  child_expect(child_start(hold_all_parts, 0), PARTS);
  assert_int_equal(access(temp_folder_join(&folder, name), F_OK), -1);
  shared_card_share = "auto";
  child_expect(child_start(hold_all_parts, 0), PARTS);
  assert_int_equal(access(temp_folder_join(&folder, name), F_OK), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_processes_never_get_more_than_the_card_has, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_the_dead_hold_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_file_that_cannot_be, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_nothing_is_made_before_the_first_reservation, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_process_respects_what_another_one_promised, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_cancelled_promise_is_gone_at_once, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
