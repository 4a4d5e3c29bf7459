/* No call of gm is a cancellation point. Each slow call runs on a thread for which pthread_cancel is pending already:
 * the first cancellation point that the call reaches would end the thread. Afterwards another thread makes the same
 * call, and no descriptor is left. Each call has a process of its own. */
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>

#include "support/slow_calls.h"

enum { LEFT = 42, HANGS_AFTER_S = 60 };

static int cancel_descriptors(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (folder && readdir(folder)) count++;
  if (folder) closedir(folder);
  return count;
}

static void *cancel_run(void *call) {
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  pthread_cancel(pthread_self());
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
  ((const struct slow_call *)call)->run();
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before == PTHREAD_CANCEL_ENABLE ? call : NULL; /* gm restores what it changes */
}

static void *cancel_run_again(void *call) {
  ((const struct slow_call *)call)->run();
  return call;
}

static void *cancel_on_thread(void *(*run)(void *call), const struct slow_call *call) {
  pthread_t thread;
  void *answer = NULL;
  if (pthread_create(&thread, NULL, run, (void *)(uintptr_t)call) != 0) _exit(3);
  pthread_join(thread, &answer);
  return answer;
}

static int cancel_try(const char *backend, const struct slow_call *call) {
  alarm(HANGS_AFTER_S);
  slow_open(backend);
  call->run(); /* what is opened once for good is open */
  const int before = cancel_descriptors();
  const void *answer = cancel_on_thread(cancel_run, call);
  if (answer == PTHREAD_CANCELED) fprintf(stderr, "%s %s: the thread ended inside\n", backend, call->name);
  if (!answer) fprintf(stderr, "%s %s: the thread can be cancelled no more\n", backend, call->name);
  if (answer != call) return 1;
  cancel_on_thread(cancel_run_again, call);
  const int after = cancel_descriptors();
  if (after > before) fprintf(stderr, "%s %s: %d descriptors, then %d\n", backend, call->name, before, after);
  slow_close();
  return after > before ? 1 : LEFT;
}

int main(int argc, char **argv) {
  int failed = argc == 2 ? 0 : 1;
  for (int i = 0; i < SLOW_CALLS && argc == 2; i++) {
    const pid_t pid = fork(); /* gm is not in use yet: the child is a fresh process to it */
    if (pid == 0) _exit(cancel_try(argv[1], &slow_calls[i]));
    int status = 0;
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == LEFT) continue;
    fprintf(stderr, "%s %s: %s %d\n", argv[1], slow_calls[i].name, WIFSIGNALED(status) ? "signal" : "exit",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    failed++;
  }
  printf("%d calls, %d failed\n", SLOW_CALLS, failed);
  return failed != 0;
}
