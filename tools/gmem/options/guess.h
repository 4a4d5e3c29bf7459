/* What a misspelt word was meant to be. */
#ifndef GM_TOOLS_GMEM_OPTIONS_GUESS_H
#define GM_TOOLS_GMEM_OPTIONS_GUESS_H

#include <stdbool.h>

/* How many letters were left out, put in, changed, or swapped with the next one. Words longer than 31 count as far. */
unsigned guess_distance(const char *typed, const char *meant);

/* At most half of the word is wrong. */
bool guess_is_near(unsigned distance, const char *meant);

#endif
