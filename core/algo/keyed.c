#include "core/algo/keyed.h"

#include <stdbool.h>
#include <string.h>

enum { KEYED_FEW = 48 }; /* below, inserting is faster than counting */

static void keyed_insert(gm__keyed *items, size_t count) {
  for (size_t i = 1; i < count; i++) {
    gm__keyed item = items[i];
    size_t at = i;
    for (; at > 0 && items[at - 1].key > item.key; at--) items[at] = items[at - 1];
    items[at] = item;
  }
}

/* Sorts by one byte of the key, from one array to the other. */
static void keyed_pass(const gm__keyed *from, gm__keyed *to, size_t count, unsigned shift) {
  size_t begins[256] = {0}, next = 0;
  for (size_t i = 0; i < count; i++) begins[from[i].key >> shift & 255]++;
  for (size_t i = 0; i < 256; i++) {
    size_t here = begins[i];
    begins[i] = next;
    next += here;
  }
  for (size_t i = 0; i < count; i++) to[begins[from[i].key >> shift & 255]++] = from[i];
}

void gm__keyed_sort(gm__keyed *items, gm__keyed *scratch, size_t count) {
  uint64_t differ = 0;
  gm__keyed *from = items, *to = scratch;
  if (count < KEYED_FEW) {
    keyed_insert(items, count);
    return;
  }
  bool sorted = true;
  for (size_t i = 1; i < count; i++) {
    differ |= items[i].key ^ items[0].key;
    sorted = sorted && items[i - 1].key <= items[i].key;
  }
  if (sorted) return;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    if (!(differ >> shift & 255)) continue;
    keyed_pass(from, to, count, shift);
    gm__keyed *other = from;
    from = to;
    to = other;
  }
  if (from != items) memcpy(items, from, count * sizeof *items);
}
