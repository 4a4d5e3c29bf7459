/* Copies and fills, waiting and asynchronous, at every offset and size that hardware treats apart. */
#include <stdlib.h>
#include <string.h>

#include "cts/cts.h"

enum { COPY_ROOM = 16384, FILL_ROOM = (2 << 20) + 39, COPY_MOST = 520 };

/* Device memory and what it should hold. */
typedef struct copy_pair {
  void *stream;
  gm_memory memory;
  unsigned char want[COPY_ROOM];
} copy_pair;

static bool copy_start(cts *t, copy_pair *pair, uint32_t type) {
  if (!cts_stream(t, &pair->stream) || !cts_memory(t, type, COPY_ROOM, &pair->memory)) return false;
  cts_noise(t, pair->want, COPY_ROOM);
  const gm_status status =
      t->ops->copy_to_device(t->device, pair->stream, &pair->memory, 0, pair->want, COPY_ROOM, NULL, &t->err);
  return cts_status(t, status, GM_OK, "copy_to_device", __FILE__, __LINE__);
}

static bool copy_holds(cts *t, const copy_pair *pair, const char *what) {
  static unsigned char got[COPY_ROOM];
  const gm_status status =
      t->ops->copy_to_host(t->device, pair->stream, &pair->memory, 0, got, COPY_ROOM, NULL, &t->err);
  return cts_status(t, status, GM_OK, "copy_to_host", __FILE__, __LINE__) &&
         cts_same(t, got, pair->want, COPY_ROOM, what);
}

static const uint64_t copy_sizes[] = {1,  2,  3,  4,  5,  7,   8,   9,   15,   16,  17,
                                      31, 33, 63, 64, 65, 255, 256, 257, 1023, 4097};
enum { COPY_SIZES = sizeof copy_sizes / sizeof copy_sizes[0] };

static void copy_write_at_all_offsets(cts *t) {
  copy_pair pair;
  if (!copy_start(t, &pair, t->type)) return;
  unsigned char bytes[4097];
  for (uint64_t offset = 0; offset < 18; offset++) {
    for (size_t i = 0; i < COPY_SIZES; i++) {
      const uint64_t at = offset + (i % 2) * 8192;
      cts_noise(t, bytes, copy_sizes[i]);
      memcpy(pair.want + at, bytes, copy_sizes[i]);
      CTS_OK(t, t->ops->copy_to_device(t->device, pair.stream, &pair.memory, at, bytes, copy_sizes[i], NULL, &t->err));
      memset(bytes, 0, sizeof bytes); /* it may change now */
    }
    if (!copy_holds(t, &pair, "after writes")) return;
  }
}

static void copy_read_at_all_offsets(cts *t) {
  copy_pair pair;
  if (!copy_start(t, &pair, t->type)) return;
  for (uint64_t offset = 0; offset < 18; offset++) {
    for (size_t i = 0; i < COPY_SIZES; i++) {
      unsigned char got[4097 + 2];
      memset(got, 0xee, sizeof got);
      const uint64_t at = offset + (i % 3) * 4096;
      CTS_OK(t, t->ops->copy_to_host(t->device, pair.stream, &pair.memory, at, got + 1, copy_sizes[i], NULL, &t->err));
      if (!cts_same(t, got + 1, pair.want + at, copy_sizes[i], "read")) return;
      CTS_CHECK(t, got[0] == 0xee && got[copy_sizes[i] + 1] == 0xee);
    }
  }
}

static void copy_to_type(cts *t, uint32_t type) {
  copy_pair from, to;
  if (!copy_start(t, &from, t->type) || !copy_start(t, &to, type)) return;
  for (uint64_t offset = 0; offset < 9; offset++) {
    for (size_t i = 0; i < COPY_SIZES; i++) {
      const uint64_t src = cts_random(t, 4096) + offset, dst = cts_random(t, 4096) + 8192;
      const gm_copy_item item = {&from.memory, src, &to.memory, dst, copy_sizes[i]};
      memcpy(to.want + dst, from.want + src, copy_sizes[i]);
      CTS_OK(t, t->ops->copy(t->device, to.stream, &item, NULL, &t->err));
    }
    if (!copy_holds(t, &to, "after device copies")) return;
  }
  copy_holds(t, &from, "the source of device copies");
}

static void copy_on_the_device(cts *t) {
  for (uint32_t type = 0; type < t->type_count && !t->failed; type++) {
    copy_to_type(t, type);
    cts_clean(t, GM_CLOSE_NORMAL);
  }
}

/* Ranges of one memory that touch but do not overlap. */
static void copy_within_one_memory(cts *t) {
  copy_pair pair;
  if (!copy_start(t, &pair, t->type)) return;
  for (int i = 0; i < 60; i++) {
    const uint64_t bytes = 1 + cts_random(t, 2000), low = cts_random(t, 8000), high = low + bytes;
    const bool up = cts_random(t, 2);
    const gm_copy_item item = {&pair.memory, up ? low : high, &pair.memory, up ? high : low, bytes};
    memcpy(pair.want + item.dst_offset, pair.want + item.src_offset, bytes);
    CTS_OK(t, t->ops->copy(t->device, pair.stream, &item, NULL, &t->err));
  }
  copy_holds(t, &pair, "after copies within one memory");
}

static void fill_patterns(cts *t) {
  copy_pair pair;
  if (!copy_start(t, &pair, t->type)) return;
  for (uint32_t pattern_bytes = 1; pattern_bytes <= 16; pattern_bytes *= 2) {
    for (uint64_t head = 0; head < 18; head++) {
      const uint64_t at = cts_random(t, 100) * 64 + head;
      const uint64_t bytes = head % 3 ? 1 + cts_random(t, 70) : copy_sizes[cts_random(t, COPY_SIZES)];
      unsigned char pattern[16];
      cts_noise(t, pattern, sizeof pattern);
      cts_oracle_fill(pair.want + at, bytes, pattern, pattern_bytes);
      CTS_OK(t, t->ops->fill(t->device, pair.stream, &pair.memory, at, bytes, pattern, pattern_bytes, NULL, &t->err));
    }
    if (!copy_holds(t, &pair, "after fills")) return;
  }
}

static void fill_of_all(cts *t) {
  copy_pair pair;
  if (!copy_start(t, &pair, t->type)) return;
  const uint64_t pattern = UINT64_C(0x0102030405060708);
  cts_oracle_fill(pair.want, COPY_ROOM, (const unsigned char *)&pattern, 8);
  CTS_OK(t, t->ops->fill(t->device, pair.stream, &pair.memory, 0, COPY_ROOM, &pattern, 8, NULL, &t->err));
  copy_holds(t, &pair, "filled");
}

/* Odd begins and ends of a fill that is large enough for a driver's fast way. The bytes around it stay. */
static void fill_large_one(cts *t, const gm_memory *memory, void *stream, unsigned char *want, uint32_t pattern_bytes) {
  const uint64_t room = FILL_ROOM, at = 16 + 5 * (uint64_t)pattern_bytes % 7, bytes = room - at - 5;
  unsigned char pattern[16], *got = want + room;
  cts_noise(t, pattern, sizeof pattern);
  cts_noise(t, want, room);
  CTS_OK(t, t->ops->copy_to_device(t->device, stream, memory, 0, want, room, NULL, &t->err));
  CTS_OK(t, t->ops->fill(t->device, stream, memory, at, bytes, pattern, pattern_bytes, NULL, &t->err));
  CTS_OK(t, t->ops->copy_to_host(t->device, stream, memory, 0, got, room, NULL, &t->err));
  cts_oracle_fill(want + at, bytes, pattern, pattern_bytes);
  cts_same(t, got, want, room, "after a large fill");
}

static void fill_large(cts *t) {
  unsigned char *want = malloc((size_t)FILL_ROOM * 2);
  gm_memory memory;
  void *stream;
  if (want && cts_stream(t, &stream) && cts_memory(t, t->type, FILL_ROOM, &memory)) {
    for (uint32_t bytes = 1; bytes <= 16 && !t->failed; bytes *= 4) fill_large_one(t, &memory, stream, want, bytes);
  }
  free(want);
}

/* Larger than any staging buffer, with odd ends. */
static void copy_large(cts *t) {
  const uint64_t room = cts_room(t, t->type, (UINT64_C(40) << 20) + 21, 2), bytes = room - 14;
  unsigned char *want = malloc(bytes), *got = malloc(bytes);
  gm_memory a, b;
  void *stream;
  if (want && got && cts_stream(t, &stream) && cts_memory(t, t->type, room, &a) && cts_memory(t, t->type, room, &b)) {
    cts_noise(t, want, bytes);
    const gm_copy_item item = {&a, 7, &b, 13, bytes};
    gm_status status = t->ops->copy_to_device(t->device, stream, &a, 7, want, bytes, NULL, &t->err);
    if (status == GM_OK) status = t->ops->copy(t->device, stream, &item, NULL, &t->err);
    if (status == GM_OK) status = t->ops->copy_to_host(t->device, stream, &b, 13, got, bytes, NULL, &t->err);
    cts_status(t, status, GM_OK, "write, copy, read", __FILE__, __LINE__);
    if (!t->failed) cts_same(t, got, want, bytes, "large");
  }
  free(want);
  free(got);
}

/* One random piece of work, here and in the oracle; *out passes with it. `src` stays untouched until then. */
static gm_status copy_submit_one(cts *t, copy_pair *pair, unsigned char *src, gm_backend_point *out) {
  const uint64_t bytes = 1 + cts_random(t, 700), at = cts_random(t, COPY_ROOM - 700), kind = cts_random(t, 3);
  cts_noise(t, src, 700);
  if (kind == 0) {
    memcpy(pair->want + at, src, bytes);
    return t->ops->copy_to_device(t->device, pair->stream, &pair->memory, at, src, bytes, out, &t->err);
  }
  const uint32_t pattern_bytes = 1u << cts_random(t, 5);
  if (kind == 1) {
    cts_oracle_fill(pair->want + at, bytes, src, pattern_bytes);
    return t->ops->fill(t->device, pair->stream, &pair->memory, at, bytes, src, pattern_bytes, out, &t->err);
  }
  const uint64_t other = at < COPY_ROOM / 2 ? COPY_ROOM - 700 : 0;
  const uint64_t length = at < COPY_ROOM / 2 && at + bytes > other ? other - at : bytes;
  const gm_copy_item item = {&pair->memory, at, &pair->memory, other, length};
  memcpy(pair->want + other, pair->want + at, length);
  return t->ops->copy(t->device, pair->stream, &item, out, &t->err);
}

/* Dependent work without waiting: the order of the stream is all there is. */
static void copy_batch(cts *t, copy_pair *pair, int count) {
  static unsigned char sources[COPY_MOST][700];
  static gm_backend_point points[COPY_MOST];
  for (int i = 0; i < count; i++) {
    CTS_OK(t, copy_submit_one(t, pair, sources[i], &points[i]));
    CTS_OK(t, cts_order(t, pair->stream));
  }
  for (int i = 0; i < count; i++) CTS_OK(t, cts_reach(t, &points[i]));
  copy_holds(t, pair, "after a batch");
}

static void copy_random_asynchronous(cts *t) {
  copy_pair pair;
  if (!copy_start(t, &pair, t->type)) return;
  for (int round = 0; round < 12 && !t->failed; round++) copy_batch(t, &pair, 40);
}

/* More dependent work than a queue of fixed size holds: nothing passes what waits in front of it. Where each piece
 * needs a barrier (PoCL needs a time that grows with their square) there are fewer. */
static void copy_long_batch(cts *t) {
  copy_pair pair;
  if (copy_start(t, &pair, t->type)) copy_batch(t, &pair, t->kinds[0] == GM_STREAM_FIFO ? COPY_MOST : COPY_MOST / 4);
}

static void copy_random_waiting(cts *t) {
  static unsigned char source[700];
  copy_pair pair;
  if (!copy_start(t, &pair, t->type)) return;
  for (int i = 0; i < 200; i++) {
    CTS_OK(t, copy_submit_one(t, &pair, source, NULL));
    if (i % 20 == 19 && !copy_holds(t, &pair, "after work that was waited for")) return;
  }
}

static void copy_asynchronous_read(cts *t) {
  enum { READS = 30 };
  static unsigned char got[READS][500];
  gm_backend_point points[READS];
  copy_pair pair;
  if (!copy_start(t, &pair, t->type)) return;
  for (unsigned i = 0; i < READS; i++) {
    CTS_OK(t, t->ops->copy_to_host(t->device, pair.stream, &pair.memory, i * 501, got[i], 500, &points[i], &t->err));
  }
  for (unsigned i = READS; i-- > 0;) {
    CTS_OK(t, cts_reach(t, &points[i]));
    if (!cts_same(t, got[i], pair.want + i * 501, 500, "asynchronous read")) return;
  }
}

/* Where contents are not kept: every call still answers as if they were. */
static void copy_is_accepted(cts *t) {
  void *stream;
  gm_memory a, b;
  gm_backend_point point;
  unsigned char bytes[64] = {0};
  if (!cts_stream(t, &stream) || !cts_memory(t, t->type, 4096, &a) || !cts_memory(t, t->type, 4096, &b)) return;
  const gm_copy_item item = {&a, 1, &b, 2, 3000};
  CTS_OK(t, t->ops->copy_to_device(t->device, stream, &a, 5, bytes, sizeof bytes, NULL, &t->err));
  CTS_OK(t, t->ops->copy(t->device, stream, &item, &point, &t->err));
  CTS_OK(t, cts_order(t, stream));
  CTS_OK(t, cts_reach(t, &point));
  CTS_OK(t, t->ops->fill(t->device, stream, &b, 3, 17, bytes, 4, &point, &t->err));
  CTS_OK(t, cts_reach(t, &point));
  const gm_status status = t->ops->copy_to_host(t->device, stream, &b, 0, bytes, sizeof bytes, NULL, &t->err);
  CTS_CHECK(t, status == ((t->has & CTS_CONTENTS) ? GM_OK : GM_ERR_NOT_SUPPORTED));
}

static void copy_many_items(cts *t) {
  enum { ITEMS = 100 };
  gm_copy_item items[ITEMS];
  copy_pair from, to;
  if (!copy_start(t, &from, t->type) || !copy_start(t, &to, 0)) return;
  for (uint32_t i = 0; i < ITEMS; i++) {
    items[i] = (gm_copy_item){&from.memory, cts_random(t, 16000), &to.memory, i * 160 + i % 5, 1 + cts_random(t, 150)};
    memcpy(to.want + items[i].dst_offset, from.want + items[i].src_offset, items[i].bytes);
  }
  gm_backend_point point = {0};
  CTS_OK(t, t->ops->copy_many(t->device, to.stream, items, 1, NULL, &t->err));
  CTS_OK(t, t->ops->copy_many(t->device, to.stream, items + 1, ITEMS / 2, NULL, &t->err));
  CTS_OK(t, t->ops->copy_many(t->device, to.stream, items + 1 + ITEMS / 2, ITEMS / 2 - 1,
                              (t->has & CTS_POINTS) ? &point : NULL, &t->err));
  CTS_OK(t, cts_order(t, to.stream));
  CTS_OK(t, cts_reach(t, &point));
  copy_holds(t, &to, "after many at once");
}

/* Items that touch in the source, in the target, in both, and in both the other way round. */
static void copy_many_neighbours(cts *t) {
  static const uint64_t places[][2] = {{100, 5000},  {700, 5100},  {800, 6000},  {900, 6100},
                                       {1100, 6200}, {1000, 6300}, {3000, 7000}, {3100, 7100},
                                       {3200, 7200}, {4000, 8100}, {4100, 8000}};
  enum { ITEMS = sizeof places / sizeof places[0], EACH = 100 };
  gm_copy_item items[ITEMS];
  copy_pair from, to;
  if (!copy_start(t, &from, t->type) || !copy_start(t, &to, 0)) return;
  for (uint32_t i = 0; i < ITEMS; i++) {
    items[i] = (gm_copy_item){&from.memory, places[i][0], &to.memory, places[i][1], EACH};
    memcpy(to.want + places[i][1], from.want + places[i][0], EACH);
  }
  CTS_OK(t, t->ops->copy_many(t->device, to.stream, items, ITEMS, NULL, &t->err));
  copy_holds(t, &to, "after many that touch");
}

/* Item i lies in the i-th of `count` equal parts, in both memories. */
static void copy_scatter_items(cts *t, copy_pair *beside, copy_pair *to, gm_copy_item *items, uint32_t count) {
  const uint64_t part = COPY_ROOM / count;
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t bytes = 1 + cts_random(t, part), room = part - bytes + 1;
    items[i] = (gm_copy_item){&beside->memory, i * part + cts_random(t, room), &to->memory,
                              i * part + cts_random(t, room), bytes};
    memcpy(to->want + items[i].dst_offset, beside->want + items[i].src_offset, bytes);
  }
}

static bool copy_scatter_arrived(cts *t, const unsigned char *got, const copy_pair *beside, const gm_copy_item *items,
                                 uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (!cts_same(t, got + items[i].src_offset, beside->want + items[i].src_offset, items[i].bytes, "a gathered item"))
      return false;
  }
  return true;
}

/* Small copies of a transfer: their bytes go up as one copy, and one submission takes each to its place. Down it is the
 * other way round. The host waits for the end alone. */
static void copy_scatter(cts *t, uint32_t count) {
  enum { MOST = 1024 };
  static gm_copy_item items[MOST], back[MOST];
  static unsigned char none[COPY_ROOM], got[COPY_ROOM];
  gm_backend_point points[5];
  copy_pair beside, to;
  if (!copy_start(t, &to, 0) || !copy_start(t, &beside, t->type)) return;
  cts_noise(t, beside.want, COPY_ROOM);
  copy_scatter_items(t, &beside, &to, items, count);
  for (uint32_t i = 0; i < count; i++) {
    back[i] = (gm_copy_item){items[i].dst, items[i].dst_offset, items[i].src, items[i].src_offset, items[i].bytes};
  }
  CTS_OK(t,
         t->ops->copy_to_device(t->device, to.stream, &beside.memory, 0, beside.want, COPY_ROOM, &points[0], &t->err));
  CTS_OK(t, cts_order(t, to.stream));
  CTS_OK(t, t->ops->copy_many(t->device, to.stream, items, count, &points[1], &t->err));
  CTS_OK(t, cts_order(t, to.stream));
  CTS_OK(t, t->ops->copy_to_device(t->device, to.stream, &beside.memory, 0, none, COPY_ROOM, &points[2], &t->err));
  CTS_OK(t, cts_order(t, to.stream));
  CTS_OK(t, t->ops->copy_many(t->device, to.stream, back, count, &points[3], &t->err));
  CTS_OK(t, cts_order(t, to.stream));
  CTS_OK(t, t->ops->copy_to_host(t->device, to.stream, &beside.memory, 0, got, COPY_ROOM, &points[4], &t->err));
  for (int i = 4; i >= 0; i--) CTS_OK(t, cts_reach(t, &points[i]));
  if (copy_scatter_arrived(t, got, &beside, items, count)) copy_holds(t, &to, "after items were scattered");
}

/* The fewest that are scattered, as many as a transfer submits at once, and a count that fits no round number. */
static void copy_many_scattered(cts *t) {
  static const uint32_t counts[] = {32, 1024, 509};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0] && !t->failed; i++) {
    copy_scatter(t, counts[i]);
    cts_clean(t, GM_CLOSE_NORMAL);
  }
}

static const cts_case copy_cases[] = {
    {"copy.is_accepted", copy_is_accepted, CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"copy.write_at_all_offsets", copy_write_at_all_offsets, CTS_CONTENTS | CTS_EACH_TYPE},
    {"copy.read_at_all_offsets", copy_read_at_all_offsets, CTS_CONTENTS | CTS_EACH_TYPE},
    {"copy.on_the_device", copy_on_the_device, CTS_CONTENTS | CTS_EACH_TYPE},
    {"copy.within_one_memory", copy_within_one_memory, CTS_CONTENTS | CTS_EACH_TYPE},
    {"copy.large", copy_large, CTS_CONTENTS | CTS_EACH_TYPE},
    {"copy.random_waiting", copy_random_waiting, CTS_CONTENTS | CTS_EACH_TYPE},
    {"copy.random_asynchronous", copy_random_asynchronous, CTS_CONTENTS | CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"copy.long_batch", copy_long_batch, CTS_CONTENTS | CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"copy.asynchronous_read", copy_asynchronous_read, CTS_CONTENTS | CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"copy.many_items", copy_many_items, CTS_CONTENTS | CTS_MANY | CTS_EACH_TYPE},
    {"copy.many_neighbours", copy_many_neighbours, CTS_CONTENTS | CTS_MANY | CTS_EACH_TYPE},
    {"copy.many_scattered", copy_many_scattered, CTS_CONTENTS | CTS_STREAMS | CTS_POINTS | CTS_MANY | CTS_EACH_TYPE},
    {"fill.patterns", fill_patterns, CTS_CONTENTS | CTS_EACH_TYPE},
    {"fill.of_all", fill_of_all, CTS_CONTENTS | CTS_EACH_TYPE},
    {"fill.large", fill_large, CTS_CONTENTS | CTS_EACH_TYPE},
};
const cts_suite cts_copy_suite = {copy_cases, sizeof copy_cases / sizeof copy_cases[0]};
