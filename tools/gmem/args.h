/* Values of options. What is wrong ends the program with exit code 2 and the usage on standard error. */
#ifndef GM_TOOLS_GMEM_ARGS_H
#define GM_TOOLS_GMEM_ARGS_H

#include <argp.h>
#include <stdint.h>

/* The option that every command has. */
#define ARGS_JSON_OPTION \
  { "json", 'j', NULL, 0, "Print one JSON object and nothing else", 0 }

/* Parse options and arguments in any order. */
void args_parse(const struct argp *argp, int argc, char **argv, void *input);

/* "4096", "8G". */
uint64_t args_bytes(const struct argp_state *state, const char *option, const char *text);

/* Decimal digits, low to high. */
uint32_t args_count(const struct argp_state *state, const char *option, const char *text, uint32_t low, uint32_t high);

/* Above 0, up to 1. */
double args_fraction(const struct argp_state *state, const char *option, const char *text);

/* The place of `text` in `words`, which ends with NULL. */
int args_word(const struct argp_state *state, const char *option, const char *text, const char *const *words);

#endif
