/* Streams and points: order, waiting on the host and between streams. */
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "cts/cts.h"

#define MIB (UINT64_C(1) << 20)

static bool stream_fill(cts *t, void *stream, const gm_memory *memory, uint32_t value, gm_backend_point *out) {
  const gm_status status =
      t->ops->fill(t->device, stream, memory, 0, memory->bytes & ~UINT64_C(3), &value, 4, out, &t->err);
  return cts_status(t, status, GM_OK, "fill", __FILE__, __LINE__);
}

static bool stream_last_word(cts *t, void *stream, const gm_memory *memory, uint32_t want) {
  uint32_t got = ~want;
  const uint64_t at = (memory->bytes & ~UINT64_C(3)) - 4;
  const gm_status status = t->ops->copy_to_host(t->device, stream, memory, at, &got, 4, NULL, &t->err);
  return cts_status(t, status, GM_OK, "copy_to_host", __FILE__, __LINE__) &&
         cts_check(t, got == want, "the last word is what was written last", __FILE__, __LINE__);
}

static void stream_open_and_close(cts *t) {
  for (int i = 0; i < 30 && !t->failed; i++) {
    void *stream;
    if (!cts_stream(t, &stream)) return;
    CTS_CHECK(t, stream && t->kinds[0] <= GM_STREAM_UNORDERED);
    CTS_OK(t, t->ops->stream_flush(t->device, stream, &t->err));
    CTS_OK(t, t->ops->stream_sync(t->device, stream, &t->err));
    CTS_OK(t, t->ops->stream_barrier(t->device, stream, &t->err));
    cts_clean(t, GM_CLOSE_NORMAL);
  }
}

static void stream_sync_waits(cts *t) {
  void *stream;
  gm_memory memory;
  gm_backend_point point;
  if (!cts_stream(t, &stream) || !cts_memory(t, t->type, 8 * MIB, &memory)) return;
  for (uint32_t i = 1; i < 6; i++) {
    if (!stream_fill(t, stream, &memory, i, &point)) return;
    CTS_OK(t, t->ops->stream_flush(t->device, stream, &t->err));
    CTS_OK(t, t->ops->stream_sync(t->device, stream, &t->err));
    bool done = false;
    CTS_OK(t, t->ops->point_done(t->device, &point, &done, &t->err));
    CTS_CHECK(t, done);
    t->ops->point_release(t->device, &point, GM_CLOSE_NORMAL);
    if ((t->has & CTS_CONTENTS) && !stream_last_word(t, stream, &memory, i)) return;
  }
}

/* Closing waits for work that nobody has waited for. */
static void stream_close_waits(cts *t) {
  gm_memory memory;
  void *stream;
  gm_backend_point point;
  if (!cts_memory(t, t->type, 8 * MIB, &memory) || !cts_stream(t, &stream)) return;
  if (!stream_fill(t, stream, &memory, 77, &point)) return;
  t->ops->point_release(t->device, &point, GM_CLOSE_NORMAL);
  const gm_memory kept = t->memories[--t->memory_count];
  cts_clean(t, GM_CLOSE_NORMAL);
  t->memories[t->memory_count++] = kept;
  if (!cts_stream(t, &stream)) return;
  if (t->has & CTS_CONTENTS) stream_last_word(t, stream, &memory, 77);
}

static void point_zero_has_passed(cts *t) {
  const gm_backend_point zero = {0};
  void *stream;
  bool done = false;
  if (!cts_stream(t, &stream)) return;
  CTS_OK(t, t->ops->point_done(t->device, &zero, &done, &t->err));
  CTS_CHECK(t, done);
  CTS_OK(t, t->ops->point_wait(t->device, &zero, 0, &t->err));
  CTS_OK(t, t->ops->point_wait_on(t->device, stream, &zero, &t->err));
  t->ops->point_release(t->device, &zero, GM_CLOSE_NORMAL);
}

static void point_of_an_idle_stream(cts *t) {
  void *stream;
  if (!cts_stream(t, &stream)) return;
  for (int i = 0; i < 3; i++) {
    gm_backend_point point;
    bool done = false;
    CTS_OK(t, t->ops->point_record(t->device, stream, &point, &t->err));
    CTS_OK(t, t->ops->point_wait(t->device, &point, UINT64_MAX, &t->err));
    CTS_OK(t, t->ops->point_done(t->device, &point, &done, &t->err));
    CTS_CHECK(t, done);
    CTS_OK(t, t->ops->point_wait(t->device, &point, 0, &t->err));
    t->ops->point_release(t->device, &point, GM_CLOSE_NORMAL);
  }
}

/* With barriers in between, a point that has passed means that all before it have. */
static void point_order(cts *t) {
  enum { COUNT = 60 };
  gm_backend_point points[COUNT];
  void *stream;
  gm_memory memory;
  if (!cts_stream(t, &stream) || !cts_memory(t, t->type, MIB, &memory)) return;
  for (uint32_t i = 0; i < COUNT; i++) {
    if (!stream_fill(t, stream, &memory, i, &points[i])) return;
    CTS_OK(t, cts_order(t, stream));
  }
  for (int round = 0; round < 40; round++) {
    bool later = false;
    for (uint32_t i = COUNT; i-- > 0;) {
      bool done = false;
      CTS_OK(t, t->ops->point_done(t->device, &points[i], &done, &t->err));
      CTS_CHECK(t, done || !later);
      later = done;
    }
  }
  CTS_OK(t, t->ops->point_wait(t->device, &points[COUNT - 1], UINT64_MAX, &t->err));
  for (uint32_t i = 0; i < COUNT; i++) {
    bool done = false;
    CTS_OK(t, t->ops->point_done(t->device, &points[i], &done, &t->err));
    CTS_CHECK(t, done);
    t->ops->point_release(t->device, &points[i], GM_CLOSE_NORMAL);
  }
  if (t->has & CTS_CONTENTS) stream_last_word(t, stream, &memory, COUNT - 1);
}

/* A time-out says that the time has passed, less what clocks differ by. */
static bool stream_waited(const cts *t, uint64_t ns, uint64_t begin) {
  return !(t->has & CTS_CLOCK) || gm__now_ns() - begin >= ns - ns / 8;
}

/* A time-out is an answer, not a failure, and the point is as good as before. */
static void point_time_out(cts *t) {
  static const uint64_t limits[] = {0, 1000, 20000, 1000000, 2000000, 10000000};
  void *stream;
  gm_memory memory;
  gm_backend_point point;
  if (!cts_stream(t, &stream) || !cts_memory(t, t->type, cts_room(t, t->type, 16 * MIB, 1), &memory)) return;
  for (uint32_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
    if (!stream_fill(t, stream, &memory, i, &point)) return;
    CTS_OK(t, cts_order(t, stream));
    t->ops->point_release(t->device, &point, GM_CLOSE_NORMAL);
    if (!stream_fill(t, stream, &memory, i, &point)) return;
    const uint64_t begin = gm__now_ns();
    const gm_status status = t->ops->point_wait(t->device, &point, limits[i], &t->err);
    CTS_CHECK(t, status == GM_OK || status == GM_ERR_TIMEOUT);
    CTS_CHECK(t, status == GM_OK || stream_waited(t, limits[i], begin));
    CTS_CHECK(t, status == GM_OK || (t->err.status == status && t->err.message[0]));
    CTS_OK(t, cts_order(t, stream));
    CTS_OK(t, cts_reach(t, &point));
  }
}

/* How much waits at once. PoCL's time for an unordered queue grows with more than the fourth power of that. There a
 * count is enough that no ring of 256 holds. */
static uint32_t stream_backlog(const cts *t, uint32_t ordered, uint32_t unordered) {
  return t->kinds[0] == GM_STREAM_UNORDERED ? unordered : ordered;
}

static void point_released_before_it_passes(cts *t) {
  void *stream;
  gm_memory memory;
  gm_backend_point point;
  if (!cts_stream(t, &stream) || !cts_memory(t, t->type, MIB, &memory)) return;
  const uint32_t count = stream_backlog(t, 200, 100); /* three commands each */
  for (uint32_t i = 0; i < count; i++) {
    if (!stream_fill(t, stream, &memory, i, &point)) return;
    t->ops->point_release(t->device, &point, GM_CLOSE_NORMAL);
    CTS_OK(t, cts_order(t, stream));
    CTS_OK(t, t->ops->point_record(t->device, stream, &point, &t->err));
    t->ops->point_release(t->device, &point, GM_CLOSE_NORMAL);
  }
  CTS_OK(t, t->ops->stream_sync(t->device, stream, &t->err));
  if (t->has & CTS_CONTENTS) stream_last_word(t, stream, &memory, count - 1);
}

/* A hands a value to B, B to C, C back to A, each only by waiting for the other's point on the device. */
static void point_between_streams(cts *t) {
  enum { ROUNDS = 12 };
  void *streams[3];
  gm_memory memories[3];
  for (int i = 0; i < 3; i++) {
    if (!cts_stream(t, &streams[i]) || !cts_memory(t, t->type, 2 * MIB, &memories[i])) return;
  }
  gm_backend_point last = {0};
  for (uint32_t round = 0; round < ROUNDS; round++) {
    gm_backend_point point;
    CTS_OK(t, t->ops->point_wait_on(t->device, streams[0], &last, &t->err));
    t->ops->point_release(t->device, &last, GM_CLOSE_NORMAL);
    if (!stream_fill(t, streams[0], &memories[0], round, &last)) return;
    for (int i = 1; i < 3; i++) {
      const gm_copy_item item = {.src = &memories[i - 1], .dst = &memories[i], .bytes = 2 * MIB};
      CTS_OK(t, t->ops->point_wait_on(t->device, streams[i], &last, &t->err));
      CTS_OK(t, t->ops->copy(t->device, streams[i], &item, &point, &t->err));
      t->ops->point_release(t->device, &last, GM_CLOSE_NORMAL);
      last = point;
    }
  }
  CTS_OK(t, cts_reach(t, &last));
  if (t->has & CTS_CONTENTS) stream_last_word(t, streams[2], &memories[2], ROUNDS - 1);
}

/* A copy is released by itself, and as good as the original: also a copy of a copy. */
static void point_copy_outlives_the_original(cts *t) {
  const gm_backend_point zero = {0};
  gm_backend_point first = {0}, copy = {0}, second = {0}, gone = {77, 77};
  void *stream;
  gm_memory memory;
  bool done = false;
  if (!t->mode->ops->point_copy) {
    cts_skip(t, "the backend copies no points");
    return;
  }
  if (!cts_stream(t, &stream) || !cts_memory(t, t->type, 8 * MIB, &memory)) return;
  if (!stream_fill(t, stream, &memory, 1, &first)) return;
  CTS_OK(t, t->ops->point_copy(t->device, &first, &copy, &t->err));
  CTS_OK(t, t->ops->point_copy(t->device, &copy, &second, &t->err));
  t->ops->point_release(t->device, &first, GM_CLOSE_NORMAL);
  CTS_OK(t, cts_order(t, stream));
  CTS_OK(t, cts_reach(t, &copy));
  CTS_OK(t, t->ops->point_done(t->device, &second, &done, &t->err));
  CTS_CHECK(t, done);
  CTS_OK(t, t->ops->point_wait_on(t->device, stream, &second, &t->err));
  CTS_OK(t, cts_reach(t, &second));
  CTS_OK(t, t->ops->point_copy(t->device, &zero, &gone, &t->err));
  CTS_CHECK(t, !gone.handle && !gone.value);
  if (t->has & CTS_CONTENTS) stream_last_word(t, stream, &memory, 1);
}

static void point_wait_on_the_own_stream(cts *t) {
  void *stream;
  gm_memory memory;
  gm_backend_point first, second;
  if (!cts_stream(t, &stream) || !cts_memory(t, t->type, 4 * MIB, &memory)) return;
  if (!stream_fill(t, stream, &memory, 1, &first)) return;
  CTS_OK(t, t->ops->point_wait_on(t->device, stream, &first, &t->err));
  if (!stream_fill(t, stream, &memory, 2, &second)) return;
  CTS_OK(t, cts_reach(t, &second));
  CTS_OK(t, cts_reach(t, &first));
  if (t->has & CTS_CONTENTS) stream_last_word(t, stream, &memory, 2);
}

/* More work than any queue of fixed size holds. */
static void stream_takes_a_lot(cts *t) {
  void *stream;
  gm_memory memory;
  gm_backend_point point = {0};
  if (!cts_stream(t, &stream) || !cts_memory(t, t->type, 4096, &memory)) return;
  const uint32_t count = stream_backlog(t, 500, 300);
  for (uint32_t i = 0; i < count; i++) {
    t->ops->point_release(t->device, &point, GM_CLOSE_NORMAL);
    if (!stream_fill(t, stream, &memory, i, &point)) return;
    if (i % 50 == 49) CTS_OK(t, cts_order(t, stream));
    if (i == count - 2) CTS_OK(t, cts_order(t, stream));
  }
  CTS_OK(t, cts_reach(t, &point));
  if (t->has & CTS_CONTENTS) stream_last_word(t, stream, &memory, count - 1);
}

/* Nobody captures here: an entry that is there says so, one that is not says that. */
static void stream_is_not_captured(cts *t) {
  void *stream;
  bool capturing = true;
  if (!cts_stream(t, &stream)) return;
  const gm_status status = t->ops->stream_capturing(t->device, stream, &capturing, &t->err);
  if (status == GM_ERR_NOT_SUPPORTED) {
    CTS_CHECK(t, capturing);
    return;
  }
  CTS_CHECK(t, status == GM_OK && !capturing);
  CTS_OK(t, t->ops->stream_sync(t->device, stream, &t->err));
}

static const cts_case stream_cases[] = {
    {"stream.open_and_close", stream_open_and_close, CTS_STREAMS | CTS_POINTS},
    {"stream.sync_waits", stream_sync_waits, CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"stream.close_waits", stream_close_waits, CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"stream.takes_a_lot", stream_takes_a_lot, CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"stream.is_not_captured", stream_is_not_captured, CTS_STREAMS | CTS_POINTS},
    {"point.zero_has_passed", point_zero_has_passed, CTS_STREAMS | CTS_POINTS},
    {"point.of_an_idle_stream", point_of_an_idle_stream, CTS_STREAMS | CTS_POINTS},
    {"point.order", point_order, CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"point.time_out", point_time_out, CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"point.released_before_it_passes", point_released_before_it_passes, CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"point.between_streams", point_between_streams, CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"point.copy_outlives_the_original", point_copy_outlives_the_original, CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
    {"point.wait_on_the_own_stream", point_wait_on_the_own_stream, CTS_STREAMS | CTS_POINTS | CTS_EACH_TYPE},
};
const cts_suite cts_stream_suite = {stream_cases, sizeof stream_cases / sizeof stream_cases[0]};
