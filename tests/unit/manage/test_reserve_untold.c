/* Promises that other processes do not know yet, and promises that do not concern an engine's own device. The stranger
 * stands for another process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "support/promise_folder.h"

static const gm_pool_params exact = {.struct_size = sizeof exact, .strategy = GM_STRATEGY_BUCKET};

static gm_reservation *hold(pool_bench *bench, uint64_t bytes) {
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = bytes};
  gm_reservation *held = NULL;
  pool_bench_ok(gm_reserve(bench->device, &params, &held, err));
  return held;
}

static bool is_shared(const gm_reservation *held) {
  gm_reservation_info info = {.struct_size = sizeof info};
  pool_bench_ok(gm_reservation_read(held, &info, err));
  return info.shared;
}

static bool take(pool_bench *bench, uint64_t bytes) {
  const gm_request request = {.bytes = bytes};
  gm_block block;
  if (!gm_acquired(gm_alloc(bench->pool, &request, &block))) return false;
  assert_int_equal(gm_free(bench->pool, &block, NULL), GM_OK);
  gm_pool_trim(bench->pool, 0);
  return true;
}

static size_t lines(const pool_bench *bench) { return atomic_load(&bench->host.lines); }

/* ---- another process keeps its turn ---- */

static gm__promise_turn kept;

static void keep_turn(const pool_bench *bench) {
  uint8_t card[GM__PROMISE_CARD_BYTES];
  gm__promise_others others;
  stranger_card(bench, card);
  gm__promise_patience_ns = 1000000;
  assert_int_equal(gm__promise_file_begin(&stranger, card, true, &kept, &others, NULL), GM_OK);
}

static void test_a_stopped_process_is_gone_beside(void **state) {
  (void)state;
  pool_bench bench;
  shared_card_open(&bench, &exact);
  keep_turn(&bench);
  const size_t before = lines(&bench);
  gm_reservation *held = hold(&bench, 40 * MIB);
  assert_false(is_shared(held));
  assert_int_equal(lines(&bench), before + 1);
  assert_int_equal(bench.host.last_level, GM_LOG_WARN);
  assert_non_null(strstr(bench.host.last_line, "another process holds its lock"));
  assert_int_equal(stranger_sees(&bench), 40 * MIB); /* who comes next is told no */
  gm_reservation *more = hold(&bench, MIB);
  assert_int_equal(stranger_sees(&bench), 41 * MIB);
  assert_int_equal(lines(&bench), before + 1); /* once */
  gm__promise_file_abandon(&stranger, &kept);
  assert_true(take(&bench, MIB));
  assert_true(is_shared(held) && is_shared(more));
  keep_turn(&bench);
  gm_reservation_cancel(more);
  assert_true(is_shared(held)); /* fewer bytes need nobody's word */
  assert_int_equal(stranger_sees(&bench), 40 * MIB);
  gm_reservation_cancel(hold(&bench, MIB));
  assert_int_equal(lines(&bench), before + 2); /* a new case */
  gm__promise_file_abandon(&stranger, &kept);
  gm_reservation_cancel(held);
  pool_bench_close(&bench);
}

/* With "require" the answer is no, with the reason. */
static void test_a_stopped_process_where_sharing_is_required(void **state) {
  (void)state;
  pool_bench bench;
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = MIB};
  gm_reservation *held = NULL;
  gm_error why = {.status = GM_OK};
  shared_card_share = "require";
  shared_card_open(&bench, &exact);
  keep_turn(&bench);
  assert_int_equal(gm_reserve(bench.device, &params, &held, &why), GM_ERR_TIMEOUT);
  assert_non_null(strstr(why.message, "another process"));
  assert_int_equal(stranger_sees(&bench), 0);
  gm__promise_file_abandon(&stranger, &kept);
  pool_bench_close(&bench);
}

/* The stranger's record, which it has locked, says 40 MiB from now on. */
static void race(void) {
  unsigned char record[GM__PROMISE_RECORD_BYTES];
  gm__promise promise = {.bytes = 40 * MIB, .owner = stranger.self};
  memcpy(promise.card, stranger.own[0].card, sizeof promise.card);
  gm__promise_pack(&promise, record);
  const off_t at = (off_t)gm__promise_at((uint32_t)stranger.own[0].record);
  assert_int_equal(__real_pwrite(stranger.keeper.fd, record, sizeof record, at), sizeof record);
}

/* Two go beside a stopped process at once. Whoever writes last sees the other one. */
static void test_two_that_go_beside_are_never_both_told_yes(void **state) {
  (void)state;
  pool_bench bench;
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = 40 * MIB};
  gm_reservation *held = NULL;
  gm_error why = {.status = GM_OK};
  shared_card_open(&bench, &exact);
  stranger_promises(&bench, 1);
  counted.writing = race;
  assert_int_equal(gm_reserve(bench.device, &params, &held, &why), GM_ERR_OVER_LIMIT);
  assert_int_equal(stranger_sees(&bench), 0);
  gm_reservation_cancel(hold(&bench, 24 * MIB));
  stranger_promises(&bench, 0);
  gm_reservation_cancel(hold(&bench, 64 * MIB));
  pool_bench_close(&bench);
}

/* ---- the file cannot be used ---- */

static void test_a_full_disk_is_told_later(void **state) {
  (void)state;
  pool_bench bench;
  shared_card_open(&bench, &exact);
  counted.fail = 1;
  const size_t before = lines(&bench);
  gm_reservation *held = hold(&bench, 40 * MIB);
  assert_false(is_shared(held));
  assert_int_equal(lines(&bench), before + 1);
  assert_non_null(strstr(bench.host.last_line, "full"));
  assert_true(take(&bench, MIB)); /* any turn tells it */
  assert_true(is_shared(held));
  assert_int_equal(stranger_sees(&bench), 40 * MIB);
  gm_reservation_cancel(held);
  pool_bench_close(&bench);
}

/* The file of another user, a folder, or another program's. */
static void test_a_file_of_somebody_else_is_named_once(void **state) {
  (void)state;
  static const char *words[] = {"other users", "no file of promises", "folder"};
  pool_bench bench;
  shared_card_open(&bench, &exact);
  for (int i = 0; i < 3; i++) {
    if (i == 2) assert_int_equal(mkdir(promise_path, 0700), 0);
    if (i < 2) temp_folder_write(&promise_folder, strrchr(promise_path, '/') + 1, "text", 4);
    if (i < 2) assert_int_equal(chmod(promise_path, i ? 0600 : 0644), 0);
    const size_t before = lines(&bench);
    gm_reservation *held = hold(&bench, 40 * MIB), *more = hold(&bench, MIB);
    assert_true(take(&bench, MIB));
    assert_false(is_shared(held) || is_shared(more));
    assert_int_equal(lines(&bench), before + 1);
    assert_non_null(strstr(bench.host.last_line, words[i]));
    gm_reservation_cancel(more);
    assert_int_equal(i < 2 ? unlink(promise_path) : rmdir(promise_path), 0);
    assert_true(take(&bench, MIB));
    assert_true(is_shared(held));
    assert_int_equal(stranger_sees(&bench), 40 * MIB);
    gm_reservation_cancel(held);
    assert_int_equal(unlink(promise_path), 0);
  }
  pool_bench_close(&bench);
}

/* A promise that ended while the file could not be written is taken back later. */
static void test_an_end_is_told_later(void **state) {
  (void)state;
  pool_bench bench;
  shared_card_open(&bench, &exact);
  gm_reservation *held = hold(&bench, 40 * MIB), *more = hold(&bench, MIB);
  counted.fail = 1;
  gm_reservation_cancel(held);
  assert_int_equal(stranger_sees(&bench), 41 * MIB);
  assert_true(take(&bench, MIB));
  assert_int_equal(stranger_sees(&bench), MIB);
  gm_reservation_cancel(more);
  assert_int_equal(stranger_sees(&bench), 0);
  pool_bench_close(&bench);
}

static void test_off_says_nothing(void **state) {
  (void)state;
  pool_bench bench;
  shared_card_share = "off";
  shared_card_open(&bench, &exact);
  const size_t before = lines(&bench);
  gm_reservation *held = hold(&bench, MIB);
  assert_false(is_shared(held));
  assert_true(lines(&bench) == before && counted.opens == 0);
  gm_reservation_cancel(held);
  pool_bench_close(&bench);
}

/* ---- adopted devices, and who holds the bytes ---- */

/* The name is the one that the system has for this program: valgrind's, under valgrind. */
static void expect_named(const char *text) {
  char name[GM__TASK_NAME], process[96];
  assert_true(gm__task_name(NULL, (uint32_t)getpid(), name));
  snprintf(process, sizeof process, ", %llu of them process %d (%s)", (unsigned long long)(40 * MIB), (int)getpid(),
           name);
  if (!strstr(text, process)) fail_msg("%s", text);
  assert_null(strstr(text, "cancel"));
}

/* The request is refused for the stranger's promise. */
static void expect_refused(pool_bench *bench) {
  const gm_request request = {.bytes = 32 * MIB};
  gm_block block;
  gm_explanation why = {.struct_size = sizeof why};
  assert_int_equal(gm_alloc(bench->pool, &request, &block), GM_ACQUIRE_OVER_LIMIT);
  pool_bench_ok(gm_explain(bench->pool, &request, &why, err));
  assert_int_equal(why.cause, GM_CAUSE_PROMISED);
  assert_int_equal(why.change, GM_CHANGE_FREE_ELSEWHERE);
  expect_named(why.text);
}

static void test_an_adopted_device_ignores_other_processes(void **state) {
  (void)state;
  pool_bench bench;
  shared_card_share = NULL;
  shared_card_open_adopted(&bench, &exact);
  stranger_promises(&bench, 40 * MIB);
  counted.opens = 0;
  assert_true(take(&bench, 32 * MIB));
  assert_true(take(&bench, 64 * MIB));
  assert_int_equal(counted.opens, 0);
  gm_memory_info memory = {.struct_size = sizeof memory};
  pool_bench_ok(gm_device_memory_info(bench.device, &memory, err));
  assert_int_equal(memory.promised_by_others_bytes, 40 * MIB); /* it is told all the same */
  assert_true(take(&bench, 64 * MIB));
  pool_bench_ok(gm_config_set(bench.ctx, "reserve.share", "require", err));
  gm_pool_params more = exact;
  more.name = "anew"; /* a new pool reads the configuration anew */
  gm_pool *pool = NULL;
  pool_bench_ok(gm_pool_create(bench.device, &more, &pool, err));
  expect_refused(&bench);
  assert_true(take(&bench, 16 * MIB));
  pool_bench_ok(gm_pool_destroy(pool, err));
  stranger_promises(&bench, 0);
  pool_bench_close(&bench);
}

/* A process that promises heeds promises, on any device. */
static void test_a_reservation_on_an_adopted_device(void **state) {
  (void)state;
  pool_bench bench;
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = 32 * MIB};
  gm_reservation *held = NULL;
  gm_error why = {.status = GM_OK};
  shared_card_share = NULL;
  shared_card_open_adopted(&bench, &exact);
  stranger_promises(&bench, 40 * MIB);
  assert_int_equal(gm_reserve(bench.device, &params, &held, &why), GM_ERR_OVER_LIMIT);
  expect_named(why.message);
  held = hold(&bench, 24 * MIB);
  assert_true(is_shared(held));
  assert_int_equal(stranger_sees(&bench), 24 * MIB);
  pool_bench_ok(gm_reservation_commit(held, bench.pool, err));
  assert_true(take(&bench, 16 * MIB));
  assert_int_equal(stranger_sees(&bench), 8 * MIB);
  gm_reservation_cancel(held);
  assert_int_equal(stranger_sees(&bench), 0);
  stranger_promises(&bench, 0);
  pool_bench_close(&bench);
}

/* The word of the configuration counts from the next reservation on. */
static void test_sharing_is_switched_on_a_live_device(void **state) {
  (void)state;
  static const char *const words[] = {"auto", "off", "require", "off", "auto"};
  pool_bench bench;
  shared_card_share = NULL;
  shared_card_open(&bench, &exact);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    const bool shared = strcmp(words[i], "off") != 0;
    pool_bench_ok(gm_config_set(bench.ctx, "reserve.share", words[i], err));
    gm_reservation *held = hold(&bench, 24 * MIB);
    assert_int_equal(is_shared(held), shared);
    assert_int_equal(stranger_sees(&bench), shared ? 24 * MIB : 0);
    gm_reservation_cancel(held);
  }
  pool_bench_close(&bench);
}

static void test_a_refusal_names_the_process(void **state) {
  (void)state;
  pool_bench bench;
  shared_card_open(&bench, &exact);
  stranger_promises(&bench, 40 * MIB);
  expect_refused(&bench);
  assert_true(take(&bench, 16 * MIB));
  stranger_promises(&bench, 0);
  assert_true(take(&bench, 64 * MIB));
  pool_bench_close(&bench);
}

/* In another container processes have other numbers. */
static void test_a_process_of_another_namespace_has_no_number(void **state) {
  (void)state;
  pool_bench bench;
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = 32 * MIB};
  gm_reservation *held = NULL;
  gm_error why = {.status = GM_OK};
  shared_card_open(&bench, &exact);
  stranger.self.space ^= 1;
  stranger_promises(&bench, 40 * MIB);
  assert_int_equal(gm_reserve(bench.device, &params, &held, &why), GM_ERR_OVER_LIMIT);
  assert_non_null(strstr(why.message, "41943040 of them another process)"));
  stranger_promises(&bench, 0);
  pool_bench_close(&bench);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, promise_folder_set_up, promise_folder_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_a_stopped_process_is_gone_beside),
                                     TEST(test_a_stopped_process_where_sharing_is_required),
                                     TEST(test_two_that_go_beside_are_never_both_told_yes),
                                     TEST(test_a_full_disk_is_told_later),
                                     TEST(test_a_file_of_somebody_else_is_named_once),
                                     TEST(test_an_end_is_told_later),
                                     TEST(test_off_says_nothing),
                                     TEST(test_an_adopted_device_ignores_other_processes),
                                     TEST(test_a_reservation_on_an_adopted_device),
                                     TEST(test_sharing_is_switched_on_a_live_device),
                                     TEST(test_a_refusal_names_the_process),
                                     TEST(test_a_process_of_another_namespace_has_no_number)};
  return cmocka_run_group_tests(tests, promise_folder_make, promise_folder_remove);
}
