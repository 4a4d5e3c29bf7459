/* The identity of a process, and whether it has ended: real processes, and /proc as a test writes it. */
#include "core/host/task.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/tree.h"

static const char names[] = "A) Z 1 (B";

/* /proc/PROCESS/stat with that state, number of threads and start. */
static void put_stat(temp_folder *root, const char *process, int pid, char state, int threads, int start) {
  char path[64], text[256];
  snprintf(path, sizeof path, "/proc/%s/stat", process);
  snprintf(text, sizeof text, "%d (%s) %c 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 %d 0 %d 99 99\n", pid, names, state,
           threads, start);
  tree_put(root, path, text);
}

/* A machine on which this process began at 70. */
static gm__task task_on(temp_folder *root) {
  gm__task task;
  char process[16];
  snprintf(process, sizeof process, "%d", (int)getpid());
  tree_put(root, "/proc/self/ns/pid", "");
  tree_put(root, "/proc/self/ns/time", "");
  put_stat(root, "self", getpid(), 'R', 1, 70);
  put_stat(root, process, getpid(), 'R', 1, 70);
  gm__task_self(root->path, &task);
  return task;
}

static void test_this_process_lives(void **state) {
  (void)state;
  gm__task self, again;
  gm__task_self(NULL, &self);
  gm__task_self("", &again);
  assert_true(self.space != 0 && self.start != 0);
  assert_int_equal(self.pid, getpid());
  assert_memory_equal(&self, &again, sizeof self);
  assert_false(gm__task_has_ended(NULL, &self, &self));
  again.start++; /* an earlier process had its number */
  assert_true(gm__task_has_ended(NULL, &self, &again));
}

/* The child has told who it is before it waits for its end. */
static pid_t child_task(gm__task *out) {
  int ready[2];
  assert_int_equal(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    gm__task_self(NULL, out);
    if (write(ready[1], out, sizeof *out) != sizeof *out) _exit(1);
    for (;;) pause();
  }
  assert_int_equal(read(ready[0], out, sizeof *out), sizeof *out);
  close(ready[0]);
  close(ready[1]);
  return child;
}

static void test_a_killed_process_has_ended(void **state) {
  (void)state;
  gm__task self, task;
  siginfo_t info;
  gm__task_self(NULL, &self);
  const pid_t child = child_task(&task);
  assert_int_equal(task.pid, child);
  assert_true(task.space == self.space);
  assert_false(gm__task_has_ended(NULL, &self, &task));
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
  assert_true(gm__task_has_ended(NULL, &self, &task)); /* nobody has waited for it yet */
  assert_int_equal(waitpid(child, NULL, 0), child);
  assert_true(gm__task_has_ended(NULL, &self, &task));
}

static void test_who_cannot_be_seen_has_not_ended(void **state) {
  (void)state;
  gm__task self;
  gm__task_self(NULL, &self);
  const gm__task none = {0}, gone = {.space = self.space, .start = 1, .pid = INT32_MAX};
  gm__task elsewhere = gone, wrong = self;
  elsewhere.space++;
  assert_true(gm__task_has_ended(NULL, &self, &gone));
  assert_false(gm__task_has_ended(NULL, &self, &elsewhere));
  assert_false(gm__task_has_ended(NULL, &none, &gone));
  assert_false(gm__task_has_ended(NULL, &none, &none));
  wrong.pid = 0; /* for kill it is the own group */
  assert_false(gm__task_has_ended(NULL, &self, &wrong));
  wrong.pid = UINT32_MAX; /* for kill: all */
  assert_false(gm__task_has_ended(NULL, &self, &wrong));
}

static void test_states(void **state) {
  char process[16];
  const gm__task self = task_on(*state);
  snprintf(process, sizeof process, "%d", (int)getpid());
  assert_int_equal(self.start, 70);
  for (const char *letter = "RSDTtIZXx"; *letter; letter++) {
    put_stat(*state, process, getpid(), *letter, 1, 70);
    assert_int_equal(gm__task_has_ended(((temp_folder *)*state)->path, &self, &self), *letter >= 'X' && *letter != 't');
  }
  put_stat(*state, process, getpid(), 'Z', 2, 70); /* only the main thread has ended */
  assert_false(gm__task_has_ended(((temp_folder *)*state)->path, &self, &self));
}

static void test_a_namespace_of_time(void **state) {
  temp_folder *root = *state;
  const gm__task self = task_on(root);
  gm__task other;
  tree_put(root, "/proc/self/ns/another", "");
  assert_int_equal(rename(temp_folder_join(root, "proc/self/ns/another"), temp_folder_join(root, "proc/self/ns/time")),
                   0);
  gm__task_self(root->path, &other);
  assert_true(other.space != 0 && other.space != self.space);
  assert_int_equal(unlink(temp_folder_join(root, "proc/self/ns/time")), 0); /* an old kernel */
  gm__task_self(root->path, &other);
  assert_true(other.space != 0 && other.pid == self.pid);
}

static void assert_unknown(temp_folder *root) {
  const gm__task none = {0};
  gm__task task = {.space = 1, .start = 1, .pid = 1};
  gm__task_self(root->path, &task);
  assert_true(task.space == none.space && task.start == none.start && task.pid == none.pid);
}

static void test_what_does_not_tell(void **state) {
  static const char *const bad[] = {"",
                                    "x",
                                    "1",
                                    "1 (a",
                                    "1 (a) R",
                                    "1 (a) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 1 0",
                                    "1 (a) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 x 0 70",
                                    "1 (a) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 1 0 x",
                                    "x (a) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 1 0 70"};
  temp_folder *root = *state;
  char process[32], long_text[4096];
  assert_unknown(root); /* no /proc */
  const gm__task self = task_on(root);
  snprintf(process, sizeof process, "/proc/%d/stat", (int)getpid());
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    tree_put(root, process, bad[i]);
    assert_false(gm__task_has_ended(root->path, &self, &self));
    tree_put(root, "/proc/self/stat", bad[i]);
    assert_unknown(root);
  }
  memset(long_text, ' ', sizeof long_text);
  tree_put_bytes(root, "/proc/self/stat", long_text, sizeof long_text);
  assert_unknown(root);
  assert_int_equal(unlink(temp_folder_join(root, process + 1)), 0); /* /proc hides it */
  assert_false(gm__task_has_ended(root->path, &self, &self));
  put_stat(root, "self", getpid() + 1, 'R', 1, 70); /* /proc is of another namespace */
  assert_unknown(root);
  put_stat(root, "self", getpid(), 'R', 1, 70);
  assert_int_equal(unlink(temp_folder_join(root, "proc/self/ns/pid")), 0);
  assert_unknown(root);
}

static void test_names(void **state) {
  static const char *const files[][2] = {
      {"engine\n", "engine"}, {"fifteen letters\n", "fifteen letters"}, {"a (b) c\n", "a (b) c"}, {"no end", "no end"}};
  temp_folder *root = *state;
  char name[GM__TASK_NAME];
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    tree_put(root, "/proc/7/comm", files[i][0]);
    assert_true(gm__task_name(root->path, 7, name));
    assert_string_equal(name, files[i][1]);
  }
  assert_false(gm__task_name(root->path, 8, name));
  static const char *const none[] = {"", "\n", "a name that no process has given itself\n"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    tree_put(root, "/proc/7/comm", none[i]);
    assert_false(gm__task_name(root->path, 7, name));
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_set_up, tree_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_this_process_lives),
                                     cmocka_unit_test(test_a_killed_process_has_ended),
                                     cmocka_unit_test(test_who_cannot_be_seen_has_not_ended),
                                     TEST(test_states),
                                     TEST(test_names),
                                     TEST(test_a_namespace_of_time),
                                     TEST(test_what_does_not_tell)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
