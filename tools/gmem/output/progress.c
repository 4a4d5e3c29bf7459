#include "tools/gmem/output/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/gmem/output/style.h"

enum { PROGRESS_CELLS = 30, PROGRESS_NONE = 101 };

static unsigned progress_last = PROGRESS_NONE;
static const char *progress_what = "";

void progress_show(const char *what, uint64_t done, uint64_t total) {
  static const char full[] = "##############################", none[] = "..............................";
  if (!isatty(STDERR_FILENO)) return;
  double share = total && done < total ? (double)done / (double)total : 1;
  unsigned percent = (unsigned)(share * 100);
  if (percent == progress_last && strcmp(what, progress_what) == 0) return;
  int cells = (int)(share * PROGRESS_CELLS);
  fprintf(stderr, "\r\033[K%-10s [%s%.*s%s%.*s] %3u %%", what, style_begin(stderr, STYLE_GREEN), cells, full,
          style_end(stderr), PROGRESS_CELLS - cells, none, percent);
  fflush(stderr);
  progress_last = percent;
  progress_what = what;
}

void progress_clear(void) {
  if (progress_last == PROGRESS_NONE) return;
  fputs("\r\033[K", stderr);
  fflush(stderr);
  progress_last = PROGRESS_NONE;
}
