/* Files beside that of a disk tier. Those of others are left alone, and gm's own are removed when nobody needs them. A
 * new file is open to those who could open the old one, never to more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "support/disk_bench.h"
#include "support/no_sync.h"

static bool owner_is_refused; /* fchown answers EPERM */

int __real_fchown(int fd, uid_t owner, gid_t group);
int __wrap_fchown(int fd, uid_t owner, gid_t group);
int __wrap_fchown(int fd, uid_t owner, gid_t group) {
  if (!owner_is_refused) return __real_fchown(fd, owner, group);
  errno = EPERM;
  return -1;
}

static gm_tier *open_tier(const disk_bench *bench) {
  return disk_bench_tier(bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_NONE);
}

static bool is_there(const char *path) { return access(path, F_OK) == 0; }

static void compact(gm_tier *tier) {
  enum { BIG = 9 << 20 };
  char *bytes = calloc(1, BIG);
  assert_non_null(bytes);
  const gm_tier_part part = {bytes, BIG};
  assert_int_equal(gm_tier_put(tier, "big", 3, &part, 1, NULL), GM_OK);
  assert_int_equal(tier_put_text(tier, "big", "small"), GM_OK);
  assert_int_equal(gm_tier_flush(tier, NULL), GM_OK);
  assert_true(disk_bench_stats(tier).stored_bytes < BIG);
  free(bytes);
}

static void test_a_tier_whose_name_ends_so(void **state) {
  (void)state;
  disk_bench bench;
  disk_bench_open(&bench, NULL);
  disk_bench beside = bench;
  beside.path = temp_folder_join(&bench.folder, "store.compact");
  gm_tier *other = open_tier(&beside), *tier = open_tier(&bench);
  assert_int_equal(tier_put_text(other, "x", "precious"), GM_OK);
  compact(tier);
  disk_bench_end(tier);
  disk_bench_end(other);
  disk_bench_end(open_tier(&bench)); /* also while nobody has it open */
  other = open_tier(&beside);
  tier_expect_text(other, "x", "precious");
  disk_bench_end(other);
  unlink(beside.path);
  disk_bench_close(&bench);
}

static void test_a_link_beside_it_is_not_followed(void **state) {
  (void)state;
  static const char *const names[] = {"store.compact", "store.0123456789abcdef.compact"};
  disk_bench bench;
  size_t count;
  disk_bench_open(&bench, NULL);
  const char *letter = temp_folder_write(&bench.folder, "letter", "somebody's", 10);
  for (size_t i = 0; i < 2; i++) {
    const char *beside = temp_folder_join(&bench.folder, names[i]);
    assert_int_equal(symlink("letter", beside), 0);
    gm_tier *tier = open_tier(&bench);
    compact(tier);
    disk_bench_end(tier);
    unsigned char *bytes = disk_bench_bytes(letter, &count);
    assert_int_equal(count, 10);
    assert_memory_equal(bytes, "somebody's", 10);
    free(bytes);
    assert_int_equal(unlink(beside), 0);
    unlink(bench.path);
  }
  unlink(letter);
  disk_bench_close(&bench);
}

/* The name of a side file that a file with this beginning had. */
static const char *side_path(disk_bench *bench, const unsigned char *file) {
  char name[80];
  uint64_t number = 0;
  for (int i = 7; i >= 0; i--) number = number << 8 | file[16 + i];
  snprintf(name, sizeof name, "store.%016llx.compact", (unsigned long long)number);
  return temp_folder_join(&bench->folder, name);
}

static void test_what_a_crash_left_goes(void **state) {
  (void)state;
  disk_bench bench;
  gm_tier *tier = NULL;
  size_t count;
  const gm_tier_params reads = {.struct_size = sizeof reads, .read_only = true};
  disk_bench_open(&bench, NULL);
  disk_bench_end(open_tier(&bench));
  unsigned char *file = disk_bench_bytes(bench.path, &count);
  unlink(bench.path);
  disk_bench_end(open_tier(&bench)); /* with another number */
  const char *side = side_path(&bench, file);
  disk_bench_write(side, file, count);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, &reads, &tier, NULL), GM_OK);
  assert_true(is_there(side)); /* who reads changes nothing */
  disk_bench_end(tier);
  const int fd = open(side, O_RDWR);
  assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
  disk_bench_end(open_tier(&bench));
  assert_true(is_there(side)); /* somebody is at work */
  close(fd);
  disk_bench_end(open_tier(&bench));
  assert_false(is_there(side));
  unlink(bench.path);
  disk_bench_write(side, file, count);
  disk_bench_end(open_tier(&bench)); /* also where the tier was not there yet */
  assert_false(is_there(side));
  free(file);
  disk_bench_close(&bench);
}

static void test_what_is_not_gms_stays(void **state) {
  (void)state;
  disk_bench bench;
  size_t count;
  disk_bench_open(&bench, NULL);
  temp_folder folder = bench.folder; /* for many names */
  disk_bench_end(open_tier(&bench));
  unsigned char *file = disk_bench_bytes(bench.path, &count);
  const char *own = side_path(&bench, file);
  static const char *const names[] = {"store.0123456789abcdef.compact", "store.0123456789abcdef.compact2",
                                      "store.compact", "stor.0123456789abcdef.compact"};
  disk_bench_write(own, "a letter", 8); /* the right name, and no tier */
  for (size_t i = 0; i < 4; i++) disk_bench_write(temp_folder_join(&folder, names[i]), file, count);
  disk_bench_end(open_tier(&bench));
  for (size_t i = 0; i < 4; i++) assert_int_equal(unlink(temp_folder_join(&folder, names[i])), 0);
  assert_int_equal(unlink(side_path(&bench, file)), 0);
  free(file);
  disk_bench_close(&bench);
}

static void test_who_reads_makes_nothing(void **state) {
  (void)state;
  disk_bench bench;
  gm_tier *tier = NULL;
  const gm_tier_params reads = {.struct_size = sizeof reads, .read_only = true};
  disk_bench_open(&bench, NULL);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, &reads, &tier, NULL), GM_ERR_NOT_FOUND);
  assert_false(is_there(bench.path));
  disk_bench_write(bench.path, "", 0);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, &reads, &tier, NULL), GM_ERR_FORMAT);
  disk_bench_close(&bench); /* there is nothing else in the folder */
}

/* ---- who may open the file ---- */

static struct stat stat_of(const char *path) {
  struct stat st;
  assert_int_equal(stat(path, &st), 0);
  return st;
}

static void test_mode_and_owner_stay(void **state) {
  (void)state;
  disk_bench bench;
  const gid_t group = geteuid() == 0 ? 12345 : getegid();
  disk_bench_open(&bench, NULL);
  gm_tier *tier = open_tier(&bench);
  assert_int_equal(stat_of(bench.path).st_mode & 07777, 0600);
  assert_int_equal(chown(bench.path, (uid_t)-1, group), 0);
  assert_int_equal(chmod(bench.path, 0664), 0);
  const struct stat before = stat_of(bench.path);
  compact(tier);
  const struct stat after = stat_of(bench.path);
  assert_true(before.st_ino != after.st_ino); /* it is another file */
  assert_int_equal(after.st_mode, before.st_mode);
  assert_int_equal(after.st_gid, group);
  assert_int_equal(after.st_uid, before.st_uid);
  owner_is_refused = true; /* the group is another one: it may not do what the old one might */
  compact(tier);
  assert_int_equal(stat_of(bench.path).st_mode & 07777, 0604);
  owner_is_refused = false;
  disk_bench_end(tier);
  disk_bench_close(&bench);
}

static void test_a_list_of_users_stays(void **state) {
  static const char list[] = "system.posix_acl_access";
  /* version 2; owner rw, user 12345 r, group none, mask r, others none */
  static const unsigned char wanted[] = {2, 0,    0,    0,    1,    0,    6,  0, 0xff, 0xff, 0xff, 0xff, 2,    0,   4,
                                         0, 0x39, 0x30, 0,    0,    4,    0,  0, 0,    0xff, 0xff, 0xff, 0xff, 16,  0,
                                         4, 0,    0xff, 0xff, 0xff, 0xff, 32, 0, 0,    0,    0xff, 0xff, 0xff, 0xff};
  unsigned char has[256];
  disk_bench bench;
  (void)state;
  disk_bench_open(&bench, NULL);
  gm_tier *tier = open_tier(&bench);
  const bool known = setxattr(bench.path, list, wanted, sizeof wanted, 0) == 0;
  if (known) {
    const mode_t mode = stat_of(bench.path).st_mode;
    compact(tier);
    assert_int_equal(getxattr(bench.path, list, has, sizeof has), sizeof wanted);
    assert_memory_equal(has, wanted, sizeof wanted);
    assert_int_equal(stat_of(bench.path).st_mode, mode);
  }
  disk_bench_end(tier);
  disk_bench_close(&bench);
  if (!known) skip(); /* the file system has no such lists */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_tier_whose_name_ends_so), cmocka_unit_test(test_a_link_beside_it_is_not_followed),
      cmocka_unit_test(test_what_a_crash_left_goes),    cmocka_unit_test(test_what_is_not_gms_stays),
      cmocka_unit_test(test_who_reads_makes_nothing),   cmocka_unit_test(test_mode_and_owner_stay),
      cmocka_unit_test(test_a_list_of_users_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
