/* Files that several processes share: what is no such file, and locks on bytes, which end with their holder. */
#include "core/base/shared_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "support/tree.h"

enum { AT = 64, STRANGER = 12345, SOON = 100000000 };

static gm__data_file opened(const char *path) {
  gm__data_file file = {.fd = -1};
  assert_int_equal(gm__shared_file_open(path, true, &file, NULL), GM_OK);
  return file;
}

static bool locks(const gm__data_file *file) { return gm__shared_file_lock(file, "path", AT, 0, NULL) == GM_OK; }

static void assert_refused(const char *path, gm_status status, const char *word) {
  gm__data_file file = {.fd = -1};
  gm_error err = {.status = GM_OK};
  for (int create = 0; create < 2; create++) {
    assert_int_equal(gm__shared_file_open(path, create, &file, &err), status);
    assert_int_equal(err.status, status);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, word));
    assert_int_equal(file.fd, -1);
  }
}

static void test_it_is_made_for_the_user_alone(void **state) {
  const char *path = temp_folder_join(*state, "file");
  const mode_t mask = umask(0);
  gm__data_file a = opened(path), b = opened(path), other = opened(temp_folder_join(*state, "other"));
  umask(mask);
  struct stat st;
  assert_int_equal(fstat(a.fd, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0600);
  assert_int_equal(fcntl(a.fd, F_GETFD), FD_CLOEXEC);
  assert_true(gm__shared_file_same(&a, &b));
  assert_false(gm__shared_file_same(&a, &other));
  gm__data_file_close(&other, false);
  assert_false(gm__shared_file_same(&a, &other) || gm__shared_file_same(&other, &a));
  gm__data_file_close(&a, false);
  gm__data_file_close(&b, false);
}

static void test_what_is_not_there(void **state) {
  gm__data_file file = {.fd = -1};
  gm_error err;
  const char *path = temp_folder_join(*state, "file");
  assert_int_equal(gm__shared_file_open(path, false, &file, &err), GM_ERR_NOT_FOUND);
  assert_int_equal(access(path, F_OK), -1);
  assert_refused(temp_folder_join(*state, "no/such/folder"), GM_ERR_NOT_FOUND, "no such");
  assert_true(gm__shared_file_folder(((temp_folder *)*state)->path));
  assert_false(gm__shared_file_folder(temp_folder_join(*state, "no")));
}

static void test_what_gm_does_not_trust(void **state) {
  temp_folder *root = *state;
  tree_put(root, "/mine", "text");
  assert_int_equal(symlink("mine", temp_folder_join(root, "link")), 0);
  assert_int_equal(symlink("nowhere", temp_folder_join(root, "loose")), 0);
  assert_int_equal(mkdir(temp_folder_join(root, "folder"), 0700), 0);
  assert_int_equal(mkfifo(temp_folder_join(root, "pipe"), 0600), 0);
  assert_refused(temp_folder_join(root, "link"), GM_ERR_IO, "symbolic");
  assert_refused(temp_folder_join(root, "loose"), GM_ERR_IO, "symbolic");
  assert_int_equal(access(temp_folder_join(root, "nowhere"), F_OK), -1);
  assert_refused(temp_folder_join(root, "folder"), GM_ERR_IO, "folder");
  assert_refused(temp_folder_join(root, "pipe"), GM_ERR_IO, "no regular file");
  const mode_t others[] = {0640, 0604, 0620, 0602, 0610, 0601};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    assert_int_equal(chmod(temp_folder_join(root, "mine"), others[i]), 0);
    assert_refused(temp_folder_join(root, "mine"), GM_ERR_IO, "other users");
  }
}

static void test_a_file_of_another_user(void **state) {
  if (geteuid() != 0) skip(); /* only root makes one */
  tree_put(*state, "/theirs", "");
  const char *path = temp_folder_join(*state, "theirs");
  assert_int_equal(chmod(path, 0600), 0);
  assert_int_equal(chown(path, STRANGER, STRANGER), 0);
  assert_refused(path, GM_ERR_IO, "another user");
}

static void test_the_name_has_the_user(void **state) {
  (void)state;
  char path[32], expected[32];
  gm_error err;
  snprintf(expected, sizeof expected, "/a/stem-%u", (unsigned)geteuid());
  assert_int_equal(gm__shared_file_path("/a", "stem", path, sizeof path, NULL), GM_OK);
  assert_string_equal(path, expected);
  const size_t length = strlen(expected);
  assert_int_equal(gm__shared_file_path("/a", "stem", path, length, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm__shared_file_path("/a", "stem", path, length + 1, &err), GM_OK);
}

static void test_one_lock_for_each_byte(void **state) {
  const char *path = temp_folder_join(*state, "file");
  gm__data_file a = opened(path), b = opened(path);
  gm_error err;
  assert_true(locks(&a));
  assert_true(locks(&a)); /* it has it */
  assert_int_equal(gm__shared_file_lock(&b, path, AT, 0, &err), GM_ERR_TIMEOUT);
  assert_non_null(strstr(err.message, "holds its lock"));
  assert_int_equal(gm__shared_file_lock(&b, path, AT + 1, 0, NULL), GM_OK);
  assert_true(gm__shared_file_is_locked(&b, AT, 1) && !gm__shared_file_is_locked(&a, AT, 1));
  gm__shared_file_unlock(&a, AT);
  assert_false(gm__shared_file_is_locked(&b, AT, 1));
  assert_true(locks(&b) && !locks(&a));
  gm__data_file_close(&b, false); /* with the file the lock goes */
  assert_true(locks(&a));
  gm__data_file_close(&a, false);
}

static void test_a_wait_ends(void **state) {
  const char *path = temp_folder_join(*state, "file");
  gm__data_file a = opened(path), b = opened(path);
  assert_true(locks(&a));
  const uint64_t deadline = gm__deadline_after(SOON);
  assert_int_equal(gm__shared_file_lock(&b, path, AT, deadline, NULL), GM_ERR_TIMEOUT);
  assert_true(gm__deadline_passed(deadline));
  gm__data_file_close(&a, false);
  gm__data_file_close(&b, false);
}

static void test_no_file_at_all(void **state) {
  (void)state;
  const gm__data_file none = {.fd = -1};
  gm_error err;
  assert_int_equal(gm__shared_file_lock(&none, "path", AT, GM__NEVER, &err), GM_ERR_IO);
  assert_int_equal(err.native_code, EBADF);
  assert_true(gm__shared_file_is_locked(&none, AT, 1)); /* unknown counts as locked */
}

/* A child that has the lock, and that waits for a signal. */
static pid_t holder(const char *path) {
  int ready[2];
  char byte;
  assert_int_equal(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    gm__data_file file = {.fd = -1};
    if (gm__shared_file_open(path, true, &file, NULL) || !locks(&file) || write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(ready[1]);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  return child;
}

static void test_a_killed_process_holds_no_lock(void **state) {
  const char *path = temp_folder_join(*state, "file");
  gm__data_file file = opened(path);
  const pid_t child = holder(path);
  assert_false(locks(&file));
  assert_int_equal(kill(child, SIGSTOP), 0); /* a stopped one does */
  assert_int_equal(gm__shared_file_lock(&file, path, AT, gm__deadline_after(SOON), NULL), GM_ERR_TIMEOUT);
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_int_equal(waitpid(child, NULL, 0), child);
  assert_true(locks(&file));
  gm__data_file_close(&file, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_set_up, tree_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_it_is_made_for_the_user_alone),
                                     TEST(test_what_is_not_there),
                                     TEST(test_what_gm_does_not_trust),
                                     TEST(test_a_file_of_another_user),
                                     TEST(test_the_name_has_the_user),
                                     TEST(test_one_lock_for_each_byte),
                                     TEST(test_a_wait_ends),
                                     TEST(test_no_file_at_all),
                                     TEST(test_a_killed_process_holds_no_lock)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
