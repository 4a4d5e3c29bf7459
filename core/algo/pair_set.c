#include "core/algo/pair_set.h"

#include "core/base/alloc.h"

/* A treap: a search tree by pair that is a heap by weight. Weights are a mix of the node's number, so that the shape,
 * and with it the time, is the same in every run. `reserve` counts only what it may hand out. Pairs that were given
 * back lie in the list `unused`, whose length is not known. So room is made at the end. */

enum { PAIR_FIRST = 64 };

static bool pair_less(gm__pair a, gm__pair b) { return a.key < b.key || (a.key == b.key && a.value < b.value); }

static uint32_t pair_weight(uint64_t number) {
  uint64_t mixed = number * UINT64_C(0x9e3779b97f4a7c15);
  mixed = (mixed ^ (mixed >> 32)) * UINT64_C(0xd6e8feb86659fd93);
  return (uint32_t)(mixed >> 32);
}

bool gm__pair_set_reserve(gm__pair_set *set, uint32_t count) {
  size_t wanted = (size_t)set->used + 1 + count, capacity = set->capacity ? set->capacity : PAIR_FIRST;
  if (wanted <= set->capacity) return true;
  while (capacity < wanted) capacity *= 2;
  if (capacity > UINT32_MAX || capacity > SIZE_MAX / sizeof(gm__pair_node)) return false;
  const size_t size = sizeof(gm__pair_node);
  if (!gm__grow(set->services, &set->nodes, set->capacity * size, capacity * size)) return false;
  set->capacity = capacity;
  return true;
}

static uint32_t pair_new(gm__pair_set *set, gm__pair pair) {
  uint32_t node = set->unused;
  if (node) {
    set->unused = set->nodes[node].left;
  } else {
    if (!gm__pair_set_reserve(set, 1)) return 0;
    node = ++set->used;
  }
  set->nodes[node] = (gm__pair_node){.pair = pair, .weight = pair_weight(node)};
  return node;
}

/* Split the tree: pairs below `pair` go to *low, the rest to *high. */
static void pair_split(gm__pair_set *set, uint32_t node, gm__pair pair, uint32_t *low, uint32_t *high) {
  while (node) {
    gm__pair_node *at = &set->nodes[node];
    if (pair_less(at->pair, pair)) {
      *low = node;
      low = &at->right;
      node = at->right;
    } else {
      *high = node;
      high = &at->left;
      node = at->left;
    }
  }
  *low = *high = 0;
}

bool gm__pair_set_put(gm__pair_set *set, uint64_t key, uint64_t value) {
  gm__pair pair = {key, value};
  uint32_t node = pair_new(set, pair), *link = &set->root;
  if (!node) return false;
  gm__pair_node *added = &set->nodes[node];
  while (*link && set->nodes[*link].weight >= added->weight) {
    gm__pair_node *at = &set->nodes[*link];
    link = pair_less(at->pair, pair) ? &at->right : &at->left;
  }
  uint32_t below = *link;
  *link = node;
  pair_split(set, below, pair, &added->left, &added->right);
  return true;
}

/* All of `low` is below all of `high`. */
static uint32_t pair_join(gm__pair_set *set, uint32_t low, uint32_t high) {
  uint32_t root = 0, *link = &root;
  while (low && high) {
    if (set->nodes[low].weight >= set->nodes[high].weight) {
      *link = low;
      link = &set->nodes[low].right;
      low = *link;
    } else {
      *link = high;
      link = &set->nodes[high].left;
      high = *link;
    }
  }
  *link = low ? low : high;
  return root;
}

/* The link to a pair; that is 0 where it is not there. */
static uint32_t *pair_link(gm__pair_set *set, gm__pair pair) {
  uint32_t *link = &set->root;
  while (*link) {
    gm__pair_node *at = &set->nodes[*link];
    if (pair_less(at->pair, pair)) {
      link = &at->right;
    } else if (pair_less(pair, at->pair)) {
      link = &at->left;
    } else {
      break;
    }
  }
  return link;
}

bool gm__pair_set_take(gm__pair_set *set, uint64_t key, uint64_t value) {
  uint32_t *link = pair_link(set, (gm__pair){key, value}), node = *link;
  if (!node) return false;
  *link = pair_join(set, set->nodes[node].left, set->nodes[node].right);
  set->nodes[node].left = set->unused;
  set->unused = node;
  return true;
}

bool gm__pair_set_change(gm__pair_set *set, gm__pair from, gm__pair to) {
  uint32_t node = *pair_link(set, from);
  if (node) set->nodes[node].pair = to;
  return node != 0;
}

/* On the way to where the pair would stand, the last node on either side is its neighbour. */
void gm__pair_set_around(const gm__pair_set *set, uint64_t key, uint64_t value, gm__pair *below, gm__pair *from) {
  gm__pair pair = {key, value};
  uint32_t node = set->root, low = 0, high = 0;
  while (node) {
    const gm__pair_node *at = &set->nodes[node];
    bool less = pair_less(at->pair, pair);
    low = less ? node : low;
    high = less ? high : node;
    node = less ? at->right : at->left;
  }
  if (low) *below = set->nodes[low].pair;
  if (high) *from = set->nodes[high].pair;
}

void gm__pair_set_close(gm__pair_set *set) {
  gm__release(set->services, set->nodes, set->capacity * sizeof *set->nodes);
  *set = (gm__pair_set){.services = set->services};
}
