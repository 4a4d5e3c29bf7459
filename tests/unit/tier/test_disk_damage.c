/* Damage, bad sectors, full disks and failed syncs cost what they hit, and nothing more. That is one value, one
 * compaction, or the promise of what was not synced. No older value comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>

#include "support/disk_bench.h"
#include "support/great_many.h"

enum { START = 4096, HEAD = 80, UNIT = 64, BIG = 9 << 20 };

/* ---- wrapped calls ---- */

static struct {
  off_t bad_from, bad_to; /* bytes that the disk does not give */
  off_t full_from;        /* where a file may not grow to; 0: it may */
  int syncs, fail_sync;   /* the number of the sync that fails; 0: none */
  int made;               /* side files */
} played;

ssize_t __real_pread(int fd, void *to, size_t bytes, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t bytes, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t at) {
  if (at >= played.bad_to || at + (off_t)bytes <= played.bad_from) return __real_pread(fd, to, bytes, at);
  errno = EIO;
  return -1;
}
ssize_t __wrap_pread64(int fd, void *to, size_t bytes, off_t at) { return __wrap_pread(fd, to, bytes, at); }

ssize_t __real_pwrite(int fd, const void *from, size_t bytes, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *from, size_t bytes, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at) {
  if (!played.full_from || played.made == 0 || at < played.full_from) return __real_pwrite(fd, from, bytes, at);
  errno = ENOSPC;
  return -1;
}
ssize_t __wrap_pwrite64(int fd, const void *from, size_t bytes, off_t at) { return __wrap_pwrite(fd, from, bytes, at); }

int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd) {
  (void)fd;
  if (++played.syncs != played.fail_sync) return 0;
  errno = EIO;
  return -1;
}

int __real_openat(int folder, const char *name, int flags, ...);
int __wrap_openat(int folder, const char *name, int flags, mode_t mode);
int __wrap_openat64(int folder, const char *name, int flags, mode_t mode);
int __wrap_openat(int folder, const char *name, int flags, mode_t mode) {
  played.made += (flags & O_CREAT) != 0;
  return __real_openat(folder, name, flags, mode);
}
int __wrap_openat64(int folder, const char *name, int flags, mode_t mode) {
  return __wrap_openat(folder, name, flags, mode);
}

/* ---- values ---- */

static disk_bench bench;

static int begin(void **state) {
  (void)state;
  memset(&played, 0, sizeof played);
  disk_bench_open(&bench, NULL);
  return 0;
}

static int end(void **state) {
  (void)state;
  disk_bench_close(&bench);
  return 0;
}

static gm_tier *open_tier(gm_tier_durability durability) {
  return disk_bench_tier(&bench, durability, GM_TIER_CODEC_NONE);
}

static void put_bytes(gm_tier *tier, const char *key, int byte, size_t count) {
  char *bytes = malloc(count);
  assert_non_null(bytes);
  memset(bytes, byte, count);
  const gm_tier_part part = {bytes, count};
  assert_int_equal(gm_tier_put(tier, key, strlen(key), &part, 1, NULL), GM_OK);
  free(bytes);
}

/* The answer of a get. `out` has room for 64 bytes; larger values are not read. */
static gm_status get(gm_tier *tier, const char *key, char *out) {
  gm_tier_value *value = NULL;
  uint64_t bytes = 0;
  memset(out, 0, 64);
  gm_status status = gm_tier_value_open(tier, key, strlen(key), &value, &bytes, NULL);
  if (!status) status = gm_tier_value_read(value, 0, out, bytes < 63 ? bytes : 63, NULL);
  gm_tier_value_close(value);
  return status;
}

static size_t find(const unsigned char *bytes, size_t count, const char *text) {
  const size_t length = strlen(text);
  for (size_t at = count - length; at > 0; at--) {
    if (memcmp(bytes + at, text, length) == 0) return at;
  }
  fail_msg("%s is not in the file", text);
  return 0;
}

/* ---- damage where each put is synced ---- */

/* The file of a process that ended without a close: k was put twice, and others behind it. */
static unsigned char *synced_file(size_t *out_count) {
  gm_tier *tier = open_tier(GM_TIER_DURABLE_AT_PUT);
  assert_int_equal(tier_put_text(tier, "k", "version-1"), GM_OK);
  assert_int_equal(tier_put_text(tier, "k", "version-2"), GM_OK);
  assert_int_equal(tier_put_text(tier, "o", "other"), GM_OK);
  unsigned char *bytes = disk_bench_bytes(bench.path, out_count);
  disk_bench_end(tier);
  return bytes;
}

static void test_no_flipped_bit_brings_an_older_value_back(void **state) {
  (void)state;
  size_t count, told = 0;
  char out[64];
  unsigned char *bytes = synced_file(&count);
  const size_t value = find(bytes, count, "version-2");
  const size_t every = great_many(50) < 50 ? 9 : 1; /* no divisor of 8: so each bit of a byte has its turn */
  for (size_t at = START; at < count; at += every) {
    bytes[at] ^= (unsigned char)(1 << at % 8);
    disk_bench_write(bench.path, bytes, count);
    for (int round = 0; round < 2; round++) {
      gm_tier *tier = open_tier(GM_TIER_DURABLE_AT_FLUSH);
      const gm_status status = get(tier, "k", out);
      if (status) assert_true(status == GM_ERR_DAMAGED || status == GM_ERR_NOT_FOUND);
      if (!status) assert_string_equal(out, "version-2");
      if (at >= value && at < value + 9) assert_int_equal(status, GM_ERR_DAMAGED);
      told += status != GM_OK;
      disk_bench_end(tier);
    }
    bytes[at] ^= (unsigned char)(1 << at % 8);
  }
  assert_true(told > 2 * 80 / every); /* the head, the key and the value of one record, twice */
  free(bytes);
}

/* ---- sectors that cannot be read ---- */

/* "first" has a page that can go bad, 4 values lie behind it, and all is flushed. */
static void make_sectors(void) {
  gm_tier *tier = open_tier(GM_TIER_DURABLE_AT_FLUSH);
  put_bytes(tier, "first", 'f', 30000);
  for (char key[2] = "a"; *key < 'e'; ++*key) assert_int_equal(tier_put_text(tier, key, "behind it"), GM_OK);
  disk_bench_end(tier);
}

static void check_behind(gm_tier *tier) {
  for (char key[2] = "a"; *key < 'e'; ++*key) tier_expect_text(tier, key, "behind it");
}

static void test_a_bad_sector_costs_one_value(void **state) {
  (void)state;
  char out[64];
  make_sectors();
  played.bad_from = 2 * START;
  played.bad_to = 3 * START;
  gm_tier *tier = open_tier(GM_TIER_DURABLE_AT_FLUSH);
  check_behind(tier);
  for (int i = 0; i < 3; i++) {
    put_bytes(tier, "big", 'b', BIG);
    assert_int_equal(tier_put_text(tier, "big", "small"), GM_OK);
    assert_int_equal(gm_tier_flush(tier, NULL), GM_OK);
    assert_true(disk_bench_stats(tier).stored_bytes < BIG); /* it was compacted */
    check_behind(tier);
    assert_int_equal(get(tier, "first", out), GM_ERR_DAMAGED);
    played.bad_from = played.bad_to = 0;
  }
  assert_int_equal(disk_bench_stats(tier).damaged, 1);
  assert_int_equal(tier_put_text(tier, "first", "again"), GM_OK);
  assert_int_equal(gm_tier_flush(tier, NULL), GM_OK); /* there is no record that it could mark dead */
  disk_bench_end(tier);
  size_t count;
  unsigned char *bytes = disk_bench_bytes(bench.path, &count);
  assert_memory_equal(bytes, bytes + START / 2, 32);
  free(bytes);
  tier = open_tier(GM_TIER_DURABLE_AT_FLUSH);
  check_behind(tier);
  tier_expect_text(tier, "first", "again");
  assert_int_equal(disk_bench_stats(tier).damaged, 0);
  disk_bench_end(tier);
}

/* Each page of a file goes bad, also that of values which were not flushed. When it can be read again, all is there. */
static void test_a_sector_that_is_bad_for_a_while_loses_nothing(void **state) {
  (void)state;
  char out[64];
  size_t count;
  int refused = 0, opened = 0;
  make_sectors();
  gm_tier *tier = open_tier(GM_TIER_DURABLE_AT_FLUSH);
  put_bytes(tier, "late", 'l', 9000);
  assert_int_equal(tier_put_text(tier, "last", "one"), GM_OK);
  unsigned char *bytes = disk_bench_bytes(bench.path, &count);
  disk_bench_end(tier);
  for (off_t bad = START; bad < (off_t)count; bad += START) {
    disk_bench_write(bench.path, bytes, count);
    played.bad_from = bad;
    played.bad_to = bad + START;
    for (int reads = 1; reads >= 0; reads--) {
      const gm_tier_params params = {.struct_size = sizeof params, .read_only = reads};
      const gm_status status = gm_tier_open(bench.ctx, "disk", bench.path, &params, &tier, NULL);
      if (status) assert_true(status == GM_ERR_IO && !reads);
      refused += status != GM_OK;
      opened += status == GM_OK;
      if (status) continue;
      const gm_status late = get(tier, "late", out), last = get(tier, "last", out);
      assert_true(!late || !last || disk_bench_stats(tier).damaged > 0);
      disk_bench_end(tier);
    }
    played.bad_from = played.bad_to = 0;
    tier = open_tier(GM_TIER_DURABLE_AT_FLUSH);
    check_behind(tier);
    assert_int_equal(get(tier, "first", out), GM_OK);
    assert_int_equal(get(tier, "late", out), GM_OK);
    tier_expect_text(tier, "last", "one");
    disk_bench_end(tier);
  }
  assert_true(refused > 0 && opened > 10);
  free(bytes);
}

/* ---- bytes that were moved ---- */

/* Opens for writing what has `put` zeros more at a place, or that many bytes less where it is negative. The tier is
 * refused as it is, or no byte of a flushed value is cut, and what is missing is told. */
static void check_moved(const unsigned char *bytes, size_t count, size_t at, int put) {
  unsigned char *moved = calloc(1, count + 2 * UNIT);
  assert_non_null(moved);
  const size_t skip = put < 0 ? (size_t)-put : 0, more = put > 0 ? (size_t)put : 0, length = count - skip + more;
  memcpy(moved, bytes, at);
  memcpy(moved + at + more, bytes + at + skip, count - at - skip);
  disk_bench_write(bench.path, moved, length);
  gm_tier *tier = NULL;
  char out[64];
  const gm_status status = gm_tier_open(bench.ctx, "disk", bench.path, NULL, &tier, NULL);
  if (status) assert_int_equal(status, GM_ERR_FORMAT);
  if (!status) {
    const bool both = !get(tier, "k", out) && !get(tier, "o", out);
    if (!both) assert_true(disk_bench_stats(tier).damaged > 0);
    disk_bench_end(tier);
  }
  size_t left;
  unsigned char *after = disk_bench_bytes(bench.path, &left);
  if (status) assert_int_equal(left, length);
  if (status) assert_memory_equal(after, moved, length);
  if (put > 0) {
    find(after, left, "version-2");
    find(after, left, "the other");
  }
  free(after);
  free(moved);
}

static void test_a_file_whose_bytes_were_moved_is_not_cut(void **state) {
  (void)state;
  size_t count;
  gm_tier *tier = open_tier(GM_TIER_DURABLE_AT_FLUSH);
  assert_int_equal(tier_put_text(tier, "k", "version-2"), GM_OK);
  assert_int_equal(tier_put_text(tier, "o", "the other"), GM_OK);
  disk_bench_end(tier);
  unsigned char *bytes = disk_bench_bytes(bench.path, &count);
  for (size_t at = UNIT; at < START; at += UNIT) check_moved(bytes, count, at, UNIT);
  for (size_t at = UNIT; at + UNIT < count; at += UNIT) check_moved(bytes, count, at, -UNIT);
  for (size_t at = START; at < START + 4 * UNIT; at += UNIT) check_moved(bytes, count, at, UNIT);
  for (int put = 1; put < UNIT; put += 7) check_moved(bytes, count, 100, put);
  free(bytes);
}

/* The file is cut in the value of its last flushed record. Later values grow over that record's end. */
static void test_a_record_that_was_cut_stays_gone(void **state) {
  (void)state;
  size_t count;
  gm_tier *tier = open_tier(GM_TIER_DURABLE_AT_FLUSH);
  assert_int_equal(tier_put_text(tier, "a", "one"), GM_OK);
  put_bytes(tier, "long", 'l', 2000);
  disk_bench_end(tier);
  unsigned char *bytes = disk_bench_bytes(bench.path, &count);
  disk_bench_write(bench.path, bytes, count - 1000);
  tier = open_tier(GM_TIER_DURABLE_AT_FLUSH);
  for (char key[2] = "m"; *key < 'z'; ++*key) assert_int_equal(tier_put_text(tier, key, "put later"), GM_OK);
  disk_bench_end(tier);
  tier = open_tier(GM_TIER_DURABLE_AT_FLUSH);
  tier_expect_text(tier, "a", "one");
  tier_expect_none(tier, "long", 4);
  for (char key[2] = "m"; *key < 'z'; ++*key) tier_expect_text(tier, key, "put later");
  disk_bench_end(tier);
  free(bytes);
}

/* ---- syncs that fail ---- */

static void test_a_failed_sync_stays_failed(void **state) {
  (void)state;
  for (int durability = GM_TIER_DURABLE_AT_FLUSH; durability <= GM_TIER_DURABLE_AT_PUT; durability++) {
    gm_tier *tier = open_tier((gm_tier_durability)durability);
    gm_error err;
    assert_int_equal(tier_put_text(tier, "k0", "v0"), GM_OK);
    assert_int_equal(gm_tier_flush(tier, NULL), GM_OK);
    played.fail_sync = played.syncs + 1;
    const gm_status put = tier_put_text(tier, "k1", "v1");
    assert_int_equal(put, durability == GM_TIER_DURABLE_AT_PUT ? GM_ERR_IO : GM_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(gm_tier_flush(tier, &err), GM_ERR_IO);
    assert_non_null(strstr(err.message, "close and open the tier"));
    assert_int_equal(tier_put_text(tier, "k2", "v2"), GM_ERR_IO);
    assert_int_equal(gm_tier_remove(tier, "k0", 2, NULL), GM_ERR_IO);
    tier_expect_text(tier, "k0", "v0");
    if (!put) tier_expect_text(tier, "k1", "v1");
    assert_int_equal(gm_tier_close(tier, NULL), GM_ERR_IO);
    tier = open_tier((gm_tier_durability)durability);
    tier_expect_text(tier, "k0", "v0");
    if (!put) tier_expect_text(tier, "k1", "v1");
    assert_int_equal(tier_put_text(tier, "k2", "v2"), GM_OK);
    assert_int_equal(gm_tier_flush(tier, NULL), GM_OK);
    disk_bench_end(tier);
    unlink(bench.path);
  }
}

/* ---- compactions ---- */

static void test_a_compaction_without_room_fails_no_flush(void **state) {
  (void)state;
  gm_tier *tier = open_tier(GM_TIER_DURABLE_AT_FLUSH);
  put_bytes(tier, "big", 'b', BIG);
  assert_int_equal(tier_put_text(tier, "big", "small"), GM_OK);
  assert_int_equal(tier_put_text(tier, "k", "kept"), GM_OK);
  played.made = 0;
  played.full_from = START; /* of the side file, once it is made */
  assert_int_equal(gm_tier_flush(tier, NULL), GM_OK);
  played.full_from = 0;
  assert_int_equal(played.made, 1);
  for (int i = 0; i < 9; i++) { /* it is not tried again at once */
    assert_int_equal(tier_put_text(tier, "k", "kept"), GM_OK);
    assert_int_equal(gm_tier_flush(tier, NULL), GM_OK);
  }
  assert_int_equal(played.made, 1);
  put_bytes(tier, "big", 'b', BIG);
  assert_int_equal(tier_put_text(tier, "big", "small"), GM_OK);
  assert_int_equal(gm_tier_flush(tier, NULL), GM_OK); /* but it is when more is dead */
  assert_int_equal(played.made, 2);
  assert_true(disk_bench_stats(tier).stored_bytes < BIG);
  tier_expect_text(tier, "k", "kept");
  disk_bench_end(tier);
}

static void test_a_tier_that_nobody_flushes_does_not_grow(void **state) {
  (void)state;
  for (int durability = 0; durability <= GM_TIER_DURABLE_NEVER; durability++) {
    gm_tier *tier = open_tier((gm_tier_durability)durability);
    assert_int_equal(tier_put_text(tier, "k", "kept"), GM_OK);
    for (int i = 0; i < 10; i++) {
      put_bytes(tier, "big", i, BIG);
      assert_true(disk_bench_stats(tier).stored_bytes < 9 * (uint64_t)BIG);
    }
    tier_expect_text(tier, "k", "kept");
    disk_bench_end(tier);
    unlink(bench.path);
  }
}

int main(void) {
#define DAMAGE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)
  const struct CMUnitTest tests[] = {
      DAMAGE_TEST(test_no_flipped_bit_brings_an_older_value_back),
      DAMAGE_TEST(test_a_bad_sector_costs_one_value),
      DAMAGE_TEST(test_a_sector_that_is_bad_for_a_while_loses_nothing),
      DAMAGE_TEST(test_a_file_whose_bytes_were_moved_is_not_cut),
      DAMAGE_TEST(test_a_record_that_was_cut_stays_gone),
      DAMAGE_TEST(test_a_failed_sync_stays_failed),
      DAMAGE_TEST(test_a_compaction_without_room_fails_no_flush),
      DAMAGE_TEST(test_a_tier_that_nobody_flushes_does_not_grow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
