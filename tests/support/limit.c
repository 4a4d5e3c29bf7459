/* gm_limit SECONDS COMMAND...: runs the command, and leaves as it does. After that time, less what the command waited
 * for a core, it prints the stack of every thread of it and of its children. It uses eu-stack, or gdb; without both,
 * the kernel's stacks where it has them. Then it kills them, and leaves with 1. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
enum { PROCESSES_MOST = 256, TEXT = 512 };

typedef struct family {
  pid_t pids[PROCESSES_MOST];
  size_t count;
  uint64_t delay_ns; /* all their threads have waited so long for a core */
} family;

static FILE *task_file(pid_t pid, const char *task, const char *name) {
  char path[TEXT];
  snprintf(path, sizeof path, "/proc/%ld/task/%s/%s", (long)pid, task, name);
  return fopen(path, "r");
}

static void family_add_task(family *all, pid_t pid, const char *task) {
  long child;
  unsigned long long ran, waited;
  FILE *children = task_file(pid, task, "children"), *times = task_file(pid, task, "schedstat");
  while (children && all->count < PROCESSES_MOST && fscanf(children, "%ld", &child) == 1)
    all->pids[all->count++] = (pid_t)child;
  if (times && fscanf(times, "%llu %llu", &ran, &waited) == 2) all->delay_ns += waited;
  if (children) fclose(children);
  if (times) fclose(times);
}

/* A process and what it and its children started. */
static void family_find(family *all, pid_t root) {
  *all = (family){.pids = {root}, .count = 1};
  for (size_t i = 0; i < all->count; i++) {
    char path[TEXT];
    snprintf(path, sizeof path, "/proc/%ld/task", (long)all->pids[i]);
    DIR *tasks = opendir(path);
    for (const struct dirent *task; tasks && (task = readdir(tasks));) {
      if (task->d_name[0] != '.') family_add_task(all, all->pids[i], task->d_name);
    }
    if (tasks) closedir(tasks);
  }
}

static void show(pid_t pid) {
  static const char tools[] =
      "tr '\\0' ' ' </proc/$pid/cmdline; echo; "
      "if command -v eu-stack >/dev/null; then timeout 30 eu-stack -p $pid; "
      "elif command -v gdb >/dev/null; then timeout 30 gdb -q -batch -p $pid -ex 'thread apply all bt 40' 2>/dev/null; "
      "else echo 'neither eu-stack (elfutils) nor gdb is installed: where the kernel has each thread'; fi; "
      "for task in /proc/$pid/task/*; do echo \"thread ${task##*/} $(cat $task/comm): $(cat $task/wchan)\"; done";
  char command[2 * TEXT];
  printf("---- process %ld: ", (long)pid);
  fflush(stdout);
  snprintf(command, sizeof command, "pid=%ld; %s", (long)pid, tools);
  if (system(command) == -1) printf("no shell\n");
}

static void end_all(const char *seconds, const char *name, pid_t root) {
  family all;
  family_find(&all, root);
  printf("\nlimit: %s still runs after %s s. Where each thread of its %zu processes is:\n", name, seconds, all.count);
  for (size_t i = 0; i < all.count; i++) show(all.pids[i]);
  fflush(stdout);
  for (size_t i = all.count; i-- > 0;) kill(all.pids[i], SIGKILL);
}

/* The caller's end as the command's: the signal that ended it ends us. */
static int leave_as(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  signal(WTERMSIG(status), SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

static void child_run(pid_t parent, const sigset_t *mask, char **command) {
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* who stops the test stops the command */
  if (getppid() != parent) _exit(1);
  sigprocmask(SIG_SETMASK, mask, NULL);
  execvp(command[0], command);
  fprintf(stderr, "limit: %s: %s\n", command[0], strerror(errno));
  _exit(127);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* False: the time is up. While a thread of the command waits for a core no time passes: a busy machine ends nothing. */
static bool wait_for(pid_t child, uint64_t left_ns, const sigset_t *ended, int *status) {
  const struct timespec moment = {.tv_sec = 1};
  uint64_t before = now_ns(), delayed = 0;
  while (waitpid(child, status, WNOHANG) == 0) {
    family all;
    sigtimedwait(ended, NULL, &moment); /* until the child ends, or for a second */
    family_find(&all, child);
    const uint64_t now = now_ns(), delay = all.delay_ns > delayed ? all.delay_ns - delayed : 0;
    const uint64_t passed = now - before > delay ? now - before - delay : 0;
    if (passed >= left_ns) return false;
    left_ns -= passed;
    before = now;
    delayed = all.delay_ns;
  }
  return true;
}

int main(int argc, char **argv) {
  const long seconds = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
  if (seconds <= 0) {
    fprintf(stderr, "usage: gm_limit SECONDS COMMAND...\n");
    return 2;
  }
  sigset_t ended, before;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ended, &before);
  const pid_t self = getpid(), child = fork();
  if (child < 0) return 1;
  if (child == 0) child_run(self, &before, argv + 2);
  int status = 0;
  if (wait_for(child, (uint64_t)seconds * SECOND_NS, &ended, &status)) return leave_as(status);
  end_all(argv[1], argv[2], child);
  waitpid(child, &status, 0);
  return 1;
}
