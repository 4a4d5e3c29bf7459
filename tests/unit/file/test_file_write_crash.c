/* A program that writes a checkpoint by gm_file_create is killed at any call, or the power goes. The earlier file or
 * the new one is there, whole. After gm_file_commit the new one is. A call that fails leaves one of them, too. Without
 * the calls that wait for the disk this test finds broken files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <sys/wait.h>

#include "gm/file.h"
#include "support/played_disk.h"

#include "support/file_bytes.h"

enum { VERSIONS = 3, PART = 5000, MOST = 5 * 4096 + VERSIONS * 3000, NO_FILE = 0, BROKEN = -1 };

static temp_folder target, left;
static char path[512], left_path[512];
static unsigned char bytes[MOST] __attribute__((aligned(4096)));
static played_state at;
static union {
  int done; /* the version of the last commit that was answered */
  unsigned char bytes[PLAYED_NOTE];
} note;

static uint64_t version_bytes(int version) { return 5 * 4096 + (uint64_t)version * 3000; }

/* From its end on, in parts that begin beside pages, and a page alone. */
static gm_status write_all(gm_file *file, int version, gm_error *err) {
  const uint64_t all = version_bytes(version);
  gm_status status = gm_file_write(file, 4096, bytes + 4096, 4096, err);
  for (uint64_t parts = all / PART + 1; parts-- && !status;) {
    const uint64_t from = parts * PART, most = all - from;
    status = gm_file_write(file, from, bytes + from, most < PART ? most : PART, err);
  }
  return status;
}

static gm_status write_version(int version, gm_error *err) {
  gm_file *file = NULL;
  for (uint64_t i = 0; i < version_bytes(version); i++) bytes[i] = file_byte((uint64_t)version, i);
  gm_status status = gm_file_create(path, version == 2 ? MOST : 0, GM_WAY_AUTO, &file, err);
  if (!status) status = write_all(file, version, err);
  if (!status) status = gm_file_commit(file, err);
  gm_file_close(file);
  return status;
}

static bool is_version(gm_file *file, int version) {
  static unsigned char found[MOST];
  const uint64_t size = gm_file_size(file);
  bool is = size == version_bytes(version) && gm_file_read(file, 0, found, size, NULL) == GM_OK;
  for (uint64_t i = 0; i < size && is; i++) is = found[i] == file_byte((uint64_t)version, i);
  return is;
}

static int version_at(const char *where) {
  gm_file *file = NULL;
  int found = BROKEN;
  const gm_status status = gm_file_open(where, GM_WAY_CACHE, &file, NULL);
  if (status) return status == GM_ERR_NOT_FOUND ? NO_FILE : BROKEN;
  for (int i = 1; i <= VERSIONS; i++) found = is_version(file, i) ? i : found;
  gm_file_close(file);
  return found;
}

static int setup(void **state) {
  (void)state;
  temp_folder_make(&target);
  temp_folder_make(&left);
  snprintf(path, sizeof path, "%s", temp_folder_join(&target, "checkpoint"));
  snprintf(left_path, sizeof left_path, "%s", temp_folder_join(&left, "checkpoint"));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  played.on = false;
  temp_folder_remove(&target);
  temp_folder_remove(&left);
  return 0;
}

static void write_versions(void) {
  gm_error err = {0};
  memset(&note, 0, sizeof note);
  played_begin(&note);
  for (int i = 1; i <= VERSIONS; i++) {
    if (write_version(i, &err)) fail_msg("%s", err.message);
    note.done = i;
  }
  played.on = false;
}

static bool is_broken(void) {
  int done = 0;
  memcpy(&done, played.calls[at.calls].note, sizeof done);
  const int found = version_at(left_path);
  return found != done && found != done + 1;
}

/* Every call is the last one, and `luck` times the power goes before it. */
static int broken_ends(int luck) {
  int broken = 0;
  while (at.calls < played.count) {
    for (int half = 0; half <= (played.calls[at.calls].kind == PLAYED_WRITE); half++) {
      played_end(&at, half, left.path);
      broken += is_broken();
    }
    for (int i = 0; i < luck; i++) {
      played_power_goes(&at, (uint64_t)(at.calls * 1000 + i), left.path);
      broken += is_broken();
    }
    played_step(&at);
  }
  played_state_free(&at);
  return broken;
}

static void test_power_that_goes(void **state) {
  (void)state;
  write_versions();
  assert_true(played.count > 12 * VERSIONS);
  assert_int_equal(broken_ends(8), 0);
}

static void test_the_player_sees_a_missing_sync(void **state) {
  (void)state;
  static const played_kind kinds[] = {PLAYED_SYNC, PLAYED_FOLDER};
  for (int i = 0; i < 2; i++) {
    played_empty(target.path);
    write_versions();
    for (int k = 0; k < played.count; k++) {
      if (played.calls[k].kind == kinds[i]) played.calls[k].kind = PLAYED_OTHER;
    }
    assert_true(broken_ends(8) > 0);
  }
}

/* A child is killed before a call, or in the middle of a write. False: it made fewer calls. */
static bool kill_at(int call, bool half) {
  int status = 0;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    played_begin(NULL);
    played.end_at = call;
    played.kills = true;
    played.ends_half = half;
    (void)write_version(2, NULL);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  const int found = version_at(path);
  assert_true(killed ? found == 1 || found == 2 : WIFEXITED(status) && found == 2);
  return killed;
}

static void test_a_process_that_is_killed(void **state) {
  (void)state;
  int kills = 0;
  for (int call = 1, more = 1; more; call++, kills += more) {
    assert_int_equal(write_version(1, NULL), GM_OK);
    more = kill_at(call, call % 2);
  }
  assert_true(kills > 12);
  assert_int_equal(write_version(3, NULL), GM_OK);
  assert_int_equal(version_at(path), 3);
  assert_int_equal(played_empty(target.path), 1); /* what the killed ones left is gone */
}

/* Version 2 over version 1, with call `number` of it failing. False: it made fewer calls. */
static bool fails_at(int number, int code, bool half) {
  gm_error err = {0};
  played_empty(target.path);
  played_begin(NULL);
  assert_int_equal(write_version(1, NULL), GM_OK);
  const int first = played.count;
  played.fail_at = first + number;
  played.fail_code = code;
  played.fails_half = half;
  const gm_status status = write_version(2, &err);
  played.on = false;
  const bool reached = first + number <= played.count;
  const played_kind kind = reached ? played.calls[first + number - 1].kind : PLAYED_OTHER;
  const int found = version_at(path);
  if (status == GM_OK) assert_int_equal(found, 2);
  if (status) assert_int_equal(found, kind == PLAYED_FOLDER ? 2 : 1);
  if (status) assert_non_null(strstr(err.message, target.path));
  if (kind == PLAYED_WRITE || kind == PLAYED_SYNC || kind == PLAYED_CUT) {
    assert_int_equal(status, code == EINTR ? GM_OK : GM_ERR_IO);
  }
  return reached;
}

static void test_each_call_fails_once(void **state) {
  (void)state;
  int number = 1;
  while (fails_at(number, EIO, false)) number++;
  assert_true(number > 12);
  for (number = 1; fails_at(number, ENOSPC, true);) number++;
  for (number = 1; fails_at(number, EINTR, true);) number++;
}

/* A write that failed is not forgotten: a later one that goes well does not make the file whole. */
static void test_a_failed_write_is_remembered(void **state) {
  (void)state;
  gm_error err = {0};
  gm_file *file = NULL;
  assert_int_equal(write_version(1, NULL), GM_OK);
  assert_int_equal(gm_file_create(path, 0, GM_WAY_AUTO, &file, NULL), GM_OK);
  played.on = true;
  played.fail_at = played.count + 1;
  played.fail_code = ENOSPC;
  assert_int_equal(gm_file_write(file, 0, bytes, 4096, &err), GM_ERR_IO);
  assert_int_equal(gm_file_write(file, 0, bytes, 4096, &err), GM_OK);
  assert_int_equal(gm_file_commit(file, &err), GM_ERR_IO);
  assert_non_null(strstr(err.message, "a write to the new file has failed"));
  played.on = false;
  gm_file_close(file);
  assert_int_equal(version_at(path), 1);
}

static void test_a_file_system_without_direct_writes(void **state) {
  (void)state;
  gm_file *file = NULL;
  played_begin(NULL);
  played.takes_no_direct = true;
  assert_int_equal(gm_file_create(path, 0, GM_WAY_AUTO, &file, NULL), GM_OK);
  assert_string_equal(gm_file_why(file), "the file system takes no writes past its cache");
  assert_int_equal(write_all(file, 1, NULL), GM_OK);
  assert_int_equal(gm_file_commit(file, NULL), GM_OK);
  gm_file_close(file);
  played.on = false;
  for (uint64_t i = 0; i < version_bytes(1); i++) bytes[i] = file_byte(1, i);
  assert_int_equal(write_version(1, NULL), GM_OK);
  assert_int_equal(version_at(path), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_power_that_goes, setup, teardown),
      cmocka_unit_test_setup_teardown(test_the_player_sees_a_missing_sync, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_process_that_is_killed, setup, teardown),
      cmocka_unit_test_setup_teardown(test_each_call_fails_once, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_failed_write_is_remembered, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_file_system_without_direct_writes, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
