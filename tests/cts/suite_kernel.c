/* What a backend may do by a kernel of its own: many small copies of whole words at once. */
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

static const cts_case kernel_cases[] = {
    {"kernel.many_words", kernel_many_words, CTS_CONTENTS | CTS_MANY | CTS_EACH_TYPE},
};
const cts_suite cts_kernel_suite = {kernel_cases, sizeof kernel_cases / sizeof kernel_cases[0]};
