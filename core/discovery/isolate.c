/* Invariants: the helper is waited for in every path, so no zombie is left. Its answer is checked like a caller's
 * file, because a driver ran in that process. */
#include "core/discovery/isolate.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/discovery/answer.h"
#include "core/discovery/device_entry.h"

enum { ISOLATE_PATH_SIZE = 4096 };

extern char **environ;

typedef struct isolate_child {
  pid_t pid;
  int fd; /* its findings */
  uint64_t deadline;
} isolate_child;

/* Beside the installed library, wherever that was moved to: lib/…/libgm.so and libexec/gm/gm-probe, or a build tree's
 * lib and bin. */
static bool isolate_find_beside(char *path, size_t capacity) {
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

static gm_status isolate_find(const gm_context *ctx, char *path, size_t capacity, gm_error *err) {
  const char *given = ctx->probe_helper;
  if (!given[0] && !ctx->ignore_environment) given = gm__env("GM_PROBE_HELPER");
  if (given && given[0]) {
    int length = snprintf(path, capacity, "%s", given);
    if (path[0] == '/' && (size_t)length < capacity && access(path, X_OK) == 0) return GM_OK;
    return gm__fail(err, GM_ERR_NOT_FOUND, errno, "gm-probe", "the probe helper %s is no absolute path of a program",
                    given);
  }
  if (isolate_find_beside(path, capacity)) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_FOUND, 0, "gm-probe",
                  "the helper gm-probe is not where libgm was installed; name it in GM_PROBE_HELPER");
}

/* The helper's standard output is the pipe; what drivers write to standard error is nobody's. */
static int isolate_spawn(const char *path, char *const argv[], int out_fd, pid_t *out_pid) {
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

static gm_status isolate_start(gm__driver *driver, isolate_child *out, gm_error *err) {
  char path[ISOLATE_PATH_SIZE];
  gm_status status = isolate_find(driver->ctx, path, sizeof path, err);
  if (status != GM_OK) return status;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return gm__fail(err, GM_ERR_SYSTEM, errno, "pipe2", "no pipe to the probe helper: %s", strerror(errno));
  }
  char *argv[] = {path, driver->info.name, driver->library, driver->options, driver->module[0] ? driver->module : NULL,
                  NULL};
  int failed = isolate_spawn(path, argv, ends[1], &out->pid);
  close(ends[1]);
  if (failed) {
    close(ends[0]);
    return gm__fail(err, GM_ERR_SYSTEM, failed, "posix_spawn", "%s does not start: %s", path, strerror(failed));
  }
  out->fd = ends[0];
  out->deadline = gm__deadline_after((uint64_t)GM__ISOLATE_TIMEOUT_MS * 1000000u);
  return GM_OK;
}

/* Read exactly `bytes`. UNAVAILABLE: it ended before; TIMEOUT. */
static gm_status isolate_read(const isolate_child *child, void *data, size_t bytes, gm_error *err) {
  char *at = data;
  while (bytes > 0) {
    uint64_t left_ms = gm__deadline_left(child->deadline) / 1000000u;
    struct pollfd poller = {.fd = child->fd, .events = POLLIN};
    int ready = poll(&poller, 1, (int)left_ms);
    if (ready == 0) {
      return gm__fail(err, GM_ERR_TIMEOUT, 0, "gm-probe", "the driver did not answer in %d s",
                      GM__ISOLATE_TIMEOUT_MS / 1000);
    }
    ssize_t got = ready < 0 ? -1 : read(child->fd, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return gm__fail(err, GM_ERR_UNAVAILABLE, 0, "gm-probe", "the probe helper ended without an answer");
    at += got;
    bytes -= (size_t)got;
  }
  return GM_OK;
}

static bool isolate_head_ok(const gm__driver *driver, const gm__isolate_head *head) {
  return head->magic == GM__ISOLATE_MAGIC && head->info_size == sizeof head->info &&
         head->entry_size == sizeof(gm_device_entry) && head->entry_count <= GM__ANSWER_DEVICES_MAX &&
         strncmp(head->info.name, driver->info.name, sizeof head->info.name) == 0 &&
         strcmp(gm_status_name(head->info.status), gm_status_name((gm_status)-1)) != 0 &&
         (head->info.status == GM_OK) == (head->entry_count > 0);
}

/* The backend is who we asked for, and its devices are numbered as they came. */
static void isolate_enter(gm__driver *driver, gm__isolate_head *head, gm_device_entry *entries) {
  memcpy(head->info.name, driver->info.name, sizeof head->info.name);
  head->info.api = driver->info.api;
  driver->info = head->info;
  for (uint32_t i = 0; i < head->entry_count; i++) {
    gm__answer_mend_entry(&entries[i]);
    gm__device_entry_enter(driver, i, &entries[i]);
  }
}

static gm_status isolate_receive(gm__driver *driver, const isolate_child *child, gm_error *err) {
  const gm_services *services = gm__context_services(driver->ctx);
  gm__isolate_head head;
  gm_status status = isolate_read(child, &head, sizeof head, err);
  if (status != GM_OK) return status;
  gm__answer_mend_backend(&head.info);
  if (!isolate_head_ok(driver, &head)) {
    return gm__fail(err, GM_ERR_FORMAT, 0, "gm-probe",
                    "the probe helper is not of this version of gm, or its answer is damaged");
  }
  size_t bytes = head.entry_count * sizeof(gm_device_entry);
  gm_device_entry *entries = gm__alloc(services, bytes);
  if (!entries) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm-probe", "no host memory for its answer");
  status = isolate_read(child, entries, bytes, err);
  if (status != GM_OK) {
    gm__release(services, entries, bytes);
    return status;
  }
  gm__release(services, driver->entries, driver->entry_count * sizeof *driver->entries);
  driver->entries = entries;
  driver->entry_count = head.entry_count;
  isolate_enter(driver, &head, entries);
  if (head.info.status != GM_OK && err) *err = head.info.reason;
  return head.info.status;
}

bool gm__isolate_looks(gm_api api, const gm_device_entry *entry) {
  const gm_memory_info *memory = &entry->memory;
  const bool asks = api == GM_API_CUDA || api == GM_API_HIP || api == GM_API_OTHER;
  return asks && entry->info.type != GM_DEVICE_TYPE_CPU &&
         (memory->free_state == GM_FIGURE_UNKNOWN || memory->free_source == GM_SOURCE_OWN_ACCOUNTING);
}

/* A look of the helper is of one moment, so its figure is an estimate. One without a figure leaves the entry as it is.
 */
static void isolate_enter_look(gm_device_entry *entry, const gm__isolate_look *look) {
  if (look->status != GM_OK) return;
  gm_device_entry seen = *entry;
  seen.memory = look->memory;
  gm__answer_mend_entry(&seen);
  if (seen.memory.free_state == GM_FIGURE_UNKNOWN) return;
  seen.memory.free_state = GM_FIGURE_ESTIMATED;
  entry->memory = seen.memory;
}

/* Reads the looks. *out_index: the card that was open when they ended. */
static gm_status isolate_receive_looks(gm__driver *driver, isolate_child *child, uint32_t *out_index, gm_error *err) {
  for (uint32_t i = 0; i < driver->entry_count; i++) {
    gm__isolate_look look;
    if (!gm__isolate_looks(driver->info.api, &driver->entries[i])) continue;
    *out_index = i;
    child->deadline = gm__deadline_after((uint64_t)GM__ISOLATE_LOOK_MS * 1000000u);
    const gm_status status = isolate_read(child, &look, sizeof look, err);
    if (status != GM_OK) return status;
    if (look.index != i) return gm__fail(err, GM_ERR_FORMAT, 0, "gm-probe", "the probe helper's look is damaged");
    isolate_enter_look(&driver->entries[i], &look);
  }
  return GM_OK;
}

/* Tells how the helper ended by itself; 0: it had to be killed. A helper that hangs after its answer, or after it
 * closed its output, must not hang the caller. */
static int isolate_wait(const isolate_child *child) {
  const struct timespec nap = {.tv_nsec = 1000000};
  int ended = 0;
  bool killed = false;
  for (;;) {
    pid_t waited = waitpid(child->pid, &ended, killed ? 0 : WNOHANG);
    if (waited == child->pid) return killed ? 0 : ended;
    if (waited < 0 && errno != EINTR) return 0; /* the host program ignores its children's end, or waited for it */
    if (!killed && gm__deadline_passed(child->deadline)) killed = kill(child->pid, SIGKILL) == 0;
    if (waited == 0 && !killed) nanosleep(&nap, NULL);
  }
}

/* How it ended, where that says more than "no answer". */
static gm_status isolate_end(isolate_child *child, gm_status status, gm_error *err) {
  uint64_t grace = gm__deadline_after((uint64_t)GM__ISOLATE_END_MS * 1000000u);
  close(child->fd);
  if (status == GM_ERR_TIMEOUT) grace = child->deadline;
  if (child->deadline > grace) child->deadline = grace;
  int ended = isolate_wait(child);
  if (WIFSIGNALED(ended) && status == GM_ERR_UNAVAILABLE) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, WTERMSIG(ended), "gm-probe",
                    "the driver ended the probe helper with signal %d (%s): it would have ended this process too",
                    WTERMSIG(ended), strsignal(WTERMSIG(ended)));
  }
  return status;
}

/* The backend has answered: whatever comes now is about one card. */
static void isolate_look(gm__driver *driver, isolate_child *child) {
  uint32_t index = 0;
  gm_error why = {.status = GM_OK};
  gm_status status = isolate_receive_looks(driver, child, &index, &why);
  status = isolate_end(child, status, &why);
  const bool hung = status == GM_ERR_TIMEOUT, killed = status == GM_ERR_UNAVAILABLE && why.native_code;
  if (!hung && !killed) return;
  driver->deadly = driver->entries[index].id;
  gm__fail(&driver->deadly_why, status, why.native_code, "gm-probe",
           hung ? "did not open in %d s in the probe helper" : "opening it ended the probe helper with signal %d",
           hung ? GM__ISOLATE_LOOK_MS / 1000 : (int)why.native_code);
}

gm_status gm__isolate(gm__driver *driver, gm_error *err) {
  isolate_child child;
  gm_status status = isolate_start(driver, &child, err);
  if (status != GM_OK) return status;
  driver->deadly_why = (gm_error){.status = GM_OK};
  status = isolate_receive(driver, &child, err);
  if (status != GM_OK) return isolate_end(&child, status, err);
  isolate_look(driver, &child);
  return GM_OK;
}
