/* One process owns the name of a disk tier. Others open, make or compact at the same moment; there are links, folders
 * that change, and files that others put beside it. The calls of the second process run in the middle of the first
 * one's, always at the same place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "support/disk_bench.h"
#include "support/no_sync.h"

enum { BIG = 9 << 20 }; /* a flush compacts when it is dead */

/* ---- wrapped calls ---- */

static struct {
  void (*at_lock)(void);    /* runs once, before the next lock is taken */
  void (*at_name)(void);    /* runs once, before the next new file gets its name */
  int rename_code;          /* what renameat2 answers; 0: it is asked */
  int link_code, sync_code; /* linkat, syncfs */
  bool link_first;          /* a link to "letter" has the name of each file that is made */
  bool same_first;          /* "letter" itself has that name, too */
  bool rename_lies;         /* renameat renames, and answers a failure */
  bool folder_is_closed;    /* folders may be passed, and not read */
  int links, whole_syncs;
} played;

/* In a thread of its own, as another process would have it: with no lock of gm's held. */
static void *other_run(void *work) {
  (*(void (**)(void))work)();
  return NULL;
}

static void other(void (**once)(void)) {
  void (*work)(void) = *once;
  pthread_t thread;
  *once = NULL;
  if (!work) return;
  assert_int_equal(pthread_create(&thread, NULL, other_run, &work), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);
int __wrap_flock(int fd, int how) {
  if (!(how & LOCK_UN)) other(&played.at_lock);
  return __real_flock(fd, how);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_renameat2) other(&played.at_name);
  if (number == SYS_renameat2 && played.rename_code) {
    errno = played.rename_code;
    return -1;
  }
  return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int __real_linkat(int from_folder, const char *from, int folder, const char *name, int flags);
int __wrap_linkat(int from_folder, const char *from, int folder, const char *name, int flags);
int __wrap_linkat(int from_folder, const char *from, int folder, const char *name, int flags) {
  played.links++;
  errno = played.link_code;
  return played.link_code ? -1 : __real_linkat(from_folder, from, folder, name, flags);
}

int __real_renameat(int from_folder, const char *from, int folder, const char *name);
int __wrap_renameat(int from_folder, const char *from, int folder, const char *name);
int __wrap_renameat(int from_folder, const char *from, int folder, const char *name) {
  const int answer = __real_renameat(from_folder, from, folder, name);
  if (!played.rename_lies) return answer;
  errno = EIO;
  return -1;
}

int __wrap_syncfs(int fd);
int __wrap_syncfs(int fd) {
  (void)fd;
  played.whole_syncs++;
  errno = played.sync_code;
  return played.sync_code ? -1 : 0;
}

int __real_openat(int folder, const char *name, int flags, ...);
int __wrap_openat(int folder, const char *name, int flags, mode_t mode);
int __wrap_openat64(int folder, const char *name, int flags, mode_t mode);
int __wrap_openat(int folder, const char *name, int flags, mode_t mode) {
  if (played.folder_is_closed && (flags & O_DIRECTORY) && !(flags & O_PATH)) {
    errno = EACCES;
    return -1;
  }
  if (played.link_first && (flags & O_CREAT)) {
    assert_int_equal(symlinkat("letter", folder, name), 0);
  } else if (played.same_first && (flags & O_CREAT)) {
    assert_int_equal(__real_linkat(folder, "letter", folder, name, 0), 0);
  }
  return __real_openat(folder, name, flags, mode);
}
int __wrap_openat64(int folder, const char *name, int flags, mode_t mode) {
  return __wrap_openat(folder, name, flags, mode);
}

/* ---- the two processes ---- */

static disk_bench first, second; /* two contexts, one folder: `second` has the path of `first` */
static gm_tier *first_tier;

static int begin(void **state) {
  (void)state;
  memset(&played, 0, sizeof played);
  disk_bench_open(&first, NULL);
  disk_bench_open(&second, NULL);
  assert_int_equal(rmdir(second.folder.path), 0);
  second.path = first.path;
  first_tier = NULL;
  return 0;
}

/* Fails where the folder has anything but the tier's file. */
static int end(void **state) {
  (void)state;
  assert_int_equal(gm_context_destroy(second.ctx, NULL), GM_OK);
  disk_bench_close(&first);
  return 0;
}

static gm_tier *open_tier(const disk_bench *bench) {
  return disk_bench_tier(bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_NONE);
}

static gm_status try_open(const disk_bench *bench, const char *path, bool reads) {
  gm_tier *tier = NULL;
  const gm_tier_params params = {.struct_size = sizeof params, .read_only = reads};
  const gm_status status = gm_tier_open(bench->ctx, "disk", path, &params, &tier, NULL);
  if (!status) disk_bench_end(tier);
  return status;
}

static void put_big(gm_tier *tier) {
  char *bytes = calloc(1, BIG);
  assert_non_null(bytes);
  const gm_tier_part part = {bytes, BIG};
  assert_int_equal(gm_tier_put(tier, "big", 3, &part, 1, NULL), GM_OK);
  free(bytes);
}

/* The next flush of the tier compacts. */
static void make_dead(gm_tier *tier) {
  put_big(tier);
  assert_int_equal(tier_put_text(tier, "big", "small"), GM_OK);
}

static void compact(gm_tier *tier) {
  make_dead(tier);
  assert_int_equal(gm_tier_flush(tier, NULL), GM_OK);
  assert_true(disk_bench_stats(tier).stored_bytes < BIG);
}

static int files_in(const char *folder) {
  int count = 0;
  DIR *stream = opendir(folder);
  assert_non_null(stream);
  for (struct dirent *entry; (entry = readdir(stream));) count += entry->d_name[0] != '.';
  closedir(stream);
  return count;
}

static int remove_all_but(const char *folder, const char *kept) {
  int count = 0;
  DIR *stream = opendir(folder);
  assert_non_null(stream);
  for (struct dirent *entry; (entry = readdir(stream));) {
    if (entry->d_name[0] == '.' || strcmp(entry->d_name, kept) == 0) continue;
    count += unlinkat(dirfd(stream), entry->d_name, 0) == 0;
  }
  closedir(stream);
  return count;
}

/* ---- at the same moment ---- */

static void first_compacts(void) { (void)gm_tier_flush(first_tier, NULL); }

static void first_compacts_and_closes(void) { (void)gm_tier_close(first_tier, NULL); }

static void test_who_opens_during_a_compaction_is_told(void **state) {
  (void)state;
  for (int reads = 0; reads < 2; reads++) {
    first_tier = open_tier(&first);
    make_dead(first_tier);
    played.at_lock = first_compacts;
    assert_int_equal(try_open(&second, second.path, reads), GM_ERR_BUSY);
    assert_null(played.at_lock);
    assert_true(disk_bench_stats(first_tier).stored_bytes < BIG); /* so it was compacted meanwhile */
    assert_int_equal(tier_put_text(first_tier, "later", "mine"), GM_OK);
    assert_int_equal(try_open(&second, second.path, reads), GM_ERR_BUSY);
    disk_bench_end(first_tier);
    first_tier = open_tier(&second);
    tier_expect_text(first_tier, "later", "mine");
    disk_bench_end(first_tier);
  }
}

static void test_who_opens_as_the_other_closes_has_the_new_file(void **state) {
  (void)state;
  first_tier = open_tier(&first);
  make_dead(first_tier);
  played.at_lock = first_compacts_and_closes;
  gm_tier *tier = open_tier(&second);
  tier_expect_text(tier, "big", "small");
  assert_int_equal(tier_put_text(tier, "later", "mine"), GM_OK);
  disk_bench_end(tier);
  tier = open_tier(&first);
  tier_expect_text(tier, "later", "mine");
  disk_bench_end(tier);
}

static void first_makes(void) {
  first_tier = NULL;
  if (gm_tier_open(first.ctx, "disk", first.path, NULL, &first_tier, NULL)) return;
  (void)tier_put_text(first_tier, "first", "precious");
  (void)gm_tier_flush(first_tier, NULL);
}

static void test_of_two_that_make_a_tier_one_has_it(void **state) {
  (void)state;
  for (int linked = 0; linked < 2; linked++) {
    played.at_name = first_makes;
    played.rename_code = linked ? EINVAL : 0;
    assert_int_equal(try_open(&second, second.path, false), GM_ERR_BUSY);
    assert_non_null(first_tier);
    assert_int_equal(try_open(&second, second.path, false), GM_ERR_BUSY);
    disk_bench_end(first_tier);
    first_tier = open_tier(&second);
    tier_expect_text(first_tier, "first", "precious");
    disk_bench_end(first_tier);
    assert_int_equal(files_in(first.folder.path), 1);
    unlink(first.path);
  }
}

/* An earlier gm locks the file itself, and knows of no other lock. */
static void test_an_earlier_gm_and_this_one_exclude_each_other(void **state) {
  (void)state;
  disk_bench_end(open_tier(&first));
  int fd = open(first.path, O_RDWR);
  assert_int_equal(__real_flock(fd, LOCK_EX | LOCK_NB), 0);
  assert_int_equal(try_open(&first, first.path, false), GM_ERR_BUSY);
  assert_int_equal(try_open(&first, first.path, true), GM_ERR_BUSY);
  close(fd);
  gm_tier *tier = open_tier(&first);
  for (int i = 0; i < 2; i++) {
    fd = open(first.path, O_RDWR);
    assert_int_equal(__real_flock(fd, LOCK_SH | LOCK_NB), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    close(fd);
    compact(tier);
  }
  disk_bench_end(tier);
}

/* ---- what the file system lacks ---- */

static void test_a_file_system_without_renameat2(void **state) {
  (void)state;
  played.rename_code = EINVAL;
  gm_tier *tier = open_tier(&first);
  assert_int_equal(played.links, 1);
  assert_int_equal(files_in(first.folder.path), 1);
  assert_int_equal(tier_put_text(tier, "a", "one"), GM_OK);
  disk_bench_end(tier);
  unlink(first.path);
  played.link_code = EPERM; /* and without second names */
  assert_int_equal(try_open(&first, first.path, false), GM_ERR_IO);
  assert_int_equal(files_in(first.folder.path), 0);
  disk_bench_write(first.path, "", 0); /* a file that is there, and empty, can be begun */
  assert_int_equal(try_open(&first, first.path, false), GM_OK);
}

static void test_a_rename_that_happened_counts(void **state) {
  (void)state;
  gm_tier *tier = open_tier(&first);
  played.rename_lies = true;
  compact(tier);
  assert_int_equal(tier_put_text(tier, "later", "mine"), GM_OK);
  disk_bench_end(tier);
  tier = open_tier(&first);
  tier_expect_text(tier, "later", "mine");
  disk_bench_end(tier);
}

static void test_a_folder_that_may_not_be_read(void **state) {
  (void)state;
  played.folder_is_closed = true;
  gm_tier *tier = open_tier(&first);
  compact(tier);
  assert_int_equal(tier_put_text(tier, "a", "one"), GM_OK);
  assert_int_equal(gm_tier_flush(tier, NULL), GM_OK);
  assert_int_equal(played.whole_syncs, 2); /* one for each name that the file got */
  compact(tier);
  played.sync_code = EIO;
  assert_int_equal(tier_put_text(tier, "a", "two"), GM_OK);
  assert_int_equal(gm_tier_flush(tier, NULL), GM_ERR_IO);
  assert_int_equal(tier_put_text(tier, "a", "three"), GM_ERR_IO);
  assert_int_equal(gm_tier_close(tier, NULL), GM_ERR_IO);
  played.sync_code = 0;
  tier = open_tier(&first);
  tier_expect_text(tier, "a", "two");
  disk_bench_end(tier);
}

/* ---- paths ---- */

static void test_a_relative_path_stays_where_it_was(void **state) {
  (void)state;
  char before[4096];
  disk_bench relative = first;
  relative.path = "store";
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(first.folder.path), 0);
  assert_int_equal(mkdir("inner", 0700), 0);
  gm_tier *tier = open_tier(&relative);
  assert_int_equal(chdir("inner"), 0);
  compact(tier);
  assert_int_equal(tier_put_text(tier, "later", "mine"), GM_OK);
  disk_bench_end(tier);
  assert_int_equal(files_in("."), 0);
  assert_int_equal(chdir(before), 0);
  assert_int_equal(rmdir(temp_folder_join(&first.folder, "inner")), 0);
  tier = open_tier(&first);
  tier_expect_text(tier, "later", "mine");
  disk_bench_end(tier);
}

static void test_a_link_leads_to_the_tier(void **state) {
  (void)state;
  struct stat st;
  char one[4096], two[4096];
  snprintf(one, sizeof one, "%s/one", first.folder.path);
  snprintf(two, sizeof two, "%s/inner/two", first.folder.path);
  temp_folder_dir(&first.folder, "inner");
  assert_int_equal(symlink("inner/two", one), 0);
  assert_int_equal(symlink("../store", two), 0); /* which is not there yet */
  disk_bench linked = first;
  linked.path = one;
  gm_tier *tier = open_tier(&linked);
  compact(tier);
  assert_int_equal(tier_put_text(tier, "later", "mine"), GM_OK);
  assert_int_equal(try_open(&second, second.path, false), GM_ERR_BUSY);
  disk_bench_end(tier);
  assert_true(lstat(one, &st) == 0 && S_ISLNK(st.st_mode));
  assert_true(lstat(two, &st) == 0 && S_ISLNK(st.st_mode));
  tier = open_tier(&first);
  tier_expect_text(tier, "later", "mine");
  disk_bench_end(tier);
  unlink(two);
  assert_int_equal(symlink("../one", two), 0);
  assert_int_equal(try_open(&first, one, false), GM_ERR_IO); /* round and round */
  unlink(one);
  unlink(two);
  rmdir(temp_folder_join(&first.folder, "inner"));
}

/* Somebody foresaw the name of a side file, and put a link or another file there. */
static void test_a_file_in_the_way_of_a_side_file(void **state) {
  (void)state;
  size_t count;
  played.link_first = true;
  assert_int_equal(try_open(&first, first.path, false), GM_ERR_IO);
  played.link_first = false;
  gm_tier *tier = open_tier(&first);
  const char *letter = temp_folder_write(&first.folder, "letter", "somebody's", 10);
  make_dead(tier);
  played.same_first = true;
  assert_int_equal(gm_tier_flush(tier, NULL), GM_OK); /* without a compaction */
  assert_true(disk_bench_stats(tier).stored_bytes > BIG);
  unsigned char *bytes = disk_bench_bytes(letter, &count);
  assert_int_equal(count, 10);
  assert_memory_equal(bytes, "somebody's", 10);
  free(bytes);
  disk_bench_end(tier);
  assert_int_equal(remove_all_but(first.folder.path, "store"), 3); /* the letter and the links, which are not gm's */
}

static void test_names_of_any_length(void **state) {
  (void)state;
  char name[300] = "";
  temp_folder folder = first.folder;
  for (size_t length = 225; length <= 256; length++) {
    memset(name, 'n', length);
    disk_bench long_name = first;
    long_name.path = temp_folder_join(&folder, name);
    if (length > 255) assert_int_equal(try_open(&first, long_name.path, false), GM_ERR_IO);
    if (length > 255 || (length > 232 && length < 254)) continue;
    gm_tier *tier = open_tier(&long_name);
    compact(tier);
    disk_bench_end(tier);
    assert_int_equal(files_in(first.folder.path), 1);
    unlink(long_name.path);
  }
}

/* The system takes 4095 bytes. Slashes lead nowhere. */
static void test_paths_of_any_length(void **state) {
  (void)state;
  for (size_t length = 4095; length <= 4096; length++) {
    char path[5000];
    const size_t before = strlen(first.folder.path), after = strlen("store");
    memset(path, '/', length);
    memcpy(path, first.folder.path, before);
    memcpy(path + length - after, "store", after + 1);
    assert_int_equal(try_open(&first, path, false), length == 4095 ? GM_OK : GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(files_in(first.folder.path), 1); /* that of the first */
  }
}

/* Somebody gave the file another name, and another process made a tier: the name is that one's. */
static void test_a_file_that_was_moved_takes_no_name(void **state) {
  (void)state;
  const char *moved = temp_folder_join(&first.folder, "moved");
  gm_tier *tier = open_tier(&first);
  assert_int_equal(tier_put_text(tier, "a", "one"), GM_OK);
  assert_int_equal(rename(first.path, moved), 0);
  gm_tier *fresh = open_tier(&second);
  assert_int_equal(tier_put_text(fresh, "b", "precious"), GM_OK);
  make_dead(tier);
  assert_int_equal(gm_tier_flush(tier, NULL), GM_OK); /* there is no compaction */
  disk_bench_end(tier);
  disk_bench_end(fresh);
  fresh = open_tier(&second);
  tier_expect_text(fresh, "b", "precious");
  tier_expect_none(fresh, "a", 1);
  disk_bench_end(fresh);
  assert_int_equal(files_in(first.folder.path), 2);
  unlink(moved);
}

int main(void) {
#define NAME_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)
  const struct CMUnitTest tests[] = {
      NAME_TEST(test_who_opens_during_a_compaction_is_told),
      NAME_TEST(test_who_opens_as_the_other_closes_has_the_new_file),
      NAME_TEST(test_of_two_that_make_a_tier_one_has_it),
      NAME_TEST(test_an_earlier_gm_and_this_one_exclude_each_other),
      NAME_TEST(test_a_file_system_without_renameat2),
      NAME_TEST(test_a_rename_that_happened_counts),
      NAME_TEST(test_a_folder_that_may_not_be_read),
      NAME_TEST(test_a_relative_path_stays_where_it_was),
      NAME_TEST(test_a_link_leads_to_the_tier),
      NAME_TEST(test_a_file_in_the_way_of_a_side_file),
      NAME_TEST(test_names_of_any_length),
      NAME_TEST(test_paths_of_any_length),
      NAME_TEST(test_a_file_that_was_moved_takes_no_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
