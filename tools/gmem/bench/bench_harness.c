#include "tools/gmem/bench/bench_harness.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HARNESS_ARGUMENTS = 32, HARNESS_VARIABLES = 4096 };

extern char **environ;

/* ---- figures ---- */

double harness_figure(const harness_figures *figures, const char *name) {
  for (size_t i = 0; i < figures->count; i++) {
    if (strcmp(figures->names[i], name) == 0) return figures->values[i];
  }
  return (double)NAN;
}

static void harness_add(harness_figures *figures, const char *name, double value) {
  if (figures->count == HARNESS_FIGURES) return;
  snprintf(figures->names[figures->count], HARNESS_NAME, "%s", name);
  figures->values[figures->count++] = value;
}

void harness_merge(harness_figures *figures, const harness_figures *more) {
  if (figures->count == 0) *figures = *more;
  for (size_t i = 0; i < figures->count; i++) {
    double other = harness_figure(more, figures->names[i]);
    bool greater = strstr(figures->names[i], "failed") != NULL;
    figures->values[i] = greater ? fmax(figures->values[i], other) : fmin(figures->values[i], other);
  }
}

/* ---- running ---- */

bool harness_beside(const char *name, char *out, size_t capacity) {
  char self[HARNESS_PATH];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return false;
  self[length] = '\0';
  char *slash = strrchr(self, '/');
  if (!slash) return false;
  *slash = '\0';
  int written = snprintf(out, capacity, "%s/%s", self, name);
  return written > 0 && (size_t)written < capacity && access(out, R_OK) == 0;
}

/* The environment of this process and what the allocator wants, which comes first and so counts. */
static void harness_environment(const harness_allocator *allocator, char *capacity, char **out) {
  size_t count = 0;
  if (capacity[0]) out[count++] = capacity;
  for (size_t i = 0; i < HARNESS_ENVIRONMENT && allocator->environment[i][0]; i++) {
    out[count++] = (char *)(uintptr_t)allocator->environment[i];
  }
  for (char **at = environ; *at && count + 1 < HARNESS_VARIABLES; at++) {
    out[count++] = *at;
  }
  out[count] = NULL;
}

static pid_t harness_spawn(char *const *arguments, char *const *environment, int output) {
  posix_spawn_file_actions_t actions;
  pid_t child = -1;
  if (posix_spawn_file_actions_init(&actions) != 0) return -1;
  bool ready = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) == 0;
  if (!ready || posix_spawn(&child, arguments[0], &actions, NULL, arguments, environment) != 0) child = -1;
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

static void harness_read(int input, harness_figures *out) {
  FILE *file = fdopen(input, "r");
  char line[256], name[HARNESS_NAME];
  double value;
  if (!file) {
    close(input);
    return;
  }
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "%23s %lf", name, &value) == 2) harness_add(out, name, value);
  }
  fclose(file);
}

static bool harness_finish(pid_t child) {
  int state = 0;
  return child > 0 && waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

/* gm_bench, the allocator, the arguments. */
static void harness_arguments(char *program, const harness_allocator *allocator, const char *const *arguments,
                              const char **out) {
  size_t count = 0;
  out[count++] = program;
  if (allocator->path[0]) {
    const char *const own[] = {"--peer", allocator->path, "--config", allocator->config};
    memcpy(out + count, own, sizeof own);
    count += sizeof own / sizeof *own;
  }
  while (*arguments && count + 1 < HARNESS_ARGUMENTS) out[count++] = *arguments++;
  out[count] = NULL;
}

bool harness_run(const harness_allocator *allocator, const char *const *arguments, uint64_t capacity_mib,
                 harness_figures *out) {
  char program[HARNESS_PATH], capacity[64] = "";
  const char *list[HARNESS_ARGUMENTS];
  char *environment[HARNESS_VARIABLES];
  int ends[2];
  *out = (harness_figures){.count = 0};
  if (!harness_beside("gm_bench", program, sizeof program) || pipe2(ends, O_CLOEXEC) != 0) return false;
  if (capacity_mib) snprintf(capacity, sizeof capacity, "FAKECUDA_CAP_MIB=%" PRIu64, capacity_mib);
  harness_arguments(program, allocator, arguments, list);
  harness_environment(allocator, capacity, environment);
  pid_t child = harness_spawn((char *const *)(uintptr_t)list, environment, ends[1]);
  close(ends[1]);
  harness_read(ends[0], out);
  bool done = harness_finish(child);
  if (!done) *out = (harness_figures){.count = 0};
  return done;
}
