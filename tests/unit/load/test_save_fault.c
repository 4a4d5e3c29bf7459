/* Each call with which a save changes files fails once, and the system refuses what it may refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/played_disk.h"

#include "support/save_versions.h"

static save_versions v;
static int first; /* the calls before those of the save that is looked at */

static int setup(void **state) {
  (void)state;
  save_versions_open(&v, "m.gguf");
  return 0;
}

static int teardown(void **state) {
  (void)state;
  played.on = false;
  save_versions_close(&v);
  return 0;
}

static int count_of(played_kind kind) {
  int count = 0;
  for (int i = first; i < played.count; i++) count += played.calls[i].kind == kind;
  return count;
}

static int calls(void) { return played.count - first; }

static bool call_was(int at, played_kind kind) { return at <= calls() && played.calls[first + at - 1].kind == kind; }

/* Saves version 2 over version 1, with call number `at` failing. Its status; what is there then is right. */
static gm_status with_fault(int at, int code, bool half) {
  gm_error err = {0};
  gm_save_result result = {.struct_size = sizeof result};
  played_empty(v.target.path);
  played_begin(NULL);
  assert_int_equal(save_version(&v, 1, NULL, NULL), GM_OK);
  first = played.count;
  played.fail_at = first + at;
  played.fail_code = code;
  played.fails_half = half;
  const gm_status status = save_version(&v, 2, &result, &err);
  played.on = false;
  const int found = save_found(v.path);
  if (status == GM_OK) assert_int_equal(found, 2);
  if (call_was(at, PLAYED_FOLDER) && status) {
    assert_int_equal(found, 2); /* only the disk does not know the name yet */
  } else if (status) {
    assert_int_equal(found, 1);
    assert_non_null(strstr(err.message, v.target.path));
  }
  if (status && call_was(at, PLAYED_WRITE)) assert_int_equal(count_of(PLAYED_SYNC), 0);
  return status;
}

static void sweep(int code, bool half) {
  int at = 1;
  do {
    const gm_status status = with_fault(at, code, half);
    assert_true(status == GM_OK || status == GM_ERR_IO || status == GM_ERR_NOT_FOUND || status == GM_ERR_BUSY);
    if (call_was(at, PLAYED_WRITE)) assert_int_equal(status, GM_ERR_IO);
  } while (calls() >= at++);
  assert_true(at > 12);
}

static void test_each_call_fails_once(void **state) {
  (void)state;
  sweep(EIO, false);
  sweep(ENOSPC, true); /* a short write, and then the disk is full */
}

/* Signals, a short write after which all is well, and a kind of write that the file system takes no longer. */
static void test_what_ends_no_save(void **state) {
  (void)state;
  static const int codes[] = {EINTR, EINVAL};
  for (int i = 0; i < 2; i++) {
    int at = 1, writes = 0;
    do {
      const gm_status status = with_fault(at, codes[i], true);
      if (!call_was(at, PLAYED_WRITE)) continue;
      assert_int_equal(status, GM_OK);
      writes++;
    } while (calls() >= at++);
    assert_true(writes > 5);
  }
}

static void fallocate_fails(int code, gm_status wanted, int writes_least) {
  int at = 1;
  do (void)with_fault(at, EIO, false);
  while (!call_was(at, PLAYED_CUT) && calls() >= at++);
  assert_int_equal(with_fault(at, code, false), wanted);
  assert_true(wanted ? count_of(PLAYED_WRITE) == 0 : count_of(PLAYED_WRITE) >= writes_least);
}

static void test_a_disk_without_room_is_told_before_the_first_byte(void **state) {
  (void)state;
  fallocate_fails(ENOSPC, GM_ERR_IO, 0);
  fallocate_fails(EOPNOTSUPP, GM_OK, 6); /* it gives no room beforehand */
  fallocate_fails(EPERM, GM_OK, 6);      /* a filter of calls forbids it */
  fallocate_fails(EINTR, GM_OK, 6);
}

static void test_a_file_system_without_direct_writes(void **state) {
  (void)state;
  gm_save_result result = {.struct_size = sizeof result};
  played_begin(NULL);
  first = 0;
  played.takes_no_direct = true;
  assert_int_equal(save_version(&v, 2, &result, NULL), GM_OK);
  played.on = false;
  assert_int_equal(result.direct_bytes, 0);
  assert_string_equal(result.why, "the file system takes no writes past its cache");
  assert_int_equal(save_found(v.path), 2);
  assert_true(result.peak_host_bytes <= 6 * (uint64_t)SAVE_PIECE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_each_call_fails_once, setup, teardown),
      cmocka_unit_test_setup_teardown(test_what_ends_no_save, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_disk_without_room_is_told_before_the_first_byte, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_file_system_without_direct_writes, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
