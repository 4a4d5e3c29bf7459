/* The work that a backend may do by a kernel of its own. It makes many small copies of whole words at once, and floats
 * of 16 bits that become floats of 32 bits. */
#include <math.h>
#include <string.h>

#include "cts/cts.h"

enum { KERNEL_ROOM = 65536, KERNEL_MOST = 1024, KERNEL_WORD = 4 };

/* Device memory and what it should hold. */
typedef struct kernel_memory {
  gm_memory memory;
  unsigned char want[KERNEL_ROOM];
} kernel_memory;

static bool kernel_start(cts *t, void *stream, uint32_t type, kernel_memory *out) {
  if (!cts_memory(t, type, KERNEL_ROOM, &out->memory)) return false;
  cts_noise(t, out->want, KERNEL_ROOM);
  const gm_status status =
      t->ops->copy_to_device(t->device, stream, &out->memory, 0, out->want, KERNEL_ROOM, NULL, &t->err);
  return cts_status(t, status, GM_OK, "copy_to_device", __FILE__, __LINE__);
}

static bool kernel_holds(cts *t, void *stream, const kernel_memory *memory, const char *what) {
  static unsigned char got[KERNEL_ROOM];
  const gm_status status = t->ops->copy_to_host(t->device, stream, &memory->memory, 0, got, KERNEL_ROOM, NULL, &t->err);
  return cts_status(t, status, GM_OK, "copy_to_host", __FILE__, __LINE__) &&
         cts_same(t, got, memory->want, KERNEL_ROOM, what);
}

/* The targets are in order, and words lie between them. Every 7th item is empty. */
static void kernel_items(cts *t, kernel_memory *from, kernel_memory *to, gm_copy_item *items, uint32_t count) {
  const uint64_t part = KERNEL_ROOM / KERNEL_WORD / count; /* words */
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t words = i % 7 == 6 ? 0 : 1 + cts_random(t, part), at = i * part + cts_random(t, part - words + 1);
    const uint64_t source = cts_random(t, KERNEL_ROOM / KERNEL_WORD - part);
    items[i] = (gm_copy_item){&from->memory, source * KERNEL_WORD, &to->memory, at * KERNEL_WORD, words * KERNEL_WORD};
    memcpy(to->want + at * KERNEL_WORD, from->want + source * KERNEL_WORD, words * KERNEL_WORD);
  }
}

/* Several times, so that one run can follow the other. The host waits for the last one alone. */
static void kernel_copy_words(cts *t, uint32_t count) {
  static gm_copy_item items[KERNEL_MOST];
  static kernel_memory from, to;
  void *stream;
  if (!cts_stream(t, &stream) || !kernel_start(t, stream, t->type, &from) || !kernel_start(t, stream, 0, &to)) return;
  for (int round = 0; round < 12; round++) {
    gm_backend_point point = {0};
    kernel_items(t, &from, &to, items, count);
    CTS_OK(t, t->ops->copy_many(t->device, stream, items, count, (t->has & CTS_POINTS) ? &point : NULL, &t->err));
    CTS_OK(t, cts_order(t, stream));
    if (t->has & CTS_POINTS) t->ops->point_release(t->device, &point, GM_CLOSE_NORMAL);
  }
  kernel_holds(t, stream, &to, "after items of words");
}

static void kernel_many_words(cts *t) {
  static const uint32_t counts[] = {32, 1024, 509, 16};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0] && !t->failed; i++) {
    kernel_copy_words(t, counts[i]);
    cts_clean(t, GM_CLOSE_NORMAL);
  }
}

/* ---- floats of 16 bits as floats of 32 bits ---- */

enum { KERNEL_ALL = 65536 }; /* numbers of 16 bits */

/* The number, by arithmetic. A NaN keeps its payload, and one of fp16 becomes quiet. */
static uint32_t kernel_wide(uint16_t number, gm_dtype from) {
  const uint32_t sign = (uint32_t)(number & 0x8000) << 16, fraction = number & 0x3ff;
  const int exponent = number >> 10 & 31;
  float value;
  uint32_t bits;
  if (from == GM_DTYPE_BF16) return (uint32_t)number << 16;
  if (exponent == 31) return sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0);
  value = (float)ldexp(fraction + (exponent ? 1024.0 : 0.0), (exponent ? exponent : 1) - 25);
  memcpy(&bits, &value, sizeof bits);
  return sign | bits;
}

/* The numbers that `to` should hold after `count` numbers of `from`. */
static void kernel_oracle(unsigned char *to, const unsigned char *from, uint64_t count, gm_dtype type) {
  for (uint64_t i = 0; i < count; i++) {
    uint16_t number;
    memcpy(&number, from + 2 * i, sizeof number);
    const uint32_t wide = kernel_wide(number, type);
    memcpy(to + 4 * i, &wide, sizeof wide);
  }
}

typedef struct kernel_pair {
  void *stream;
  gm_memory from, to;
  unsigned char here[2 * KERNEL_ALL + 64], want[4 * KERNEL_ALL + 64], got[4 * KERNEL_ALL + 64];
} kernel_pair;

static gm_status kernel_write(cts *t, const kernel_pair *pair) {
  gm_status status =
      t->ops->copy_to_device(t->device, pair->stream, &pair->from, 0, pair->here, sizeof pair->here, NULL, &t->err);
  if (!status) {
    status =
        t->ops->copy_to_device(t->device, pair->stream, &pair->to, 0, pair->want, sizeof pair->want, NULL, &t->err);
  }
  return status;
}

/* False: the check has failed, or the device has no kernel for these memories. */
static bool kernel_pair_start(cts *t, kernel_pair *pair) {
  gm_backend_point point;
  if (!cts_stream(t, &pair->stream) || !cts_memory(t, t->type, sizeof pair->here, &pair->from)) return false;
  if (!cts_memory(t, 0, sizeof pair->want, &pair->to)) return false;
  for (uint32_t i = 0; i < sizeof pair->here / 2; i++) {
    pair->here[2 * i] = (unsigned char)i;
    pair->here[2 * i + 1] = (unsigned char)(i >> 8);
  }
  cts_noise(t, pair->want, sizeof pair->want);
  if (!cts_status(t, kernel_write(t, pair), GM_OK, "copy_to_device", __FILE__, __LINE__)) return false;
  cts_paint(&point, sizeof point);
  const gm_status status =
      t->ops->expand(t->device, pair->stream, &pair->to, 0, &pair->from, 0, 1, GM_DTYPE_BF16, NULL, &t->err);
  if (status != GM_ERR_NOT_SUPPORTED) {
    kernel_oracle(pair->want, pair->here, 1, GM_DTYPE_BF16);
    return cts_status(t, status, GM_OK, "expand", __FILE__, __LINE__);
  }
  t->ops->expand(t->device, pair->stream, &pair->to, 0, &pair->from, 0, 1, GM_DTYPE_BF16, &point, &t->err);
  if (cts_check(t, cts_painted(&point, sizeof point), "a refused point is untouched", __FILE__, __LINE__)) {
    cts_skip(t, "no kernel expands numbers here");
  }
  return false;
}

static bool kernel_expands(cts *t, kernel_pair *pair, uint64_t to_at, uint64_t from_at, uint64_t count, gm_dtype type) {
  gm_status status =
      t->ops->expand(t->device, pair->stream, &pair->to, to_at, &pair->from, from_at, count, type, NULL, &t->err);
  if (!cts_status(t, status, GM_OK, "expand", __FILE__, __LINE__)) return false;
  kernel_oracle(pair->want + to_at, pair->here + from_at, count, type);
  status = t->ops->copy_to_host(t->device, pair->stream, &pair->to, 0, pair->got, sizeof pair->got, NULL, &t->err);
  return cts_status(t, status, GM_OK, "copy_to_host", __FILE__, __LINE__) &&
         cts_same(t, pair->got, pair->want, sizeof pair->want, "after numbers were expanded");
}

static kernel_pair kernel_numbers;

static void kernel_expand_every_number(cts *t) {
  kernel_pair *pair = &kernel_numbers;
  if (!kernel_pair_start(t, pair)) return;
  if (kernel_expands(t, pair, 0, 0, KERNEL_ALL, GM_DTYPE_BF16)) kernel_expands(t, pair, 0, 0, KERNEL_ALL, GM_DTYPE_F16);
}

/* Every place in a word and in a vector, few numbers and odd counts: bytes around stay. */
static void kernel_expand_parts(cts *t) {
  static const uint64_t counts[] = {0, 1, 2, 3, 5, 63, 64, 65, 255, 1027};
  kernel_pair *pair = &kernel_numbers;
  if (!kernel_pair_start(t, pair)) return;
  for (uint64_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    const uint64_t from_at = 2 * (cts_random(t, 60000) / 4 * 4 + i % 4),
                   to_at = 4 * (cts_random(t, 60000) / 4 * 4 + i / 3);
    if (!kernel_expands(t, pair, to_at, from_at, counts[i], i % 2 ? GM_DTYPE_F16 : GM_DTYPE_BF16)) return;
  }
  if (!kernel_expands(t, pair, 0, 0, 0, GM_DTYPE_F16)) return;
  const uint64_t last = sizeof pair->here - 2, end = sizeof pair->want - 4; /* the last number of both memories */
  kernel_expands(t, pair, end, last, 1, GM_DTYPE_F16);
}

/* It follows the write before it, and the copy behind follows it. The host waits for the end alone. */
static void kernel_expand_in_order(cts *t) {
  static unsigned char fresh[2 * 4096];
  kernel_pair *pair = &kernel_numbers;
  gm_backend_point points[3] = {{0, 0}};
  if (!kernel_pair_start(t, pair)) return;
  for (int round = 0; round < 20; round++) {
    cts_noise(t, fresh, sizeof fresh);
    kernel_oracle(pair->want + 400, fresh, 4096, round % 2 ? GM_DTYPE_F16 : GM_DTYPE_BF16);
    CTS_OK(t,
           t->ops->copy_to_device(t->device, pair->stream, &pair->from, 100, fresh, sizeof fresh, &points[0], &t->err));
    CTS_OK(t, cts_order(t, pair->stream));
    CTS_OK(t, t->ops->expand(t->device, pair->stream, &pair->to, 400, &pair->from, 100, 4096,
                             round % 2 ? GM_DTYPE_F16 : GM_DTYPE_BF16, &points[1], &t->err));
    CTS_OK(t, cts_order(t, pair->stream));
    CTS_OK(t, t->ops->copy_to_host(t->device, pair->stream, &pair->to, 0, pair->got, sizeof pair->got, &points[2],
                                   &t->err));
    for (int i = 2; i >= 0; i--) CTS_OK(t, cts_reach(t, &points[i]));
    if (!cts_same(t, pair->got, pair->want, sizeof pair->want, "after numbers were expanded")) return;
  }
}

/* From one place of a memory to another one. */
static void kernel_expand_within(cts *t) {
  kernel_pair *pair = &kernel_numbers;
  if (!kernel_pair_start(t, pair)) return;
  for (uint64_t i = 0; i < 4; i++) {
    const uint64_t from_at = 2 * (1000 + i),
                   to_at = 4 * ((1000 + i + 999 + 1) / 2); /* right behind, or some bytes after */
    const gm_status status =
        t->ops->expand(t->device, pair->stream, &pair->to, to_at, &pair->to, from_at, 999, GM_DTYPE_F16, NULL, &t->err);
    CTS_IS(t, status, GM_OK);
    kernel_oracle(pair->want + to_at, pair->want + from_at, 999, GM_DTYPE_F16);
    CTS_OK(t, t->ops->copy_to_host(t->device, pair->stream, &pair->to, 0, pair->got, sizeof pair->got, NULL, &t->err));
    if (!cts_same(t, pair->got, pair->want, sizeof pair->want, "after numbers were expanded within a memory")) return;
  }
}

static const cts_case kernel_cases[] = {
    {"kernel.expand_every_number", kernel_expand_every_number, CTS_CONTENTS | CTS_EACH_TYPE},
    {"kernel.expand_parts", kernel_expand_parts, CTS_CONTENTS | CTS_EACH_TYPE},
    {"kernel.expand_in_order", kernel_expand_in_order, CTS_CONTENTS | CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"kernel.expand_within", kernel_expand_within, CTS_CONTENTS},
    {"kernel.many_words", kernel_many_words, CTS_CONTENTS | CTS_MANY | CTS_EACH_TYPE},
};
const cts_suite cts_kernel_suite = {kernel_cases, sizeof kernel_cases / sizeof kernel_cases[0]};
