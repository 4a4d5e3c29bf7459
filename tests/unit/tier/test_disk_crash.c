/* The tier of a file when its process ends at any call, or the power goes. Promised values are whole. Others are
 * whole, older or missing, and nothing is ever wrong. The script runs once, on a played disk. Then each of its calls
 * is the last one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sys/wait.h>

#include "support/played_disk.h"

#include "support/disk_script.h"
#include "support/great_many.h"

typedef struct crash_bench {
  disk_bench bench;   /* where the script runs */
  temp_folder folder; /* what is left of it */
  const char *path;   /* of the tier that is left */
  disk_script script;
  union {
    script_promises known;
    unsigned char bytes[PLAYED_NOTE];
  } note;
  played_state state; /* before the call that is looked at */
} crash_bench;

static crash_bench crash;

static void crash_run(const disk_script *script) {
  crash.script = *script;
  memset(&crash.note, 0, sizeof crash.note);
  disk_bench_open(&crash.bench, NULL);
  temp_folder_make(&crash.folder);
  crash.path = temp_folder_join(&crash.folder, "store");
  played_begin(&crash.note);
  assert_int_equal(script_run(script, crash.bench.ctx, crash.bench.path, &crash.note.known), GM_OK);
  played.on = false;
}

static void crash_end(void) {
  played_state_free(&crash.state);
  played_empty(crash.folder.path);
  assert_int_equal(rmdir(crash.folder.path), 0);
  disk_bench_close(&crash.bench);
}

/* The promises that were made before the next call. */
static script_promises crash_known(void) {
  script_promises known;
  memcpy(&known, played.calls[crash.state.calls].note, sizeof known);
  return known;
}

/* A side file is gone when a writer opened the tier. One without a beginning may stay: nobody knows whose it is. */
static void crash_check_folder(void) {
  DIR *stream = opendir(crash.folder.path);
  assert_non_null(stream);
  for (struct dirent *entry; (entry = readdir(stream));) {
    struct stat st;
    if (entry->d_name[0] == '.' || strcmp(entry->d_name, "store") == 0) continue;
    assert_int_equal(fstatat(dirfd(stream), entry->d_name, &st, 0), 0);
    assert_true(st.st_size <= 4096);
  }
  closedir(stream);
}

/* Checks what is left, also after it was closed well. */
static void crash_check(bool power) {
  const script_promises known = crash_known();
  int there[SCRIPT_KEYS];
  script_check(&crash.script, crash.bench.ctx, crash.path, power ? known.flushed : known.done, known.begun, there);
  crash_check_folder();
  script_check(&crash.script, crash.bench.ctx, crash.path, there, there, NULL);
}

static void crash_process_ends(void) {
  const bool writes = played.calls[crash.state.calls].kind == PLAYED_WRITE;
  for (int half = 0; half <= writes; half++) {
    played_end(&crash.state, half, crash.folder.path);
    crash_check(false);
  }
}

static void crash_power_goes(void) {
  const uint64_t most = crash.script.largest >= SCRIPT_WHOLE ? 2 : 4; /* large files take long */
  for (uint64_t luck = 0; luck < most; luck++) {
    played_power_goes(&crash.state, (uint64_t)crash.state.calls * 4 + luck, crash.folder.path);
    crash_check(true);
  }
}

/* Goes through all calls, and looks before each `every`th one. */
static void crash_everywhere(void (*look)(void), int every) {
  if (great_many(50) < 50) every *= 20;
  while (crash.state.calls < played.count) {
    if (crash.state.calls % every == 0) look();
    played_step(&crash.state);
  }
  played_state_free(&crash.state);
}

static void test_the_process_ends_at_any_call(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    const disk_script script = {.seed = seed,
                                .largest = 3000,
                                .steps = 26,
                                .keys = SCRIPT_KEYS,
                                .durability = seed == 4 ? GM_TIER_DURABLE_AT_PUT : GM_TIER_DURABLE_AT_FLUSH};
    crash_run(&script);
    assert_true(played.count > 2 * script.steps);
    crash_everywhere(crash_process_ends, 1);
    crash_end();
  }
}

static void test_the_power_goes_at_any_call(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    const disk_script script = {.seed = seed,
                                .largest = 2000,
                                .steps = 26,
                                .keys = SCRIPT_KEYS,
                                .durability = seed % 2 ? GM_TIER_DURABLE_AT_FLUSH : GM_TIER_DURABLE_AT_PUT};
    crash_run(&script);
    crash_everywhere(crash_power_goes, 1);
    crash_end();
  }
}

/* ---- compactions ---- */

/* From where a side file is made until a while after it has its name. */
static bool crash_compacts_here(void) {
  int made = 0, given = 0;
  for (int i = 0; i <= crash.state.calls; i++) {
    const played_call *call = &played.calls[i];
    if (call->kind == PLAYED_MAKE) made = i;
    if (call->kind == PLAYED_NAME_GIVEN && i + 3 < crash.state.calls) given = i;
  }
  return made > given;
}

static int crash_looked;

static void crash_compaction_ends(void) {
  if (!crash_compacts_here()) return;
  crash_looked++;
  crash_process_ends();
}

static void crash_compaction_power(void) {
  if (!crash_compacts_here()) return;
  crash_looked++;
  crash_power_goes();
}

static int crash_compactions(void) {
  int given = 0;
  for (int i = 0; i < played.count; i++) given += played.calls[i].kind == PLAYED_NAME_GIVEN;
  return given - 1; /* the first one made the tier */
}

static void test_a_compaction_that_does_not_end(void **state) {
  (void)state;
  for (int durability = GM_TIER_DURABLE_AT_FLUSH; durability <= GM_TIER_DURABLE_AT_PUT; durability++) {
    const disk_script script = {
        .durability = (gm_tier_durability)durability, .seed = 6, .largest = (1 << 20) + 5, .steps = 24, .keys = 2};
    crash_looked = 0;
    crash_run(&script);
    assert_true(crash_compactions() >= 1);
    if (durability == GM_TIER_DURABLE_AT_FLUSH) crash_everywhere(crash_compaction_ends, 1);
    crash_everywhere(crash_compaction_power, 1);
    assert_true(crash_looked > 10 || great_many(50) < 50);
    crash_end();
  }
}

/* ---- as it is played, so it is ---- */

/* Runs the script in a child that ends before call `at`. Returns whether it did. */
static bool real_end(const disk_script *script, int at) {
  disk_bench bench;
  int status = -1;
  disk_bench_open(&bench, NULL);
  const pid_t child = fork();
  if (child == 0) {
    gm_context *ctx = NULL;
    script_promises promises = {.opened = 0};
    if (gm_context_create(NULL, &ctx, NULL)) _exit(2);
    played_begin(NULL);
    played.end_at = at;
    _exit(script_run(script, ctx, bench.path, &promises) ? 3 : 0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == PLAYED_ENDED));
  if (WEXITSTATUS(status) == PLAYED_ENDED) {
    script_promises known;
    memcpy(&known, played.calls[at - 1].note, sizeof known);
    script_check(script, bench.ctx, bench.path, known.done, known.begun, NULL);
  }
  played_empty(bench.folder.path);
  disk_bench_close(&bench);
  return WEXITSTATUS(status) == PLAYED_ENDED;
}

static void test_real_processes_end(void **state) {
  (void)state;
  const disk_script script = {.seed = 3, .largest = 3000, .steps = 26, .keys = SCRIPT_KEYS};
  const int every = great_many(50) < 50 ? 40 : 10;
  crash_run(&script); /* for the notes */
  int at = 1;
  while (real_end(&script, at)) at += every;
  assert_true(at > played.count && at <= played.count + every);
  crash_end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_process_ends_at_any_call),
      cmocka_unit_test(test_the_power_goes_at_any_call),
      cmocka_unit_test(test_a_compaction_that_does_not_end),
      cmocka_unit_test(test_real_processes_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
