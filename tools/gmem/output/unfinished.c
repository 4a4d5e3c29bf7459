/* Invariants: unfinished_path names the file from before it is made, exactly while the signals are caught. A signal
 * that is ignored (nohup) stays so. */
#include "tools/gmem/output/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int unfinished_signals[] = {SIGINT, SIGTERM, SIGHUP};

enum { UNFINISHED_SIGNALS = sizeof unfinished_signals / sizeof *unfinished_signals };

static char unfinished_path[PATH_MAX];
static struct sigaction unfinished_before[UNFINISHED_SIGNALS];

static void unfinished_stop(int number) {
  unlink(unfinished_path);
  raise(number); /* SA_RESETHAND: it ends the program once this has returned */
}

static void unfinished_catch(const char *path) {
  struct sigaction action = {.sa_handler = unfinished_stop, .sa_flags = (int)SA_RESETHAND};
  memcpy(unfinished_path, path, strlen(path) + 1);
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < UNFINISHED_SIGNALS; i++) {
    sigaction(unfinished_signals[i], NULL, &unfinished_before[i]);
    if (unfinished_before[i].sa_handler != SIG_IGN) sigaction(unfinished_signals[i], &action, NULL);
  }
}

void unfinished_end(void) {
  for (int i = 0; i < UNFINISHED_SIGNALS; i++) sigaction(unfinished_signals[i], &unfinished_before[i], NULL);
}

/* mkostemps writes the name into unfinished_path before it makes the file, so a signal never leaves one. */
int unfinished_make(char *path, int ending, mode_t mode) {
  unfinished_catch(path);
  int fd = mkostemps(unfinished_path, ending, O_CLOEXEC);
  bool made = fd >= 0 && fchmod(fd, mode) == 0;
  int code = errno;
  memcpy(path, unfinished_path, strlen(unfinished_path) + 1);
  if (made) return fd;
  if (fd >= 0) {
    unlink(path);
    close(fd);
  }
  unfinished_end();
  errno = code;
  return -1;
}
