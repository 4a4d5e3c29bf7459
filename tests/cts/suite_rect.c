/* Boxed copies with pitches, against a plain loop. */
#include <string.h>

#include "cts/cts.h"

enum { RECT_ROOM = 32768 };

/* Random boxes whose rows and slices do not overlap, both sides inside RECT_ROOM. Some pitches are 0: tight. */
static gm_rect rect_random(cts *t) {
  gm_rect rect = {.row_bytes = 1 + cts_random(t, 40), .rows = 1 + cts_random(t, 12), .slices = 1 + cts_random(t, 4)};
  const uint64_t loose = cts_random(t, 8);
  rect.src_row_pitch = loose & 1 ? rect.row_bytes + cts_random(t, 60) : 0;
  rect.dst_row_pitch = loose & 2 ? rect.row_bytes + cts_random(t, 60) : 0;
  const uint64_t src_slice = (rect.src_row_pitch ? rect.src_row_pitch : rect.row_bytes) * rect.rows;
  const uint64_t dst_slice = (rect.dst_row_pitch ? rect.dst_row_pitch : rect.row_bytes) * rect.rows;
  rect.src_slice_pitch = loose & 4 ? src_slice + cts_random(t, 500) : 0;
  rect.dst_slice_pitch = loose & 4 ? dst_slice + cts_random(t, 500) : 0;
  rect.src_offset = cts_random(t, 5000);
  rect.dst_offset = cts_random(t, 5000);
  return rect;
}

/* 0: host to device, 1: device to host, 2: on the device, 3: on the device, to the next type of memory. */
static void rect_rounds(cts *t, int direction, bool wait) {
  static unsigned char src[RECT_ROOM], want[RECT_ROOM], got[RECT_ROOM];
  gm_memory from, to;
  void *stream;
  const gm_backend_ops *ops = t->ops;
  const uint32_t to_type = direction == 3 ? (t->type + 1) % t->type_count : t->type;
  if (!cts_stream(t, &stream) || !cts_memory(t, t->type, RECT_ROOM, &from) || !cts_memory(t, to_type, RECT_ROOM, &to))
    return;
  cts_noise(t, src, RECT_ROOM);
  cts_noise(t, want, RECT_ROOM);
  memcpy(got, want, RECT_ROOM);
  CTS_OK(t, ops->copy_to_device(t->device, stream, &from, 0, src, RECT_ROOM, NULL, &t->err));
  CTS_OK(t, ops->copy_to_device(t->device, stream, &to, 0, want, RECT_ROOM, NULL, &t->err));
  for (int i = 0; i < 40; i++) {
    const gm_rect rect = rect_random(t);
    gm_backend_point point = {0};
    gm_backend_point *out = wait ? NULL : &point;
    cts_oracle_rect(want, src, &rect);
    if (direction == 0) CTS_OK(t, ops->rect_to_device(t->device, stream, &to, src, &rect, out, &t->err));
    if (direction == 1) CTS_OK(t, ops->rect_to_host(t->device, stream, &from, got, &rect, out, &t->err));
    if (direction >= 2) CTS_OK(t, ops->rect_copy(t->device, stream, &to, &from, &rect, out, &t->err));
    CTS_OK(t, cts_order(t, stream));
    CTS_OK(t, cts_reach(t, &point));
  }
  if (direction != 1) CTS_OK(t, ops->copy_to_host(t->device, stream, &to, 0, got, RECT_ROOM, NULL, &t->err));
  cts_same(t, got, want, RECT_ROOM, "after boxed copies");
}

static void rect_to_device_waiting(cts *t) { rect_rounds(t, 0, true); }
static void rect_to_host_waiting(cts *t) { rect_rounds(t, 1, true); }
static void rect_copy_waiting(cts *t) { rect_rounds(t, 2, true); }
static void rect_copy_to_the_next_type(cts *t) { rect_rounds(t, 3, true); }
static void rect_to_device_asynchronous(cts *t) { rect_rounds(t, 0, false); }
static void rect_to_host_asynchronous(cts *t) { rect_rounds(t, 1, false); }
static void rect_copy_asynchronous(cts *t) { rect_rounds(t, 2, false); }

/* Boxes of one memory that touch, in either order, tight and loose. */
static void rect_copy_within_one_memory(cts *t) {
  static unsigned char want[RECT_ROOM], before[RECT_ROOM], got[RECT_ROOM];
  gm_memory memory;
  void *stream;
  if (!cts_stream(t, &stream) || !cts_memory(t, t->type, RECT_ROOM, &memory)) return;
  cts_noise(t, want, RECT_ROOM);
  CTS_OK(t, t->ops->copy_to_device(t->device, stream, &memory, 0, want, RECT_ROOM, NULL, &t->err));
  for (int i = 0; i < 60; i++) {
    gm_rect rect = {.row_bytes = 1 + cts_random(t, 90), .rows = 1 + cts_random(t, 8), .slices = 1 + cts_random(t, 3)};
    const uint64_t row = rect.row_bytes + (i % 3 ? cts_random(t, 30) : 0), slice = row * rect.rows;
    const uint64_t low = cts_random(t, 5000), high = low + slice * rect.slices;
    rect.src_row_pitch = rect.dst_row_pitch = row;
    rect.src_slice_pitch = rect.dst_slice_pitch = slice;
    rect.src_offset = i % 2 ? low : high;
    rect.dst_offset = i % 2 ? high : low;
    memcpy(before, want, RECT_ROOM);
    cts_oracle_rect(want, before, &rect);
    CTS_OK(t, t->ops->rect_copy(t->device, stream, &memory, &memory, &rect, NULL, &t->err));
  }
  CTS_OK(t, t->ops->copy_to_host(t->device, stream, &memory, 0, got, RECT_ROOM, NULL, &t->err));
  cts_same(t, got, want, RECT_ROOM, "after boxes moved within one memory");
}

static const cts_case rect_cases[] = {
    {"rect.to_device_waiting", rect_to_device_waiting, CTS_RECT | CTS_CONTENTS | CTS_EACH_TYPE},
    {"rect.to_host_waiting", rect_to_host_waiting, CTS_RECT | CTS_CONTENTS | CTS_EACH_TYPE},
    {"rect.copy_waiting", rect_copy_waiting, CTS_RECT | CTS_CONTENTS | CTS_EACH_TYPE},
    {"rect.copy_to_the_next_type", rect_copy_to_the_next_type, CTS_RECT | CTS_CONTENTS | CTS_EACH_TYPE},
    {"rect.copy_within_one_memory", rect_copy_within_one_memory, CTS_RECT | CTS_CONTENTS | CTS_EACH_TYPE},
    {"rect.to_device_asynchronous", rect_to_device_asynchronous,
     CTS_RECT | CTS_CONTENTS | CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"rect.to_host_asynchronous", rect_to_host_asynchronous,
     CTS_RECT | CTS_CONTENTS | CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"rect.copy_asynchronous", rect_copy_asynchronous,
     CTS_RECT | CTS_CONTENTS | CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
};
const cts_suite cts_rect_suite = {rect_cases, sizeof rect_cases / sizeof rect_cases[0]};
