/* Host access: what is written through a mapping is what copies see, and the other way round. */
#include <stdlib.h>
#include <string.h>

#include "cts/cts.h"

enum { MAPPING_BYTES = 10007 };

/* The range widened to the atom, as gm does before it calls flush and invalidate. */
static gm_status mapping_sync(cts *t, const gm_memory *memory, uint64_t offset, uint64_t bytes, bool flush) {
  const uint64_t atom = t->types[memory->type].atom_bytes;
  const uint64_t begin = offset & ~(atom - 1);
  uint64_t end = (offset + bytes + atom - 1) & ~(atom - 1);
  if (end > memory->bytes) end = memory->bytes;
  return flush ? t->ops->flush(t->device, memory, begin, end - begin, &t->err)
               : t->ops->invalidate(t->device, memory, begin, end - begin, &t->err);
}

static gm_status mapping_write(cts *t, void *stream, const gm_memory *memory, uint64_t offset, const unsigned char *src,
                               uint64_t bytes) {
  void *host = NULL;
  gm_status status = t->ops->map(t->device, stream, memory, offset, bytes, GM_MAP_WRITE, &host, &t->err);
  if (status) return status;
  mapping_sync(t, memory, offset, bytes, false); /* the rest of the first and the last atom */
  memcpy(host, src, bytes);
  status = mapping_sync(t, memory, offset, bytes, true);
  const gm_status unmapped = t->ops->unmap(t->device, stream, memory, host, &t->err);
  return status ? status : unmapped;
}

static gm_status mapping_read(cts *t, void *stream, const gm_memory *memory, uint64_t offset, unsigned char *dst,
                              uint64_t bytes) {
  void *host = NULL;
  gm_status status = t->ops->map(t->device, stream, memory, offset, bytes, GM_MAP_READ, &host, &t->err);
  if (status) return status;
  status = mapping_sync(t, memory, offset, bytes, false);
  memcpy(dst, host, bytes);
  const gm_status unmapped = t->ops->unmap(t->device, stream, memory, host, &t->err);
  return status ? status : unmapped;
}

static bool mapping_hidden(const cts *t) { return !(t->types[t->type].flags & GM_MEMORY_HOST_VISIBLE); }

static void mapping_one(cts *t, uint64_t offset, uint64_t bytes) {
  unsigned char want[MAPPING_BYTES], got[MAPPING_BYTES] = {0};
  void *stream;
  gm_memory memory;
  if (!cts_stream(t, &stream) || !cts_memory(t, t->type, MAPPING_BYTES, &memory)) return;
  cts_noise(t, want, sizeof want);
  CTS_OK(t, t->ops->copy_to_device(t->device, stream, &memory, 0, want, sizeof want, NULL, &t->err));
  CTS_OK(t, mapping_read(t, stream, &memory, offset, got, bytes));
  if (!cts_same(t, got, want + offset, bytes, "written by a copy, read through a mapping")) return;
  cts_noise(t, want + offset, bytes);
  CTS_OK(t, mapping_write(t, stream, &memory, offset, want + offset, bytes));
  CTS_OK(t, t->ops->copy_to_host(t->device, stream, &memory, 0, got, sizeof got, NULL, &t->err));
  cts_same(t, got, want, sizeof got, "written through a mapping, read by a copy");
}

static void mapping_ranges(cts *t) {
  static const uint64_t ranges[][2] = {{0, MAPPING_BYTES}, {0, 1},       {1, 1},
                                       {63, 130},          {4096, 5000}, {MAPPING_BYTES - 1, 1}};
  if (mapping_hidden(t)) return;
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && !t->failed; i++) {
    mapping_one(t, ranges[i][0], ranges[i][1]);
    cts_clean(t, GM_CLOSE_NORMAL);
  }
}

/* The mapping waits for work of its stream that nobody has waited for. */
static void mapping_waits_for_the_stream(cts *t) {
  const uint64_t bytes = cts_room(t, t->type, UINT64_C(16) << 20, 1) & ~UINT64_C(3);
  const uint32_t value = 0xa1b2c3d4;
  void *stream, *host = NULL;
  gm_memory memory;
  gm_backend_point point;
  if (mapping_hidden(t) || !cts_stream(t, &stream) || !cts_memory(t, t->type, bytes, &memory)) return;
  CTS_OK(t, t->ops->fill(t->device, stream, &memory, 0, bytes, &value, 4, &point, &t->err));
  CTS_OK(t, cts_order(t, stream));
  CTS_OK(t, t->ops->map(t->device, stream, &memory, 0, bytes, GM_MAP_READ, &host, &t->err));
  mapping_sync(t, &memory, 0, bytes, false);
  uint32_t last;
  memcpy(&last, (unsigned char *)host + bytes - 4, 4);
  CTS_OK(t, t->ops->unmap(t->device, stream, &memory, host, &t->err));
  CTS_OK(t, cts_reach(t, &point));
  CTS_CHECK(t, last == value);
}

/* Later work of the stream sees what was written before unmap. */
static void mapping_gives_back_to_the_stream(cts *t) {
  enum { BYTES = 70001 };
  static unsigned char want[BYTES], got[BYTES];
  void *stream;
  gm_memory from, to;
  if (mapping_hidden(t) || !cts_stream(t, &stream) || !cts_memory(t, t->type, BYTES, &from) ||
      !cts_memory(t, 0, BYTES, &to))
    return;
  for (int round = 0; round < 5; round++) {
    cts_noise(t, want, BYTES);
    CTS_OK(t, mapping_write(t, stream, &from, 0, want, BYTES));
    const gm_copy_item item = {.src = &from, .dst = &to, .bytes = BYTES};
    gm_backend_point point = {0};
    CTS_OK(t, t->ops->copy(t->device, stream, &item, (t->has & CTS_POINTS) ? &point : NULL, &t->err));
    CTS_OK(t, cts_order(t, stream));
    CTS_OK(t, t->ops->copy_to_host(t->device, stream, &to, 0, got, BYTES, NULL, &t->err));
    CTS_OK(t, cts_reach(t, &point));
    if (!cts_same(t, got, want, BYTES, "written through a mapping, copied on the device")) return;
  }
}

static void mapping_discard(cts *t) {
  unsigned char want[MAPPING_BYTES], got[MAPPING_BYTES];
  void *stream, *host = NULL;
  gm_memory memory;
  if (mapping_hidden(t) || !cts_stream(t, &stream) || !cts_memory(t, t->type, MAPPING_BYTES, &memory)) return;
  cts_noise(t, want, sizeof want);
  CTS_OK(t, t->ops->map(t->device, stream, &memory, 0, MAPPING_BYTES, GM_MAP_WRITE | GM_MAP_DISCARD, &host, &t->err));
  memcpy(host, want, sizeof want);
  CTS_OK(t, mapping_sync(t, &memory, 0, MAPPING_BYTES, true));
  CTS_OK(t, t->ops->unmap(t->device, stream, &memory, host, &t->err));
  CTS_OK(t, t->ops->copy_to_host(t->device, stream, &memory, 0, got, sizeof got, NULL, &t->err));
  cts_same(t, got, want, sizeof got, "all of it written through a discarding mapping");
}

/* Only the range that is mapped may lose its bytes. */
static void mapping_discard_of_a_part(cts *t) {
  enum { AT = 3003, BYTES = 2500 };
  unsigned char want[MAPPING_BYTES], got[MAPPING_BYTES];
  void *stream, *host = NULL;
  gm_memory memory;
  if (mapping_hidden(t) || !cts_stream(t, &stream) || !cts_memory(t, t->type, MAPPING_BYTES, &memory)) return;
  cts_noise(t, want, sizeof want);
  CTS_OK(t, t->ops->copy_to_device(t->device, stream, &memory, 0, want, sizeof want, NULL, &t->err));
  CTS_OK(t, t->ops->map(t->device, stream, &memory, AT, BYTES, GM_MAP_WRITE | GM_MAP_DISCARD, &host, &t->err));
  CTS_OK(t, mapping_sync(t, &memory, AT, BYTES, false)); /* the rest of the first and the last atom */
  cts_noise(t, want + AT, BYTES);
  memcpy(host, want + AT, BYTES);
  CTS_OK(t, mapping_sync(t, &memory, AT, BYTES, true));
  CTS_OK(t, t->ops->unmap(t->device, stream, &memory, host, &t->err));
  CTS_OK(t, t->ops->copy_to_host(t->device, stream, &memory, 0, got, sizeof got, NULL, &t->err));
  cts_same(t, got, want, sizeof got, "around a discarding mapping");
}

/* A memory may have several mappings: each has its own bytes, whichever ends first. */
static void mapping_several_at_once(cts *t) {
  static const uint64_t at[] = {4096, 0, 8192};
  enum { COUNT = 3, BYTES = 1024 };
  unsigned char want[MAPPING_BYTES], got[MAPPING_BYTES];
  void *stream, *host[COUNT] = {NULL};
  gm_memory memory;
  if (mapping_hidden(t) || !cts_stream(t, &stream) || !cts_memory(t, t->type, MAPPING_BYTES, &memory)) return;
  cts_noise(t, want, sizeof want);
  CTS_OK(t, t->ops->copy_to_device(t->device, stream, &memory, 0, want, sizeof want, NULL, &t->err));
  for (int i = 0; i < COUNT; i++) {
    CTS_OK(t, t->ops->map(t->device, stream, &memory, at[i], BYTES, GM_MAP_READ | GM_MAP_WRITE, &host[i], &t->err));
    CTS_OK(t, mapping_sync(t, &memory, at[i], BYTES, false));
    if (!cts_same(t, host[i], want + at[i], BYTES, "one of several mappings")) return;
  }
  for (int i = 0; i < COUNT; i++) {
    cts_noise(t, want + at[i], BYTES);
    memcpy(host[i], want + at[i], BYTES);
    CTS_OK(t, mapping_sync(t, &memory, at[i], BYTES, true));
    CTS_OK(t, t->ops->unmap(t->device, stream, &memory, host[i], &t->err));
  }
  CTS_OK(t, t->ops->copy_to_host(t->device, stream, &memory, 0, got, sizeof got, NULL, &t->err));
  cts_same(t, got, want, sizeof got, "written through several mappings");
}

static void mapping_again_and_again(cts *t) {
  void *stream;
  gm_memory memory;
  if (mapping_hidden(t) || !cts_stream(t, &stream) || !cts_memory(t, t->type, MAPPING_BYTES, &memory)) return;
  for (unsigned i = 0; i < 200; i++) {
    const unsigned char want = (unsigned char)i;
    unsigned char got = 0;
    CTS_OK(t, mapping_write(t, stream, &memory, i * 7, &want, 1));
    CTS_OK(t, mapping_read(t, stream, &memory, i * 7, &got, 1));
    CTS_CHECK(t, got == want);
  }
}

static void mapping_of_hidden_memory(cts *t) {
  uint32_t type = 0;
  while (type < t->type_count && (t->types[type].flags & GM_MEMORY_HOST_VISIBLE)) type++;
  if (type == t->type_count) {
    cts_skip(t, "all memory of this device is visible to the host");
    return;
  }
  gm_memory memory;
  void *stream, *host = t;
  if (!cts_stream(t, &stream) || !cts_memory(t, type, 4096, &memory)) return;
  CTS_CHECK(t, !memory.host);
  CTS_IS(t, t->ops->map(t->device, stream, &memory, 0, 4096, GM_MAP_READ, &host, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_CHECK(t, host == t);
}

/* A mapping without a stream: it waits for nothing, there may be several, and the pointer is good as long as the
 * memory. Where the type does not say so, the answer is NOT_SUPPORTED. */
static void mapping_without_a_wait(cts *t) {
  const uint32_t mode = GM_MAP_READ | GM_MAP_WRITE | GM_MAP_NO_WAIT, flags = t->types[t->type].flags;
  unsigned char want[MAPPING_BYTES], got[MAPPING_BYTES];
  void *stream, *host = NULL, *again = NULL;
  gm_memory memory;
  if (mapping_hidden(t) || !cts_stream(t, &stream) || !cts_memory(t, t->type, MAPPING_BYTES, &memory)) return;
  const gm_status first = t->ops->map(t->device, NULL, &memory, 0, MAPPING_BYTES, mode, &host, &t->err);
  CTS_IS(t, first, flags & GM_MEMORY_PERSISTENT_MAP ? GM_OK : GM_ERR_NOT_SUPPORTED);
  if (first) return;
  CTS_OK(t, t->ops->map(t->device, NULL, &memory, 100, 8, mode, &again, &t->err));
  CTS_CHECK(t, (unsigned char *)again == (unsigned char *)host + 100);
  CTS_OK(t, t->ops->unmap(t->device, NULL, &memory, again, &t->err));
  CTS_OK(t, t->ops->unmap(t->device, NULL, &memory, host, &t->err));
  for (int round = 0; round < 3; round++) { /* after unmap */
    cts_noise(t, want, sizeof want);
    memcpy(host, want, sizeof want);
    CTS_OK(t, mapping_sync(t, &memory, 0, MAPPING_BYTES, true));
    CTS_OK(t, t->ops->copy_to_host(t->device, stream, &memory, 0, got, sizeof got, NULL, &t->err));
    if (!cts_same(t, got, want, sizeof got, "written through a pointer that stays")) return;
    cts_noise(t, want, sizeof want); /* one memory: no mapping makes the two agree */
    CTS_OK(t, t->ops->copy_to_device(t->device, stream, &memory, 0, want, sizeof want, NULL, &t->err));
    CTS_OK(t, mapping_sync(t, &memory, 0, MAPPING_BYTES, false));
    if (!cts_same(t, host, want, sizeof want, "read through a pointer that stays")) return;
  }
}

/* The bytes of a range that nobody mapped are flushed and invalidated without harm. */
static void mapping_syncs_what_is_not_mapped(cts *t) {
  gm_memory memory;
  if (mapping_hidden(t) || !cts_memory(t, t->type, MAPPING_BYTES, &memory)) return;
  CTS_OK(t, mapping_sync(t, &memory, 10, 100, true));
  CTS_OK(t, mapping_sync(t, &memory, 10, 100, false));
}

/* ---- copies between memory and a mapping of other bytes of it ---- */

enum { OWN_BYTES = 4096, OWN_ALL = 3 * OWN_BYTES };

/* The mapping [at, at + OWN_BYTES) is `host`; the copies are about the bytes from `other` on. */
typedef struct own_copy {
  void *stream;
  gm_memory memory;
  unsigned char *host, *want; /* want: what the memory should have */
  uint64_t at, other;
} own_copy;

static void own_read(cts *t, own_copy *own) {
  CTS_OK(t,
         t->ops->copy_to_host(t->device, own->stream, &own->memory, own->other, own->host, OWN_BYTES, NULL, &t->err));
  memcpy(own->want + own->at, own->want + own->other, OWN_BYTES);
  cts_same(t, own->host, own->want + own->at, OWN_BYTES, "read into a mapping of the same memory");
}

static void own_write(cts *t, own_copy *own) {
  cts_noise(t, own->want + own->at, OWN_BYTES);
  memcpy(own->want + own->other, own->want + own->at, OWN_BYTES);
  memcpy(own->host, own->want + own->at, OWN_BYTES);
  CTS_OK(t,
         t->ops->copy_to_device(t->device, own->stream, &own->memory, own->other, own->host, OWN_BYTES, NULL, &t->err));
}

static void own_read_rows(cts *t, own_copy *own) {
  const gm_rect rect = {
      .row_bytes = 100, .rows = 7, .slices = 1, .src_offset = own->other, .src_row_pitch = 200, .dst_row_pitch = 200};
  if (!(t->has & CTS_RECT)) return;
  CTS_OK(t, t->ops->rect_to_host(t->device, own->stream, &own->memory, own->host, &rect, NULL, &t->err));
  cts_oracle_rect(own->want + own->at, own->want, &rect);
  cts_same(t, own->host, own->want + own->at, OWN_BYTES, "rows read into a mapping of the same memory");
}

static void own_write_rows(cts *t, own_copy *own) {
  const gm_rect rect = {
      .row_bytes = 50, .rows = 9, .slices = 1, .src_row_pitch = 90, .dst_offset = own->other, .dst_row_pitch = 90};
  if (!(t->has & CTS_RECT)) return;
  CTS_OK(t, t->ops->rect_to_device(t->device, own->stream, &own->memory, own->host, &rect, NULL, &t->err));
  cts_oracle_rect(own->want, own->want + own->at, &rect);
}

static void own_copies(cts *t, own_copy *own) {
  static unsigned char got[OWN_ALL];
  void *host = NULL;
  const uint32_t mode = GM_MAP_READ | GM_MAP_WRITE;
  CTS_OK(t, t->ops->map(t->device, own->stream, &own->memory, own->at, OWN_BYTES, mode, &host, &t->err));
  CTS_OK(t, mapping_sync(t, &own->memory, own->at, OWN_BYTES, false));
  own->host = host;
  own_read(t, own);
  if (!t->failed) own_write(t, own);
  if (!t->failed) own_read_rows(t, own);
  if (!t->failed) own_write_rows(t, own);
  if (!t->failed) own_read(t, own);
  mapping_sync(t, &own->memory, own->at, OWN_BYTES, true);
  gm_error unmapped;
  if (!cts_status(t, t->ops->unmap(t->device, own->stream, &own->memory, host, &unmapped), GM_OK, "unmap", __FILE__,
                  __LINE__))
    return;
  CTS_OK(t, t->ops->copy_to_host(t->device, own->stream, &own->memory, 0, got, OWN_ALL, NULL, &t->err));
  cts_same(t, got, own->want, OWN_ALL, "after copies from and to a mapping");
}

/* The memory's own pieces are neighbours to gm. PoCL takes such a copy for one between a range and itself. */
static void own_ranges(cts *t, bool viewed) {
  static const uint64_t ranges[][2] = {{0, OWN_BYTES}, {0, 2 * OWN_BYTES - 77}, {4096, 0}, {4352, 100}, {8192, 3}};
  static unsigned char want[OWN_ALL];
  own_copy own = {.want = want};
  uint64_t view = 0;
  if (mapping_hidden(t) || !cts_stream(t, &own.stream) || !cts_memory(t, t->type, OWN_ALL, &own.memory)) return;
  if (viewed) {
    const gm_status made = t->ops->view_create(t->device, &own.memory, 0, OWN_BYTES, 0, &view, &t->err);
    if (made == GM_ERR_NOT_SUPPORTED) return;
    CTS_IS(t, made, GM_OK);
    CTS_OK(t, t->ops->view_destroy(t->device, view, GM_CLOSE_NORMAL, &t->err));
  }
  cts_noise(t, want, OWN_ALL);
  CTS_OK(t, t->ops->copy_to_device(t->device, own.stream, &own.memory, 0, want, OWN_ALL, NULL, &t->err));
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && !t->failed; i++) {
    own.at = ranges[i][0];
    own.other = ranges[i][1];
    own_copies(t, &own);
  }
}

static void mapping_copied_with_its_memory(cts *t) { own_ranges(t, false); }
static void mapping_copied_with_its_viewed_memory(cts *t) { own_ranges(t, true); }

static const cts_case mapping_cases[] = {
    {"mapping.ranges", mapping_ranges, CTS_MAP | CTS_EACH_TYPE},
    {"mapping.waits_for_the_stream", mapping_waits_for_the_stream, CTS_MAP | CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"mapping.gives_back_to_the_stream", mapping_gives_back_to_the_stream, CTS_MAP | CTS_EACH_TYPE},
    {"mapping.discard", mapping_discard, CTS_MAP | CTS_EACH_TYPE},
    {"mapping.discard_of_a_part", mapping_discard_of_a_part, CTS_MAP | CTS_CONTENTS | CTS_EACH_TYPE},
    {"mapping.several_at_once", mapping_several_at_once, CTS_MAP | CTS_CONTENTS | CTS_EACH_TYPE},
    {"mapping.again_and_again", mapping_again_and_again, CTS_MAP | CTS_EACH_TYPE},
    {"mapping.without_a_wait", mapping_without_a_wait, CTS_MAP | CTS_CONTENTS | CTS_EACH_TYPE},
    {"mapping.copied_with_its_memory", mapping_copied_with_its_memory, CTS_MAP | CTS_CONTENTS | CTS_EACH_TYPE},
    {"mapping.copied_with_its_viewed_memory", mapping_copied_with_its_viewed_memory,
     CTS_MAP | CTS_CONTENTS | CTS_VIEW | CTS_EACH_TYPE},
    {"mapping.syncs_what_is_not_mapped", mapping_syncs_what_is_not_mapped, CTS_MAP | CTS_EACH_TYPE},
    {"mapping.of_hidden_memory", mapping_of_hidden_memory, CTS_MAP},
};
const cts_suite cts_mapping_suite = {mapping_cases, sizeof mapping_cases / sizeof mapping_cases[0]};
