/* Invariant: the helper is waited for in every path, so no zombie is left. */
#include "core/discovery/helper.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/env.h"
#include "core/base/error.h"

enum { HELPER_PATH_SIZE = 4096 };

extern char **environ;

/* Beside the installed library, wherever that was moved to: lib/…/libgm.so and libexec/gm/gm-probe, or a build tree's
 * lib and bin. */
static bool helper_find_beside(char *path, size_t capacity) {
  static const char *const places[] = {"../libexec/gm/gm-probe", "../../libexec/gm/gm-probe", "../bin/gm-probe",
                                       "gm-probe"};
  Dl_info self;
  static const char anchor = 0;
  if (!dladdr(&anchor, &self) || !self.dli_fname) return false;
  const char *slash = strrchr(self.dli_fname, '/');
  if (!slash) return false;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    int length = snprintf(path, capacity, "%.*s/%s", (int)(slash - self.dli_fname), self.dli_fname, places[i]);
    if (length > 0 && (size_t)length < capacity && access(path, X_OK) == 0) return true;
  }
  return false;
}

static gm_status helper_find(const gm_context *ctx, char *path, size_t capacity, gm_error *err) {
  const char *given = ctx->probe_helper;
  if (!given[0] && !ctx->ignore_environment) given = gm__env("GM_PROBE_HELPER");
  if (given && given[0]) {
    int length = snprintf(path, capacity, "%s", given);
    if (path[0] == '/' && (size_t)length < capacity && access(path, X_OK) == 0) return GM_OK;
    return gm__fail_native(err, GM_ERR_NOT_FOUND, errno, "gm-probe",
                           "the probe helper %s is no absolute path of a program", given);
  }
  if (helper_find_beside(path, capacity)) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_FOUND, "gm-probe",
                  "the helper gm-probe is not where libgm was installed; name it in GM_PROBE_HELPER");
}

/* The helper's standard output is the pipe; what drivers write to standard error is nobody's. */
static int helper_spawn(const char *path, char *const argv[], int out_fd, pid_t *out_pid) {
  posix_spawn_file_actions_t actions;
  int failed = posix_spawn_file_actions_init(&actions);
  if (failed) return failed;
  failed = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
  if (!failed) failed = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  if (!failed) failed = posix_spawn(out_pid, path, &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  return failed;
}

gm_status gm__helper_start(const gm_context *ctx, const char *const words[GM__HELPER_WORDS], uint32_t limit_ms,
                           gm__helper *out, gm_error *err) {
  char path[HELPER_PATH_SIZE];
  char *argv[GM__HELPER_WORDS + 2] = {path};
  gm_status status = helper_find(ctx, path, sizeof path, err);
  if (status != GM_OK) return status;
  for (size_t i = 0; i < GM__HELPER_WORDS && words[i]; i++) argv[i + 1] = (char *)(uintptr_t)words[i];
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return gm__fail_native(err, GM_ERR_SYSTEM, errno, "pipe2", "no pipe to the probe helper: %s", strerror(errno));
  }
  int failed = helper_spawn(path, argv, ends[1], &out->pid);
  close(ends[1]);
  if (failed) {
    close(ends[0]);
    return gm__fail_native(err, GM_ERR_SYSTEM, failed, "posix_spawn", "%s does not start: %s", path, strerror(failed));
  }
  out->fd = ends[0];
  gm__helper_limit(out, limit_ms);
  return GM_OK;
}

void gm__helper_limit(gm__helper *helper, uint32_t limit_ms) {
  helper->limit_ms = limit_ms;
  helper->deadline = gm__deadline_after((uint64_t)limit_ms * 1000000u);
}

gm_status gm__helper_read(const gm__helper *helper, void *data, size_t bytes, gm_error *err) {
  char *at = data;
  while (bytes > 0) {
    uint64_t left_ms = gm__deadline_left(helper->deadline) / 1000000u;
    struct pollfd poller = {.fd = helper->fd, .events = POLLIN};
    int ready = poll(&poller, 1, (int)left_ms);
    if (ready == 0) {
      return gm__fail(err, GM_ERR_TIMEOUT, "gm-probe", "the driver did not answer in %u s", helper->limit_ms / 1000);
    }
    ssize_t got = ready < 0 ? -1 : read(helper->fd, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return gm__fail(err, GM_ERR_UNAVAILABLE, "gm-probe", "the probe helper ended without an answer");
    at += got;
    bytes -= (size_t)got;
  }
  return GM_OK;
}

/* Tells how the helper ended by itself; 0: it had to be killed. A helper that hangs after its answer, or after it
 * closed its output, must not hang the caller. */
static int helper_wait(const gm__helper *helper) {
  const struct timespec nap = {.tv_nsec = 1000000};
  int ended = 0;
  bool killed = false;
  for (;;) {
    pid_t waited = waitpid(helper->pid, &ended, killed ? 0 : WNOHANG);
    if (waited == helper->pid) return killed ? 0 : ended;
    if (waited < 0 && errno != EINTR) return 0; /* the host program ignores its children's end, or waited for it */
    if (!killed && gm__deadline_passed(helper->deadline)) killed = kill(helper->pid, SIGKILL) == 0;
    if (waited == 0 && !killed) nanosleep(&nap, NULL);
  }
}

gm_status gm__helper_end(gm__helper *helper, gm_status status, gm_error *err) {
  uint64_t grace = gm__deadline_after((uint64_t)GM__HELPER_END_MS * 1000000u);
  close(helper->fd);
  if (status == GM_ERR_TIMEOUT) grace = helper->deadline;
  if (helper->deadline > grace) helper->deadline = grace;
  int ended = helper_wait(helper);
  if (WIFSIGNALED(ended) && status == GM_ERR_UNAVAILABLE) {
    return gm__fail_native(
        err, GM_ERR_UNAVAILABLE, WTERMSIG(ended), "gm-probe",
        "the driver ended the probe helper with signal %d (%s): it would have ended this process too", WTERMSIG(ended),
        strsignal(WTERMSIG(ended)));
  }
  return status;
}
