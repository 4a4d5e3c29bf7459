#include "tests/simulated/cuda/sim_span.h"

#include <stdlib.h>
#include <string.h>

static bool span_insert(sim_span_list *list, size_t index, uint64_t at, uint64_t bytes) {
  if (list->count == list->capacity) {
    size_t capacity = list->capacity ? list->capacity * 2 : 64;
    sim_span *grown = realloc(list->spans, capacity * sizeof *grown);
    if (!grown) return false;
    list->spans = grown;
    list->capacity = capacity;
  }
  sim_span *place = list->spans + index;
  memmove(place + 1, place, (list->count - index) * sizeof *place);
  *place = (sim_span){at, bytes};
  list->count++;
  return true;
}

/* First span that ends behind `at`. */
static size_t span_find(const sim_span_list *list, uint64_t at) {
  size_t low = 0, high = list->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (list->spans[middle].at + list->spans[middle].bytes > at)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

bool sim_span_take(sim_span_list *list, uint64_t bytes, uint64_t alignment, uint64_t *at_out) {
  uint64_t at = list->begin;
  for (size_t i = 0; i <= list->count; i++) {
    uint64_t end = i < list->count ? list->spans[i].at : list->end;
    at = (at + alignment - 1) / alignment * alignment;
    if (at <= end && end - at >= bytes) {
      *at_out = at;
      return span_insert(list, i, at, bytes);
    }
    if (i < list->count) at = list->spans[i].at + list->spans[i].bytes;
  }
  return false;
}

bool sim_span_take_at(sim_span_list *list, uint64_t at, uint64_t bytes) {
  if (at < list->begin || at > list->end || bytes > list->end - at) return false;
  size_t index = span_find(list, at);
  if (index < list->count && list->spans[index].at < at + bytes) return false;
  return span_insert(list, index, at, bytes);
}

void sim_span_give(sim_span_list *list, uint64_t at) {
  size_t index = span_find(list, at);
  list->count--;
  memmove(list->spans + index, list->spans + index + 1, (list->count - index) * sizeof *list->spans);
}
