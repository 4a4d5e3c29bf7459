/* gm-probe BACKEND LIBRARY OPTIONS [MODULE]: asks one driver what it has and writes the finding to standard output. It
 * is a process of its own, so a driver that aborts or hangs takes only this one down. Run by libgm, not by people. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "gm/probe.h"

int main(int argc, char **argv) {
  if (argc != 4 && argc != 5) {
    fprintf(stderr, "usage: gm-probe BACKEND LIBRARY OPTIONS [MODULE] (run by libgm)\n");
    return 2;
  }
  /* Drivers that print must not get between the bytes of the finding. */
  int findings = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0); /* not for the compilers that drivers start */
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (findings < 0 || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0) return 1;
  gm_error err = {.status = GM_OK};
  if (gm_probe_serve_module(argv[4], argv[1], argv[2], argv[3], findings, &err) == GM_OK) return 0;
  fprintf(stderr, "gm-probe: %s: %s\n", err.op, err.message);
  return 1;
}
