#include "backends/cpu/cpu_spans.h"

#include <string.h>

#include "core/base/alloc.h"

enum { SPANS_FIRST = 16 };

void gm__cpu_spans_init(gm__cpu_spans *spans, const gm_services *services) {
  *spans = (gm__cpu_spans){.services = services};
}

void gm__cpu_spans_clear(gm__cpu_spans *spans) {
  gm__release(spans->services, spans->all, spans->capacity * sizeof *spans->all);
  gm__cpu_spans_init(spans, spans->services);
}

bool gm__cpu_spans_room(gm__cpu_spans *spans) {
  if (spans->count < spans->capacity) return true;
  const size_t wanted = spans->capacity ? 2 * spans->capacity : SPANS_FIRST, each = sizeof *spans->all;
  if (!gm__grow(spans->services, &spans->all, spans->capacity * each, wanted * each)) return false;
  spans->capacity = wanted;
  return true;
}

/* The index of the first range that ends after `address`. */
static size_t spans_find(const gm__cpu_spans *spans, uint64_t address) {
  size_t low = 0, high = spans->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (spans->all[middle].end <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void gm__cpu_spans_add(gm__cpu_spans *spans, gm__cpu_span span) {
  const size_t at = spans_find(spans, span.begin);
  memmove(&spans->all[at + 1], &spans->all[at], (spans->count - at) * sizeof span);
  spans->all[at] = span;
  spans->count++;
}

void gm__cpu_spans_remove(gm__cpu_spans *spans, gm__cpu_span span) {
  const size_t first = spans_find(spans, span.begin);
  size_t behind = first;
  while (behind < spans->count && spans->all[behind].end <= span.end) behind++;
  if (behind == first) return;
  memmove(&spans->all[first], &spans->all[behind], (spans->count - behind) * sizeof span);
  spans->count -= behind - first;
}

gm__cpu_span gm__cpu_spans_at(const gm__cpu_spans *spans, uint64_t address) {
  return spans->all[spans_find(spans, address)];
}

bool gm__cpu_spans_touch(const gm__cpu_spans *spans, gm__cpu_span span) {
  const size_t at = spans_find(spans, span.begin);
  return at < spans->count && spans->all[at].begin < span.end;
}

bool gm__cpu_spans_hold(const gm__cpu_spans *spans, gm__cpu_span span) {
  const size_t at = spans_find(spans, span.begin);
  return at < spans->count && spans->all[at].begin <= span.begin && span.end <= spans->all[at].end;
}

bool gm__cpu_spans_cover(const gm__cpu_spans *spans, gm__cpu_span span) {
  for (size_t at = spans_find(spans, span.begin); at < spans->count; at++) {
    if (spans->all[at].begin > span.begin) return false;
    if (spans->all[at].end >= span.end) return true;
    span.begin = spans->all[at].end;
  }
  return false;
}

bool gm__cpu_spans_tile(const gm__cpu_spans *spans, gm__cpu_span span) {
  if (!gm__cpu_spans_cover(spans, span)) return false;
  return spans->all[spans_find(spans, span.begin)].begin == span.begin &&
         spans->all[spans_find(spans, span.end - 1)].end == span.end;
}
