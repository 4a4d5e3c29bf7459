#include "tools/gmem/options/args.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gm/size.h"
#include "tools/gmem/command.h"
#include "tools/gmem/options/guess.h"
#include "tools/gmem/output/json.h"
#include "tools/gmem/output/style.h"

/* ---- bad usage ---- */

static bool args_parsing;
static char args_reason[512] = "bad usage: standard error says what";

/* argp and getopt leave the program by themselves; the object that --json promises is printed on the way out. */
static void args_leave(int code, void *unused) {
  (void)unused;
  if (!args_parsing || code != GMEM_USAGE) return;
  args_parsing = false; /* once, however many parsers ran */
  json_writer out = {.file = stdout};
  writer_open(&out, NULL, '{');
  writer_text(&out, "error", args_reason);
  writer_close(&out);
}

bool args_ask_for_json(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "-j") == 0) return true;
  }
  return false;
}

void args_error(const struct argp_state *state, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(args_reason, sizeof args_reason, format, arguments);
  va_end(arguments);
  struct argp_state named = *state;
  const char *slash = strrchr(state->argv[0], '/');
  if (!named.name) named.name = (char *)(uintptr_t)(slash ? slash + 1 : state->argv[0]); /* argp has not begun yet */
  argp_error(&named, "%s", args_reason);
}

/* ---- what every command understands ---- */

enum { ARGS_COLOR = 0x1000, ARGS_NAMES = 48, ARGS_TYPED = 32 };

static const struct argp_option args_common_options[] = {
    {"color", ARGS_COLOR, "WHEN", OPTION_ARG_OPTIONAL, "Colours: auto (on a terminal without NO_COLOR), always, never",
     0},
    {NULL, 'h', NULL, OPTION_HIDDEN, NULL, 0},
    {0}};

static const struct argp_option *args_own_options; /* of the command that is parsed */

static size_t args_add_names(const struct argp_option *options, const char **names, size_t count) {
  for (; options && (options->name || options->key); options++) {
    if (options->name && count < ARGS_NAMES) names[count++] = options->name;
  }
  return count;
}

/* A name may be cut, as getopt_long takes it. */
static bool args_is_option(const char *typed, size_t length, const char *const *names) {
  while (*names && strncmp(*names, typed, length) != 0) names++;
  return *names != NULL;
}

/* getopt says which option it does not know, and not which one is meant. */
static void args_guess_option(const struct argp_state *state) {
  const char *names[ARGS_NAMES + 1] = {"help", "usage", "version"};
  const size_t count = args_add_names(args_own_options, names, 3);
  args_add_names(args_common_options, names, count);
  for (int i = 1; i < state->argc && strcmp(state->argv[i], "--") != 0; i++) {
    const char *word = state->argv[i];
    if (state->flags & ARGP_IN_ORDER && word[0] != '-') return; /* the rest is another's */
    const size_t length = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
    char typed[ARGS_TYPED];
    if (length == 0 || length >= sizeof typed || args_is_option(word + 2, length, names)) continue;
    snprintf(typed, sizeof typed, "%.*s", (int)length, word + 2);
    const char *guess = guess_word(typed, names);
    if (guess) args_error(state, "\"--%s\" is no option; did you mean \"--%s\"?", typed, guess);
  }
}

static error_t args_parse_common(int key, char *text, struct argp_state *state) {
  static const char *const modes[] = {"auto", "always", "never", NULL}; /* as style_mode */
  switch (key) {
    case ARGP_KEY_INIT: args_guess_option(state); return 0;
    case ARGS_COLOR: style_choose((style_mode)args_word(state, "--color", text ? text : "always", modes)); return 0;
    case 'h': argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp args_common = {.options = args_common_options, .parser = args_parse_common};

void args_parse(const struct argp *argp, unsigned flags, int argc, char **argv, void *input) {
  args_parsing = args_ask_for_json(argc, argv);
  if (args_parsing) on_exit(args_leave, NULL);
  const struct argp_child children[] = {{.argp = &args_common}, {0}};
  struct argp whole = *argp;
  args_own_options = argp->options;
  whole.children = children;
  argp_parse(&whole, argc, argv, flags, NULL, input);
  args_parsing = false;
}

/* ---- values ---- */

uint64_t args_number(const struct argp_state *state, const char *option, const char *text) {
  uint64_t number = 0;
  if (gm_parse_bytes(text, &number) != GM_OK) {
    args_error(state, "%s: \"%s\" is no size: digits and at most one of K, M, G, T, as in 24G or 2.5G, below 2^64",
               option, text);
  }
  return number;
}

/* A user who types 24 for a card means 24G. */
uint64_t args_bytes(const struct argp_state *state, const char *option, const char *text) {
  enum { SMALL = 1 << 20, MANY_GIB = 256, MANY_MIB = 1 << 16 };
  const uint64_t bytes = args_number(state, option, text);
  const bool is_bare = strspn(text, "0123456789") == strlen(text);
  if (is_bare && bytes > 0 && bytes < SMALL) {
    const unsigned small = (unsigned)bytes;
    args_error(state, "%s: %u byte%s? Did you mean %u%c? (%uB is so few bytes.)", option, small, small == 1 ? "" : "s",
               small,
               small < MANY_GIB   ? 'G'
               : small < MANY_MIB ? 'M'
                                  : 'K',
               small);
  }
  return bytes;
}

const char *args_file(const struct argp_state *state, const char *text) {
  if (strstr(text, "://")) args_error(state, "\"%s\": gm reads local files only", text);
  return text;
}

uint32_t args_count(const struct argp_state *state, const char *option, const char *text, uint32_t low, uint32_t high) {
  size_t digits = strspn(text, "0123456789");
  errno = 0;
  unsigned long long value = digits && !text[digits] ? strtoull(text, NULL, 10) : 0;
  if (!digits || text[digits] || errno || value < low || value > high) {
    args_error(state, "%s: \"%s\" is no number from %u to %u", option, text, low, high);
  }
  return (uint32_t)value;
}

double args_fraction(const struct argp_state *state, const char *option, const char *text) {
  size_t plain = strspn(text, "0123456789.");
  char *end = NULL;
  double value = plain && !text[plain] ? strtod(text, &end) : 0;
  if (!end || *end || !(value > 0 && value <= 1)) {
    args_error(state, "%s: \"%s\" is no fraction above 0 and up to 1", option, text);
  }
  return value;
}

int args_word(const struct argp_state *state, const char *option, const char *text, const char *const *words) {
  int place = 0;
  while (words[place] && strcmp(words[place], text) != 0) place++;
  if (!words[place]) {
    char list[128] = "";
    for (int i = 0; words[i]; i++) {
      strncat(list, i ? ", " : "", sizeof list - strlen(list) - 1);
      strncat(list, words[i], sizeof list - strlen(list) - 1);
    }
    const char *guess = guess_word(text, words);
    if (guess) args_error(state, "%s: \"%s\" is none of: %s; did you mean \"%s\"?", option, text, list, guess);
    args_error(state, "%s: \"%s\" is none of: %s", option, text, list);
  }
  return place;
}
