/* Invariants: an array never has less room than items; an order is a permutation. A merge sort, not a hash table: names
 * come from an unknown author, and nobody can choose names for which it turns quadratic. */
#include "core/model/model_memory.h"

#include "core/base/alloc.h"
#include "core/base/error.h"

static gm_status memory_refused(uint64_t count, size_t item_bytes, gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_model_open", "no host memory for %llu items of %zu bytes",
                  (unsigned long long)count, item_bytes);
}

gm_status gm__model_alloc(const gm_services *services, uint64_t count, size_t item_bytes, void **out, gm_error *err) {
  void *items = count == 0 ? NULL : gm__alloc_array(services, count, item_bytes);
  if (count > 0 && !items) return memory_refused(count, item_bytes, err);
  *out = items;
  return GM_OK;
}

void gm__model_release(const gm_services *services, void *items, uint64_t count, size_t item_bytes) {
  gm__release(services, items, count * item_bytes);
}

gm_status gm__model_grow(const gm_services *services, void *items_at, uint64_t *capacity, uint64_t count,
                         size_t item_bytes, gm_error *err) {
  if (count < *capacity) return GM_OK;
  uint64_t larger = *capacity == 0 ? 16 : *capacity * 2; /* stays far below 2^32: every item was bytes of a header */
  if (!gm__grow(services, items_at, *capacity * item_bytes, larger * item_bytes)) {
    return memory_refused(larger, item_bytes, err);
  }
  *capacity = larger;
  return GM_OK;
}

typedef struct order_merge {
  const void *items;
  gm__model_compare compare;
  const uint32_t *from;
  uint32_t *to;
} order_merge;

/* [start, middle) and [middle, end) are sorted; `to` gets them as one. */
static void order_merge_runs(const order_merge *merge, uint64_t start, uint64_t middle, uint64_t end) {
  uint64_t left = start, right = middle;
  for (uint64_t at = start; at < end; at++) {
    bool take_left =
        right == end || (left < middle && merge->compare(merge->items, merge->from[left], merge->from[right]) <= 0);
    merge->to[at] = merge->from[take_left ? left++ : right++];
  }
}

static uint64_t order_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Bottom-up; answers which of the two arrays holds the result. */
static uint32_t *order_sort(const void *items, uint32_t *from, uint32_t *to, uint64_t count,
                            gm__model_compare compare) {
  for (uint64_t run = 1; run < count; run *= 2) {
    order_merge merge = {items, compare, from, to};
    for (uint64_t start = 0; start < count; start += 2 * run) {
      order_merge_runs(&merge, start, order_least(start + run, count), order_least(start + 2 * run, count));
    }
    uint32_t *sorted = to;
    to = from;
    from = sorted;
  }
  return from;
}

gm_status gm__model_order(const gm_services *services, const void *items, uint32_t count, gm__model_compare compare,
                          uint32_t **out, gm_error *err) {
  void *order = NULL, *scratch = NULL;
  gm_status status = gm__model_alloc(services, count, sizeof(uint32_t), &order, err);
  if (status == GM_OK) status = gm__model_alloc(services, count, sizeof(uint32_t), &scratch, err);
  if (status != GM_OK) {
    gm__model_release(services, order, count, sizeof(uint32_t));
    return status;
  }
  for (uint32_t i = 0; i < count; i++) ((uint32_t *)order)[i] = i;
  uint32_t *sorted = order_sort(items, order, scratch, count, compare);
  gm__model_release(services, sorted == order ? scratch : order, count, sizeof(uint32_t));
  *out = sorted;
  return GM_OK;
}
