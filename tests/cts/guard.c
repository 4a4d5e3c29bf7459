/* No entry of a backend does these things beside its work: print, change the calling thread, end the process.
 *
 * While a case runs, standard output and standard error are one file of memory. The suite's own lines go to cts_out,
 * which is the standard output from before. */
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cts/cts.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GUARD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define GUARD_SANITIZED 1
#endif
#endif
#ifndef GUARD_SANITIZED
#define GUARD_SANITIZED 0
#endif
#if GUARD_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

typedef struct guard_thread {
  sigset_t signals;
  int rounding;
  mode_t mask;
  char folder[512], locale[128];
} guard_thread;

static struct {
  int out, err;              /* what standard output and standard error were */
  int heard;                 /* the file that they are while a case runs */
  const char *volatile name; /* of the case that runs; NULL: none */
  guard_thread before;
} guard = {-1, -1, -1, NULL, {.rounding = 0}};

FILE *cts_out;

/* Only calls that a signal handler may make. */
static void guard_write(const char *text) {
  if (write(guard.out, text, strlen(text)) < 0) _exit(1);
}

static void guard_repeat(void) {
  char text[512];
  ssize_t count;
  for (off_t at = 0; (count = pread(guard.heard, text, sizeof text, at)) > 0; at += count) {
    if (write(guard.err, text, (size_t)count) < 0) return;
  }
}

static void guard_end_of_process(void) {
  if (!guard.name) return;
  guard_write("  FAIL ");
  guard_write(guard.name);
  guard_write(": the process ends in this case\n");
  guard_repeat();
}

/* Whatever code the backend leaves with, the run has failed. */
static void guard_exit(void) {
  if (!guard.name) return;
  guard_end_of_process();
  _exit(1);
}

#if !GUARD_SANITIZED
static const int guard_signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

static void guard_signal(int number) {
  guard_end_of_process();
  signal(number, SIG_DFL);
  raise(number);
}
#endif

bool cts_guard_start(void) {
  guard.out = dup(STDOUT_FILENO);
  guard.err = dup(STDERR_FILENO);
  guard.heard = memfd_create("gm_cts", MFD_CLOEXEC);
  cts_out = guard.out < 0 ? NULL : fdopen(dup(guard.out), "w");
  if (!cts_out || guard.err < 0 || guard.heard < 0) return false;
  atexit(guard_exit);
#if GUARD_SANITIZED
  __sanitizer_set_death_callback(guard_end_of_process); /* their report would stay in the file of memory */
#else
  for (size_t i = 0; i < sizeof guard_signals / sizeof guard_signals[0]; i++) signal(guard_signals[i], guard_signal);
#endif
  return true;
}

static void guard_read_thread(guard_thread *out) {
  const char *locale = setlocale(LC_ALL, NULL);
  memset(out, 0, sizeof *out);
  pthread_sigmask(SIG_BLOCK, NULL, &out->signals);
  out->rounding = fegetround();
  out->mask = umask(0);
  umask(out->mask);
  if (!getcwd(out->folder, sizeof out->folder)) out->folder[0] = 0;
  snprintf(out->locale, sizeof out->locale, "%s", locale ? locale : "");
}

static void guard_swap(int out, int err) {
  fflush(stdout);
  fflush(stderr);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
}

void cts_guard_begin(const char *name) {
  if (ftruncate(guard.heard, 0) != 0 || lseek(guard.heard, 0, SEEK_SET) != 0) abort();
  guard_read_thread(&guard.before);
  fflush(cts_out);
  guard_swap(guard.heard, guard.heard);
  guard.name = name;
}

static const char *guard_changed(void) {
  guard_thread now;
  guard_read_thread(&now);
  if (memcmp(&now.signals, &guard.before.signals, sizeof now.signals) != 0) return "its blocked signals";
  if (now.rounding != guard.before.rounding) return "its rounding";
  if (now.mask != guard.before.mask) return "the mask of new files";
  if (strcmp(now.folder, guard.before.folder) != 0) return "the working folder";
  return strcmp(now.locale, guard.before.locale) != 0 ? "the locale" : NULL;
}

void cts_guard_end(cts *t, bool may_print) {
  char text[200] = "";
  const char *changed = guard_changed();
  guard_swap(guard.out, guard.err);
  guard.name = NULL;
  const ssize_t count = pread(guard.heard, text, sizeof text - 1, 0);
  if (count > 0) guard_repeat();
  if (t->failed) return;
  if (count > 0 && !may_print) {
    snprintf(t->why, sizeof t->why, "the backend prints: %.*s", (int)strcspn(text, "\n"), text);
    t->failed = true;
  } else if (changed) {
    snprintf(t->why, sizeof t->why, "the backend changes the calling thread: %s", changed);
    t->failed = true;
  }
}
