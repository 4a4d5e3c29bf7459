#include "tools/gmem/options/guess.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { GUESS_LETTERS = 32 };

static unsigned guess_least(unsigned a, unsigned b) { return a < b ? a : b; }

/* Row by row: cost[i][k] is the distance of the first i letters typed to the first k that were meant. */
unsigned guess_distance(const char *typed, const char *meant) {
  unsigned cost[GUESS_LETTERS][GUESS_LETTERS];
  const size_t rows = strlen(typed), columns = strlen(meant);
  if (rows >= GUESS_LETTERS || columns >= GUESS_LETTERS) return UINT_MAX / 2;
  for (unsigned i = 0; i <= rows; i++) {
    for (unsigned k = 0; k <= columns; k++) {
      if (i == 0 || k == 0) {
        cost[i][k] = i + k;
        continue;
      }
      const bool same = typed[i - 1] == meant[k - 1];
      const bool swapped = i > 1 && k > 1 && typed[i - 1] == meant[k - 2] && typed[i - 2] == meant[k - 1];
      cost[i][k] = guess_least(cost[i - 1][k - 1] + !same, guess_least(cost[i - 1][k], cost[i][k - 1]) + 1);
      if (swapped) cost[i][k] = guess_least(cost[i][k], cost[i - 2][k - 2] + 1);
    }
  }
  return cost[rows][columns];
}

const char *guess_word(const char *typed, const char *const *words) {
  const char *best = NULL;
  unsigned least = UINT_MAX;
  for (; *words; words++) {
    const unsigned distance = guess_distance(typed, *words);
    if (2 * (size_t)distance > strlen(*words) || distance >= least) continue;
    best = *words;
    least = distance;
  }
  return best;
}
