#include "core/host/task.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/decimal.h"
#include "core/base/file.h"

/* Fields of /proc/PID/stat, as proc(5) numbers them. */
enum { TASK_STATE = 3, TASK_THREADS = 20, TASK_START = 22, TASK_TEXT_SIZE = 2048 };

typedef struct task_stat {
  uint64_t pid, threads, start;
  char state;
} task_stat;

/* The field with that number. `text` begins with field 2, the only one with blanks and brackets in it. NULL: none. */
static const char *task_field(const char *text, int number) {
  const char *at = strrchr(text, ')');
  for (int field = 2; at && field < number; field++) {
    at = strchr(at, ' ');
    if (at) at++;
  }
  return at;
}

/* False: there is no such file, or gm does not understand it. */
static bool task_read(const char *root, const char *process, task_stat *out) {
  char path[64], text[TASK_TEXT_SIZE];
  snprintf(path, sizeof path, "/proc/%s/stat", process);
  if (gm__file_text(root, path, text, sizeof text) != GM__FILE_OK) return false;
  const char *start = task_field(text, TASK_START);
  if (!start) return false;
  out->state = *task_field(text, TASK_STATE);
  return gm__decimal(text, NULL, &out->pid) && gm__decimal(start, NULL, &out->start) &&
         gm__decimal(task_field(text, TASK_THREADS), NULL, &out->threads);
}

/* The inode of a namespace; 0: unknown. */
static uint64_t task_namespace(const char *root, const char *name) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/ns/%s", name);
  return gm__file_inode(root, path);
}

/* Kernels before 5.6 have no namespaces of time. The inodes have 32 bits. */
void gm__task_self(const char *root, gm__task *out) {
  task_stat stat;
  const uint64_t pids = task_namespace(root, "pid");
  *out = (gm__task){0};
  if (pids == 0 || !task_read(root, "self", &stat) || stat.pid != (uint64_t)getpid()) return;
  *out = (gm__task){.space = pids << 32 ^ task_namespace(root, "time"), .start = stat.start, .pid = (uint32_t)stat.pid};
}

/* A main thread that has ended while others run looks like a killed process, but for the number of threads. */
static bool task_is_over(const task_stat *stat) { return strchr("ZXx", stat->state) && stat->threads <= 1; }

/* A file that is not there proves nothing: /proc may hide a process from its own user. */
bool gm__task_has_ended(const char *root, const gm__task *self, const gm__task *task) {
  if (self->space == 0 || task->space != self->space || task->pid == 0 || task->pid > INT32_MAX) return false;
  if (kill((pid_t)task->pid, 0) != 0 && errno == ESRCH) return true;
  char process[16];
  task_stat stat;
  snprintf(process, sizeof process, "%u", (unsigned)task->pid);
  return task_read(root, process, &stat) && (stat.start != task->start || task_is_over(&stat));
}

bool gm__task_name(const char *root, uint32_t pid, char *out) {
  char path[32], text[GM__TASK_NAME + 2];
  snprintf(path, sizeof path, "/proc/%u/comm", (unsigned)pid);
  if (gm__file_text(root, path, text, sizeof text) != GM__FILE_OK) return false;
  snprintf(out, GM__TASK_NAME, "%.*s", (int)strcspn(text, "\n"), text);
  return out[0] != 0;
}
