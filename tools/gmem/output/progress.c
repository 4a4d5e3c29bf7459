#include "tools/gmem/output/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gm/size.h"
#include "tools/gmem/output/style.h"

enum {
  PROGRESS_CELLS = 30,
  PROGRESS_CELLS_LEAST = 5, /* fewer say nothing */
  PROGRESS_PAUSE_MS = 100,
  PROGRESS_RATE_MS = 500, /* earlier a rate is chance */
  PROGRESS_TEXT = 96
};

typedef enum progress_unit { PROGRESS_PARTS, PROGRESS_BYTES, PROGRESS_EVENTS } progress_unit;

/* The bar that is drawn; `what` NULL: nothing. */
static struct progress {
  const char *what;
  uint64_t began_ms, began_done; /* the rate is of what was done since */
  uint64_t drawn_ms;
} progress_now;

static uint64_t progress_clock_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void progress_rate(char *text, size_t capacity, double rate, progress_unit unit) {
  char number[24];
  gm_format_bytes((uint64_t)rate, number, sizeof number);
  if (unit == PROGRESS_BYTES) snprintf(text, capacity, "  %s/s", number);
  if (unit == PROGRESS_EVENTS && rate >= 1e6) snprintf(text, capacity, "  %.1f M events/s", rate / 1e6);
  if (unit == PROGRESS_EVENTS && rate < 1e6) snprintf(text, capacity, "  %.0f events/s", rate);
}

static void progress_left(char *text, size_t capacity, double seconds) {
  const unsigned left = seconds < 360000 ? (unsigned)(seconds + 0.999) : 360000;
  const unsigned hours = left / 3600, minutes = left / 60 % 60;
  if (hours) {
    snprintf(text, capacity, ", %u h %u min left", hours, minutes);
  } else if (minutes) {
    snprintf(text, capacity, ", %u min %u s left", minutes, left % 60);
  } else {
    snprintf(text, capacity, ", %u s left", left);
  }
}

/* The text behind the percentage; nothing while there is no rate. */
static void progress_tail(char *text, uint64_t done, uint64_t total, uint64_t now_ms, progress_unit unit) {
  const uint64_t passed_ms = now_ms - progress_now.began_ms;
  char rate_text[40] = "", left_text[40] = "";
  text[0] = '\0';
  if (passed_ms < PROGRESS_RATE_MS || done <= progress_now.began_done) return;
  const double rate = (double)(done - progress_now.began_done) * 1000 / (double)passed_ms;
  progress_rate(rate_text, sizeof rate_text, rate, unit);
  if (done < total) progress_left(left_text, sizeof left_text, (double)(total - done) / rate);
  snprintf(text, PROGRESS_TEXT, "%s%s", rate_text, left_text + (rate_text[0] ? 0 : 1));
}

/* One line that is narrower than the terminal, so that the next one can take its place. */
static void progress_line(const char *what, double share, const char *tail) {
  static const char full[] = "##############################", none[] = "..............................";
  const int columns = style_columns(stderr) - 1;
  char text[PROGRESS_TEXT];
  int length = snprintf(text, sizeof text, "%3u %%%s", (unsigned)(share * 100), tail);
  int room = columns - length - (int)sizeof "           [] ";
  int cells = room < PROGRESS_CELLS ? room : PROGRESS_CELLS;
  if (cells < PROGRESS_CELLS_LEAST) {
    char line[2 * PROGRESS_TEXT];
    snprintf(line, sizeof line, "%s %s", what, text);
    fprintf(stderr, "\r\033[K%.*s", columns, line);
    return;
  }
  int done = (int)(share * cells);
  fprintf(stderr, "\r\033[K%-10.18s [%s%.*s%s%.*s] %s", what, style_begin(stderr, STYLE_GREEN), done, full,
          style_end(stderr), cells - done, none, text);
}

static void progress_draw(const char *what, uint64_t done, uint64_t total, progress_unit unit) {
  static int is_terminal = -1;
  if (is_terminal < 0) is_terminal = isatty(STDERR_FILENO);
  if (!is_terminal) return;
  const uint64_t now_ms = progress_clock_ms();
  const bool is_new = !progress_now.what || strcmp(what, progress_now.what) != 0;
  if (is_new) progress_now = (struct progress){what, now_ms, done, 0};
  if (!is_new && done < total && now_ms - progress_now.drawn_ms < PROGRESS_PAUSE_MS) return;
  char tail[PROGRESS_TEXT];
  progress_tail(tail, done, total, now_ms, unit);
  progress_line(what, total && done < total ? (double)done / (double)total : 1, tail);
  fflush(stderr);
  progress_now.drawn_ms = now_ms;
}

void progress_show(const char *what, uint64_t done, uint64_t total) {
  progress_draw(what, done, total, PROGRESS_PARTS);
}

void progress_show_bytes(const char *what, uint64_t done, uint64_t total) {
  progress_draw(what, done, total, PROGRESS_BYTES);
}

void progress_show_events(const char *what, uint64_t done, uint64_t total) {
  progress_draw(what, done, total, PROGRESS_EVENTS);
}

void progress_clear(void) {
  if (!progress_now.what) return;
  fputs("\r\033[K", stderr);
  fflush(stderr);
  progress_now.what = NULL;
}
