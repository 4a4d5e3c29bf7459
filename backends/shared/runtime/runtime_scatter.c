/* Many small copies by one launch: in gm__runtime_program's words. */
#include "backends/shared/runtime/runtime_program.h"
#include "core/base/saturate.h"

#define GM__PROGRAM_TYPE(...) __VA_ARGS__
#define GM__PROGRAM(...)
#include "backends/shared/runtime/program_copy_many.def"
#undef GM__PROGRAM_TYPE
#undef GM__PROGRAM

enum { SCATTER_LEAST = 16, SCATTER_ITEM_MOST = 65536, SCATTER_THREADS = 64 };
enum { SCATTER_ITEMS = sizeof((gm_copy_items *)0)->item / sizeof((gm_copy_items *)0)->item[0] };

_Static_assert(sizeof(gm_copy_items) <= 4096, "what a driver takes as arguments of a launch");

typedef struct scatter_span { /* addresses that the items use: [first, end) */
  uint64_t first, end;
} scatter_span;

typedef struct scatter_spans {
  scatter_span to, from;
} scatter_spans;

static uint64_t scatter_to(const gm_copy_item *item) { return item->dst->address + item->dst_offset; }
static uint64_t scatter_from(const gm_copy_item *item) { return item->src->address + item->src_offset; }

static void scatter_add(scatter_span *span, uint64_t at, uint64_t bytes) {
  span->first = gm__min(span->first, at);
  span->end = gm__max(span->end, at + bytes);
}

static bool scatter_is_near(const scatter_span *span) { return span->end - span->first <= UINT32_MAX; }

/* Many small items, their targets in order. No source is a target: the threads copy in any order. */
static bool scatter_suits(const gm_copy_item *items, uint32_t count, scatter_spans *out) {
  *out = (scatter_spans){{UINT64_MAX, 0}, {UINT64_MAX, 0}};
  if (count < SCATTER_LEAST) return false;
  for (uint32_t i = 0; i < count; i++) {
    const gm_copy_item *item = &items[i];
    if (item->bytes > SCATTER_ITEM_MOST || scatter_to(item) < out->to.end) return false;
    scatter_add(&out->to, scatter_to(item), item->bytes);
    scatter_add(&out->from, scatter_from(item), item->bytes);
  }
  const bool apart = out->to.end <= out->from.first || out->from.end <= out->to.first;
  return apart && scatter_is_near(&out->to) && scatter_is_near(&out->from);
}

static void scatter_take(gm_copy_items *out, const gm_copy_item *items, uint32_t count, const scatter_spans *spans) {
  out->to = spans->to.first;
  out->from = spans->from.first;
  out->count = count;
  for (uint32_t i = 0; i < count; i++) {
    out->item[i].to = (unsigned)(scatter_to(&items[i]) - out->to);
    out->item[i].from = (unsigned)(scatter_from(&items[i]) - out->from);
    out->item[i].bytes = (unsigned)items[i].bytes;
  }
}

uint32_t gm__runtime_scatter(gm__runtime_device *device, void *stream, const gm_copy_item *items, uint32_t count,
                             int *out_code) {
  gm_copy_items taken;
  scatter_spans spans;
  void *parameters[] = {&taken};
  uint32_t at = 0;
  bool done = true;
  *out_code = GM__RUNTIME_SUCCESS;
  if (!scatter_suits(items, count, &spans)) return 0;
  for (uint32_t some; at < count; at += some) {
    some = count - at < SCATTER_ITEMS ? count - at : SCATTER_ITEMS;
    scatter_take(&taken, items + at, some, &spans);
    *out_code = gm__runtime_launch(device, GM__RUNTIME_COPY_MANY, some, SCATTER_THREADS, stream, parameters, &done);
    if (!done) break;
  }
  return at;
}
