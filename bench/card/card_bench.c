/* gm_card_bench --rows --traces DIR [--rounds N] | --free: the comparisons of card_rows.h without torch. Exit codes are
 * theirs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/card/card_rows.h"

static int bench_usage(void) {
  fprintf(stderr, "usage: gm_card_bench --rows --traces DIR [--rounds N] | --free\n");
  return 2;
}

int main(int argc, char **argv) {
  const char *traces = NULL;
  unsigned rounds = 3;
  if (argc == 2 && strcmp(argv[1], "--free") == 0) return gm_card_free(STDOUT_FILENO);
  if (argc < 4 || argc % 2 || strcmp(argv[1], "--rows") != 0) return bench_usage();
  for (int i = 2; i < argc; i += 2) {
    if (strcmp(argv[i], "--traces") == 0) {
      traces = argv[i + 1];
    } else if (strcmp(argv[i], "--rounds") == 0) {
      rounds = (unsigned)strtoul(argv[i + 1], NULL, 10);
    } else {
      return bench_usage();
    }
  }
  return traces ? gm_card_rows(NULL, traces, rounds, STDOUT_FILENO) : bench_usage();
}
