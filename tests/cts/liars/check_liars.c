/* cts_liars GM_CTS MODULE [NAME]: the honest lazy backend passes the whole suite, and each liar fails the case of its
 * row. With NAME, runs the whole suite on that liar, and prints every case that fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cts/liars/liars.h"

enum { CHECK_TEXT = 65536 };

/* The exit status of gm_cts, and what it printed. */
static int check_run(const char *gm_cts, const char *module, const char *name, const char *only, char *out) {
  char command[2048];
  snprintf(command, sizeof command, "GM_LIAR='%s' '%s' --module '%s' %s %s 2>&1", name, gm_cts, module,
           only ? "--case" : "", only ? only : "");
  FILE *run = popen(command, "r");
  if (!run) return -1;
  const size_t length = fread(out, 1, CHECK_TEXT - 1, run);
  out[length] = 0;
  while (fgetc(run) != EOF) {}
  const int status = pclose(run);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int check_honest(const char *gm_cts, const char *module, char *out) {
  const int status = check_run(gm_cts, module, "", NULL, out);
  const bool good = status == 0 && strstr(out, " 0 failed\n");
  printf("%s honest: the whole suite passes\n%s", good ? "ok  " : "FAIL", good ? "" : out);
  return !good;
}

static int check_liar(const char *gm_cts, const char *module, const liar *row, char *out) {
  char want[160];
  snprintf(want, sizeof want, "  FAIL %s: ", row->caught_by);
  const int status = check_run(gm_cts, module, row->name, row->caught_by, out);
  const char *found = strstr(out, want);
  const bool good = status == 1 && found;
  printf("%s %s: %s\n", good ? "ok  " : "FAIL", row->name, row->lie);
  if (good) printf("    %.*s\n", (int)strcspn(found, "\n"), found);
  if (!good) printf("     %s does not say so, exit status %d:\n%s", row->caught_by, status, out);
  return !good;
}

int main(int argc, char **argv) {
  static char out[CHECK_TEXT];
  int failed = 0, count = 0;
  if (argc < 3 || argc > 4) {
    fprintf(stderr, "usage: cts_liars GM_CTS MODULE [NAME]\n");
    return 2;
  }
  if (argc == 4) {
    failed = check_run(argv[1], argv[2], argv[3], NULL, out);
    printf("%s", out);
    return failed;
  }
  failed += check_honest(argv[1], argv[2], out);
  for (const liar *row = liars; row->name; row++, count++) failed += check_liar(argv[1], argv[2], row, out);
  printf("%d liars, %d failures\n", count, failed);
  return failed != 0;
}
