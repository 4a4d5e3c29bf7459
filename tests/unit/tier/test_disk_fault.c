/* Each call with which a tier changes its file fails once. Promised values stay, for processes and on the
 * disk. After a sync that failed, nothing is promised until the tier was opened anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/played_disk.h"

#include "support/disk_script.h"
#include "support/great_many.h"

static union {
  script_promises known;
  unsigned char bytes[PLAYED_NOTE];
} fault_note;

static played_state fault_state;

/* The power goes now: every key has a version that may not be lost. */
static void fault_power(const disk_script *script, const disk_bench *bench, const int *kept, const int *begun) {
  temp_folder folder;
  const bool was_on = played.on;
  played.on = false;
  temp_folder_make(&folder);
  while (fault_state.calls < played.count) played_step(&fault_state);
  for (uint64_t luck = 0; luck < 2; luck++) {
    played_power_goes(&fault_state, luck + 9, folder.path);
    script_check(script, bench->ctx, temp_folder_join(&folder, "store"), kept, begun, NULL);
  }
  played_empty(folder.path);
  assert_int_equal(rmdir(folder.path), 0);
  played.on = was_on;
}

/* Runs the script with one call that fails. False: it made fewer calls. */
static bool fault_once(const disk_script *script, int at, int code, bool half) {
  disk_bench bench;
  int there[SCRIPT_KEYS] = {0};
  script_promises *known = &fault_note.known;
  memset(&fault_note, 0, sizeof fault_note);
  disk_bench_open(&bench, NULL);
  played_begin(&fault_note);
  played.fail_at = at;
  played.fail_code = code;
  played.fails_half = half;
  script_run(script, bench.ctx, bench.path, known);
  const bool reached = played.count >= at;
  played.fail_at = 0;
  fault_power(script, &bench, known->flushed, known->begun);
  script_check(script, bench.ctx, bench.path, known->done, known->begun, there); /* what was put is there */
  fault_power(script, &bench, there, there);                                     /* it was closed, so it stays */
  assert_int_equal(played_empty(bench.folder.path), 1);
  played.on = false;
  played_state_free(&fault_state);
  disk_bench_close(&bench);
  return reached;
}

/* Each call from `at` on. */
static void fault_everywhere(const disk_script *script, int code, bool half, int at) {
  const int every = great_many(50) < 50 ? 20 : 1;
  while (fault_once(script, at, code, half)) at += every;
  assert_true(at > script->steps);
}

static void test_each_call_fails_once(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    const disk_script script = {.seed = seed,
                                .largest = 3000,
                                .steps = 20,
                                .keys = SCRIPT_KEYS,
                                .durability = seed % 2 ? GM_TIER_DURABLE_AT_FLUSH : GM_TIER_DURABLE_AT_PUT};
    fault_everywhere(&script, seed < 3 ? EIO : ENOSPC, seed > 2, 1);
  }
}

static void test_each_call_of_a_compaction_fails_once(void **state) {
  (void)state;
  const disk_script script = {.seed = 6, .largest = (1 << 20) + 5, .steps = 14, .keys = 2};
  assert_false(fault_once(&script, PLAYED_CALLS, EIO, false));
  int at = 0;
  for (int made = 0; made < 2; at++) { /* the first file is the tier's */
    assert_true(at < played.count);
    made += played.calls[at].kind == PLAYED_MAKE;
  }
  fault_everywhere(&script, EIO, false, at);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_call_fails_once),
      cmocka_unit_test(test_each_call_of_a_compaction_fails_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
