/* Adoptions that are refused. That it works is what the whole suite shows on adopted devices. */
#include <string.h>

#include "cts/cts.h"

static void adopt_heads_are_checked(cts *t) {
  const gm_backend_ops *ops = t->ops;
  const gm_api apis[] = {GM_API_OTHER, ops->api};
  for (int i = 0; i < 2; i++) { /* another API's; ours, but with nothing behind the head */
    const gm_native_device device = {.struct_size = sizeof device, .api = apis[i]};
    const gm_native_stream stream = {.struct_size = sizeof stream, .api = apis[i]};
    const gm_native_point point = {.struct_size = sizeof point, .api = apis[i]};
    const gm_native_memory memory = {.struct_size = sizeof memory, .api = apis[i]};
    void *out = t;
    gm_stream_kind kind;
    gm_backend_point got_point;
    gm_memory got_memory;
    CTS_IS(t, ops->device_adopt(t->driver, &device, &out, &t->err), GM_ERR_INVALID_ARGUMENT);
    CTS_IS(t, ops->stream_adopt(t->device, &stream, &out, &kind, &t->err), GM_ERR_INVALID_ARGUMENT);
    CTS_IS(t, ops->point_import(t->device, &point, &got_point, &t->err), GM_ERR_INVALID_ARGUMENT);
    CTS_IS(t, ops->memory_wrap(t->device, &memory, &got_memory, &t->err), GM_ERR_INVALID_ARGUMENT);
    CTS_CHECK(t, out == t);
  }
}

/* A block of gm's own, lent to gm once more: both see the same bytes, and letting go of the loan destroys nothing. */
static void adopt_wrapped_memory(cts *t) {
  enum { BYTES = 9000, AT = 1024, ROOM = 4096 };
  union {
    gm_native_memory head;
    uint64_t room[32];
  } native = {.head = {t->mode->native_memory_bytes, t->ops->api}};
  unsigned char want[BYTES], got[BYTES] = {0};
  gm_memory memory, wrapped;
  void *stream;
  const gm_backend_ops *ops = t->ops;
  CTS_CHECK(t, t->mode->native_memory_bytes && t->mode->native_memory_bytes <= sizeof native);
  if (!cts_stream(t, &stream) || !cts_memory(t, 0, BYTES, &memory)) return;
  cts_noise(t, want, BYTES);
  CTS_OK(t, ops->copy_to_device(t->device, stream, &memory, 0, want, BYTES, NULL, &t->err));
  CTS_OK(t, ops->memory_native(t->device, &memory, AT, ROOM, &native.head, &t->err));
  CTS_OK(t, ops->memory_wrap(t->device, &native.head, &wrapped, &t->err));
  CTS_CHECK(t, wrapped.wrapped && wrapped.handle && wrapped.bytes == ROOM);
  cts_noise(t, want + AT + 10, 3000);
  CTS_OK(t, ops->copy_to_device(t->device, stream, &wrapped, 10, want + AT + 10, 3000, NULL, &t->err));
  CTS_OK(t, ops->copy_to_host(t->device, stream, &wrapped, 0, got, ROOM, NULL, &t->err));
  const bool same = cts_same(t, got, want + AT, ROOM, "read through the wrapped memory");
  CTS_OK(t, ops->memory_free(t->device, &wrapped, GM_CLOSE_NORMAL, &t->err));
  if (!same) return;
  CTS_OK(t, ops->copy_to_host(t->device, stream, &memory, 0, got, BYTES, NULL, &t->err));
  cts_same(t, got, want, BYTES, "the memory itself, after the wrapped one was let go");
}

/* A point of the engine's making holds back the stream that waits for it, and nothing else. */
/* A point that was imported goes out as what it came in as. */
static void adopt_check_export(cts *t, const gm_backend_point *point, const gm_native_point *native) {
  union {
    gm_native_point head;
    unsigned char bytes[64];
  } exported = {.head = *native};
  CTS_CHECK(t, native->struct_size <= sizeof exported);
  CTS_OK(t, t->ops->point_native(t->device, point, &exported.head, &t->err));
  CTS_CHECK(t, memcmp(&exported, native, native->struct_size) == 0);
  exported.head.struct_size = 0;
  CTS_IS(t, t->ops->point_native(t->device, point, &exported.head, &t->err), GM_ERR_INVALID_ARGUMENT);
}

static void adopt_engine_point(cts *t) {
  const uint32_t pattern = 0x01020304;
  const gm_backend_ops *ops = t->ops;
  const gm_native_point *native = t->mode->engine->point(t);
  gm_backend_point imported = {0}, point = {0}, written = {0}, behind = {0};
  gm_memory memory;
  void *stream;
  bool done = true, held = false;
  uint32_t got = 0; /* outlives the write */
  CTS_CHECK(t, native != NULL);
  if (!cts_stream(t, &stream) || !cts_memory(t, 0, 4096, &memory)) return;
  CTS_OK(t, ops->point_import(t->device, native, &imported, &t->err));
  CTS_OK(t, ops->point_copy(t->device, &imported, &point, &t->err)); /* lives on by itself */
  ops->point_release(t->device, &imported, GM_CLOSE_NORMAL);
  adopt_check_export(t, &point, native);
  CTS_OK(t, ops->point_done(t->device, &point, &done, &t->err));
  CTS_IS(t, ops->point_wait(t->device, &point, 1000000, &t->err), GM_ERR_TIMEOUT);
  const gm_status waits = ops->point_wait_on(t->device, stream, &point, &t->err);
  gm_status sent = ops->copy_to_device(t->device, stream, &memory, 0, &got, 4, &written, &t->err);
  if (sent == GM_OK) sent = cts_order(t, stream);
  const gm_status filled = ops->fill(t->device, stream, &memory, 0, 4096, &pattern, 4, &behind, &t->err);
  if (filled == GM_OK) ops->point_done(t->device, &behind, &held, &t->err);
  CTS_CHECK(t, t->mode->engine->reach(t));
  CTS_CHECK(t, !done && waits == GM_OK && sent == GM_OK && filled == GM_OK && !held);
  CTS_OK(t, cts_reach(t, &written));
  CTS_OK(t, cts_reach(t, &behind));
  CTS_OK(t, cts_reach(t, &point));
  CTS_OK(t, ops->copy_to_host(t->device, stream, &memory, 0, &got, 4, NULL, &t->err));
  CTS_CHECK(t, got == pattern);
}

/* A point that only the host can wait for: no queue waits for it before it has passed, and nothing is submitted. */
static void adopt_engine_fence(cts *t) {
  const gm_backend_ops *ops = t->ops;
  const gm_native_point *native = t->mode->engine->point(t);
  gm_backend_point imported = {0}, point = {0};
  void *stream;
  bool done = true;
  if (t->failed || !cts_stream(t, &stream)) return;
  CTS_OK(t, ops->point_import(t->device, native, &imported, &t->err));
  CTS_OK(t, ops->point_copy(t->device, &imported, &point, &t->err)); /* lives on by itself */
  ops->point_release(t->device, &imported, GM_CLOSE_NORMAL);
  adopt_check_export(t, &point, native);
  CTS_OK(t, ops->point_done(t->device, &point, &done, &t->err));
  CTS_IS(t, ops->point_wait(t->device, &point, 1000000, &t->err), GM_ERR_TIMEOUT);
  CTS_IS(t, ops->point_wait_on(t->device, stream, &point, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_CHECK(t, !done && strstr(t->err.message, "gm_point_wait"));
  CTS_CHECK(t, t->mode->engine->reach(t));
  CTS_OK(t, ops->point_wait(t->device, &point, UINT64_MAX, &t->err));
  CTS_OK(t, ops->point_done(t->device, &point, &done, &t->err));
  CTS_OK(t, ops->point_wait_on(t->device, stream, &point, &t->err));
  CTS_CHECK(t, done);
  ops->point_release(t->device, &point, GM_CLOSE_NORMAL);
}

/* A call that would be work on the queue is refused with the reason, and nothing is written. */
static void adopt_refuses_copies(cts *t, void *stream, const gm_memory *memory) {
  const gm_backend_ops *ops = t->ops;
  const gm_rect rect = {.row_bytes = 8, .rows = 2};
  const gm_copy_item item = {memory, 0, memory, 64, 32};
  gm_backend_point point = {77, 77};
  unsigned char bytes[16] = {0};
  CTS_IS(t, ops->copy_to_device(t->device, stream, memory, 0, bytes, 16, &point, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_CHECK(t, t->err.message[0]);
  CTS_IS(t, ops->copy_to_host(t->device, stream, memory, 0, bytes, 16, &point, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_IS(t, ops->copy(t->device, stream, &item, &point, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_IS(t, ops->copy_many(t->device, stream, &item, 1, &point, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_IS(t, ops->fill(t->device, stream, memory, 0, 16, bytes, 1, &point, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_IS(t, ops->rect_to_device(t->device, stream, memory, bytes, &rect, &point, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_IS(t, ops->rect_to_host(t->device, stream, memory, bytes, &rect, &point, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_IS(t, ops->rect_copy(t->device, stream, memory, memory, &rect, &point, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_CHECK(t, point.handle == 77 && point.value == 77);
}

/* A point that was imported, or copied from one, is asked and waited for without a submission. The copy lives on by
 * itself. */
static void adopt_points_without_leave(cts *t, void *stream) {
  const gm_backend_ops *ops = t->ops;
  const gm_native_point *native = t->mode->engine->point(t);
  gm_backend_point imported = {0}, copy = {0};
  bool done = true;
  CTS_OK(t, ops->point_import(t->device, native, &imported, &t->err));
  CTS_OK(t, ops->point_copy(t->device, &imported, &copy, &t->err));
  ops->point_release(t->device, &imported, GM_CLOSE_NORMAL);
  CTS_IS(t, ops->point_wait_on(t->device, stream, &copy, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_OK(t, ops->point_done(t->device, &copy, &done, &t->err));
  CTS_IS(t, ops->point_wait(t->device, &copy, 1000000, &t->err), GM_ERR_TIMEOUT);
  CTS_CHECK(t, !done && t->mode->engine->reach(t));
  CTS_OK(t, ops->point_wait(t->device, &copy, UINT64_MAX, &t->err));
  CTS_OK(t, ops->point_done(t->device, &copy, &done, &t->err));
  CTS_CHECK(t, done);
  ops->point_release(t->device, &copy, GM_CLOSE_NORMAL);
}

static void adopt_without_leave(cts *t) {
  const gm_backend_ops *ops = t->ops;
  gm_backend_point point = {77, 77};
  gm_memory memory;
  void *stream, *host = t;
  if (!cts_stream(t, &stream) || !cts_memory(t, 0, 4096, &memory)) return;
  adopt_refuses_copies(t, stream, &memory);
  if (t->failed) return;
  CTS_IS(t, ops->point_record(t->device, stream, &point, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_IS(t, ops->stream_barrier(t->device, stream, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_IS(t, ops->stream_sync(t->device, stream, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_IS(t, ops->map(t->device, stream, &memory, 0, 64, GM_MAP_READ, &host, &t->err), GM_ERR_NOT_SUPPORTED);
  CTS_CHECK(t, point.handle == 77 && host == t);
  adopt_points_without_leave(t, stream);
}

static void adopt_ask_same(cts *t, void *stream, uint32_t slot, bool want) {
  bool same = !want;
  CTS_OK(t, t->ops->stream_same(t->device, stream, t->mode->engine->lent(slot), &same, &t->err));
  CTS_CHECK(t, same == want);
}

/* The seam tells a queue that is adopted from the others, by whatever streams are on it. */
static void adopt_twice(cts *t) {
  const gm_native_stream bad = {.struct_size = sizeof bad, .api = t->ops->api};
  void *first, *second;
  bool same = false;
  if (!cts_stream(t, &first) || !cts_stream(t, &second)) return;
  const uint32_t slot = t->stream_count - 2;
  adopt_ask_same(t, first, slot, true);
  adopt_ask_same(t, second, slot + 1, true);
  adopt_ask_same(t, first, slot + 1, t->mode->engine->one_queue);
  adopt_ask_same(t, second, slot, t->mode->engine->one_queue);
  CTS_IS(t, t->ops->stream_same(t->device, first, &bad, &same, &t->err), GM_ERR_INVALID_ARGUMENT);
  CTS_CHECK(t, !same);
}

static const cts_case adopt_cases[] = {
    {"adopt.heads_are_checked", adopt_heads_are_checked, CTS_ADOPT},
    {"adopt.wrapped_memory", adopt_wrapped_memory, CTS_ADOPT | CTS_CONTENTS},
    {"adopt.twice", adopt_twice, CTS_ADOPT | CTS_ENGINE | CTS_STREAMS},
    {"adopt.engine_point", adopt_engine_point, CTS_ADOPT | CTS_ENGINE | CTS_CONTENTS},
    {"adopt.engine_fence", adopt_engine_fence, CTS_ADOPT | CTS_ENGINE | CTS_POINTS | CTS_FENCES},
    {"adopt.without_leave", adopt_without_leave, CTS_ADOPT | CTS_ENGINE | CTS_NO_LEAVE},
};
const cts_suite cts_adopt_suite = {adopt_cases, sizeof adopt_cases / sizeof adopt_cases[0]};
