/* Values of options. A wrong value ends the program with exit code 2 and the reason on standard error. Where --json is
 * among the arguments, one object with the field "error" goes to standard output, too. */
#ifndef GM_TOOLS_GMEM_OPTIONS_ARGS_H
#define GM_TOOLS_GMEM_OPTIONS_ARGS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "gm/export.h"

/* The option that every command has. */
#define ARGS_JSON_OPTION \
  { "json", 'j', NULL, 0, "Print one JSON object and nothing else", 0 }

/* Parse options and arguments, -h and --color among them; `flags` are argp's. */
void args_parse(const struct argp *argp, unsigned flags, int argc, char **argv, void *input);

/* For who does not parse. */
bool args_ask_for_json(int argc, char **argv);

/* Bad usage: does not return. */
void args_error(const struct argp_state *state, const char *format, ...) GM_PRINTF(2, 3);

/* A size of memory: "8G", "2.5G", "24GiB", "16777216". A bare number below 1 MiB, other than 0, is refused with a
 * question: so few bytes have their unit, "4096B". */
uint64_t args_bytes(const struct argp_state *state, const char *option, const char *text);

/* A number that may be large: "4096", "8K". */
uint64_t args_number(const struct argp_state *state, const char *option, const char *text);

/* A path; an address of the web is none. */
const char *args_file(const struct argp_state *state, const char *text);

/* Decimal digits, low to high. */
uint32_t args_count(const struct argp_state *state, const char *option, const char *text, uint32_t low, uint32_t high);

/* Above 0, up to 1. */
double args_fraction(const struct argp_state *state, const char *option, const char *text);

/* The place of `text` in `words`, which ends with NULL. */
int args_word(const struct argp_state *state, const char *option, const char *text, const char *const *words);

#endif
