#include "tools/gmem/args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gm/size.h"

void args_parse(const struct argp *argp, int argc, char **argv, void *input) {
  argp_parse(argp, argc, argv, 0, NULL, input);
}

uint64_t args_bytes(const struct argp_state *state, const char *option, const char *text) {
  uint64_t bytes = 0;
  if (gm_parse_bytes(text, &bytes) != GM_OK) {
    argp_error(state, "%s: \"%s\" is no size: digits and at most one of K, M, G, T, below 2^64", option, text);
  }
  return bytes;
}

uint32_t args_count(const struct argp_state *state, const char *option, const char *text, uint32_t low, uint32_t high) {
  size_t digits = strspn(text, "0123456789");
  errno = 0;
  unsigned long long value = digits && !text[digits] ? strtoull(text, NULL, 10) : 0;
  if (!digits || text[digits] || errno || value < low || value > high) {
    argp_error(state, "%s: \"%s\" is no number from %u to %u", option, text, low, high);
  }
  return (uint32_t)value;
}

double args_fraction(const struct argp_state *state, const char *option, const char *text) {
  size_t plain = strspn(text, "0123456789.");
  char *end = NULL;
  double value = plain && !text[plain] ? strtod(text, &end) : 0;
  if (!end || *end || !(value > 0 && value <= 1)) {
    argp_error(state, "%s: \"%s\" is no fraction above 0 and up to 1", option, text);
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
    argp_error(state, "%s: \"%s\" is none of: %s", option, text, list);
  }
  return place;
}
