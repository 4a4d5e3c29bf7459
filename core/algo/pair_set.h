/* A set of pairs of numbers, in order: (key, value), compared by key, then by value. Steps: the logarithm of the count.
 * Externally synchronised. */
#ifndef GM_CORE_ALGO_PAIR_SET_H
#define GM_CORE_ALGO_PAIR_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/services.h"

typedef struct gm__pair {
  uint64_t key, value;
} gm__pair;

typedef struct gm__pair_node {
  gm__pair pair;
  uint32_t left, right; /* of what is unused: left is the next one */
  uint32_t weight;      /* none below is heavier */
} gm__pair_node;

/* Zero-initialised but for the services (borrowed, may be NULL) it is empty. */
typedef struct gm__pair_set {
  const gm_services *services;
  gm__pair_node *nodes; /* number 0 is none */
  size_t capacity;
  uint32_t root, unused;
  uint32_t used; /* of `nodes` were ever used */
} gm__pair_set;

/* Make sure that the next `count` pairs find room. False: no host memory. */
bool gm__pair_set_reserve(gm__pair_set *set, uint32_t count);

/* Add a pair that is not there. False: no host memory. */
bool gm__pair_set_put(gm__pair_set *set, uint64_t key, uint64_t value);

/* Take one out. False: it is not there. */
bool gm__pair_set_take(gm__pair_set *set, uint64_t key, uint64_t value);

/* Put `to` where `from` is: no other pair may lie between them. False: `from` is not there. */
bool gm__pair_set_change(gm__pair_set *set, gm__pair from, gm__pair to);

/* The last pair that is below this one, and the first that is not. Where there is none, the output is left as it
 * is. */
void gm__pair_set_around(const gm__pair_set *set, uint64_t key, uint64_t value, gm__pair *below, gm__pair *from);

void gm__pair_set_close(gm__pair_set *set);

#endif
