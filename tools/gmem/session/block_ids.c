#include "tools/gmem/session/block_ids.h"

#include <stdlib.h>

void *list_room(void *list, size_t count, size_t item_bytes) {
  if (list && (count & (count - 1))) return list; /* only full at powers of two */
  size_t wanted = count ? 2 * count : 1;
  return wanted > SIZE_MAX / item_bytes ? NULL : realloc(list, wanted * item_bytes);
}

uint32_t block_ids_find(const uint64_t *ids, uint32_t count, uint64_t id) {
  uint32_t low = 0, high = count;
  if (!ids) return low;         /* never */
  uint64_t guess = id - ids[0]; /* most files count ids by one */
  if (guess < high && ids[guess] == id) return (uint32_t)guess;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (ids[middle] <= id) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}
