#include "tools/gmem/output/style.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { STYLE_COLUMNS = 80 /* where the terminal does not say */ };

static style_mode style_chosen = STYLE_AUTO;

void style_choose(style_mode mode) { style_chosen = mode; }

bool style_is_terminal(FILE *file) {
  const char *terminal = getenv("TERM");
  return terminal && *terminal && strcmp(terminal, "dumb") != 0 && isatty(fileno(file));
}

int style_columns(FILE *file) {
  struct winsize size;
  if (!isatty(fileno(file))) return 0;
  return ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : STYLE_COLUMNS;
}

bool style_has_blocks(FILE *file) {
  if (!style_is_terminal(file)) return false;
  const locale_t words = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
  if (!words) return false;
  const bool is_utf8 = strcmp(nl_langinfo_l(CODESET, words), "UTF-8") == 0;
  freelocale(words);
  return is_utf8;
}

bool style_is_on(FILE *file) {
  const char *plain = getenv("NO_COLOR");
  if (style_chosen != STYLE_AUTO) return style_chosen == STYLE_ALWAYS;
  return !(plain && *plain) && style_is_terminal(file);
}

const char *style_begin(FILE *file, style_colour colour) {
  static const char *const codes[] = {"\033[31m", "\033[32m", "\033[33m", "\033[34m", "\033[35m", "\033[36m"};
  return style_is_on(file) ? codes[colour - STYLE_RED] : "";
}

const char *style_end(FILE *file) { return style_is_on(file) ? "\033[0m" : ""; }
