/* The word that a misspelt one was meant to be. */
#ifndef GM_TOOLS_GMEM_OPTIONS_GUESS_H
#define GM_TOOLS_GMEM_OPTIONS_GUESS_H

/* How many letters were left out, put in, changed, or swapped with the next one. Words longer than 31 count as far. */
unsigned guess_distance(const char *typed, const char *meant);

/* The one of `words`, which end with NULL, that is spelt most like it; NULL: in each more than half is wrong. */
const char *guess_word(const char *typed, const char *const *words);

#endif
