#include "model/late_driver.h"

#include <inttypes.h>

#include "support/random.h"

static late_work *work_at(late_stream *stream, uint64_t number) { return &stream->queue[number % LATE_QUEUE]; }

static late_stream *work_stream(late_driver *driver, uint64_t id) {
  late_stream *stream = &driver->streams[id % LATE_STREAMS];
  return id && stream->id == id ? stream : NULL;
}

bool late_passed(const late_driver *driver, const gm_backend_point *point) {
  const late_stream *stream = &driver->streams[point->handle % LATE_STREAMS];
  return !point->handle || stream->id != point->handle || stream->passed >= point->value;
}

gm_backend_point late_record(const late_stream *stream) {
  return (gm_backend_point){.handle = stream->id, .value = stream->submitted};
}

static void work_is_lost(late_driver *driver, const late_work *work) {
  late_fault(driver, "work on 0x%" PRIx64 " + %" PRIu64 ", where no memory is", work->address, work->bytes);
}

static void work_write(late_driver *driver, const late_work *work) {
  uint64_t bytes;
  for (uint64_t at = 0; at < work->bytes; at += bytes) {
    bytes = work->bytes - at;
    uint32_t *words = late_words(driver, work->address + at, &bytes);
    if (!words) work_is_lost(driver, work);
    for (uint64_t i = 0; words && i < bytes / LATE_GRANULE; i++) words[i] = work->word;
  }
}

static void work_check(late_driver *driver, const late_work *work) {
  uint64_t bytes;
  for (uint64_t at = 0; at < work->bytes; at += bytes) {
    bytes = work->bytes - at;
    const uint32_t *words = late_words(driver, work->address + at, &bytes);
    if (!words) work_is_lost(driver, work);
    uint64_t i = 0;
    while (words && i < bytes / LATE_GRANULE && words[i] == work->word) i++;
    if (!words || i == bytes / LATE_GRANULE) continue;
    late_fault(driver, "at 0x%" PRIx64 " of 0x%" PRIx64 " + %" PRIu64 " is %u, not %u",
               work->address + at + i * LATE_GRANULE, work->address, work->bytes, words[i], work->word);
  }
}

static void work_do(late_driver *driver, late_stream *stream, late_work *work) {
  if (work->kind == LATE_WRITE) work_write(driver, work);
  if (work->kind == LATE_CHECK) work_check(driver, work);
  work->done = true;
  while (stream->passed < stream->submitted && work_at(stream, stream->passed)->done) stream->passed++;
  if (stream->left && stream->passed == stream->submitted) stream->id = 0;
}

/* May it be done now, all before it in its stream looked at? */
static bool work_is_ready(const late_driver *driver, const late_work *work, bool first) {
  if (work->kind == LATE_WAIT) return late_passed(driver, &work->point);
  return work->kind != LATE_BARRIER || first;
}

/* A piece of work of the stream that may be done now; NULL: none. */
static late_work *work_pick(late_driver *driver, late_stream *stream) {
  late_work *found = NULL;
  uint32_t ready = 0;
  for (uint64_t i = stream->passed; i < stream->submitted; i++) {
    late_work *work = work_at(stream, i);
    if (work->done) continue;
    if (work_is_ready(driver, work, i == stream->passed) && test_random(&driver->random) % ++ready == 0) found = work;
    if (stream->kind == GM_STREAM_FIFO || work->kind == LATE_BARRIER || work->kind == LATE_WAIT) break;
  }
  return found;
}

/* One piece of work of any stream; false: there is none. */
static bool work_any(late_driver *driver) {
  const uint64_t from = test_random(&driver->random);
  for (uint64_t i = 0; i < driver->stream_end; i++) {
    late_stream *stream = &driver->streams[(from + i) % driver->stream_end];
    if (!stream->id || stream->passed == stream->submitted) continue;
    late_work *work = work_pick(driver, stream);
    if (!work) continue;
    work_do(driver, stream, work);
    return true;
  }
  return false;
}

void late_reach(late_driver *driver, const gm_backend_point *point) {
  bool any = true;
  while (any && !late_passed(driver, point)) any = work_any(driver);
  if (!any) late_fault(driver, "streams wait for each other");
}

void late_drift(late_driver *driver) {
  while (test_random(&driver->random) % 16 < driver->eagerness && work_any(driver)) {}
}

void late_submit(late_driver *driver, late_stream *stream, const late_work *work) {
  if (stream->submitted - stream->passed == LATE_QUEUE) {
    late_reach(driver, &(gm_backend_point){.handle = stream->id, .value = stream->passed + 1});
  }
  *work_at(stream, stream->submitted++) = *work;
  late_drift(driver);
}

void late_kernel(late_driver *driver, uint32_t slot, late_kind kind, uint64_t address, uint64_t bytes, uint32_t word) {
  const late_work work = {.kind = kind, .address = address, .bytes = bytes, .word = word};
  late_submit(driver, work_stream(driver, driver->streams[slot].id), &work);
}

void late_wait(late_driver *driver, uint32_t to, const gm_backend_point *point) {
  const late_work work = {.kind = LATE_WAIT, .point = *point};
  late_submit(driver, &driver->streams[to], &work);
}

void late_follow(late_driver *driver, uint32_t to, uint32_t from) {
  const gm_backend_point point = late_record(&driver->streams[from]);
  const late_work barrier = {.kind = LATE_BARRIER};
  if (to != from) late_wait(driver, to, &point);
  if (to == from) late_submit(driver, &driver->streams[to], &barrier);
}

void late_finish(late_driver *driver, uint32_t slot) {
  const gm_backend_point point = late_record(&driver->streams[slot]);
  late_reach(driver, &point);
}

bool late_is_busy(const late_driver *driver, uint64_t address, uint64_t bytes) {
  for (uint32_t s = 0; s < driver->stream_end; s++) {
    const late_stream *stream = &driver->streams[s];
    for (uint64_t i = stream->passed; stream->id && i < stream->submitted; i++) {
      const late_work *work = &stream->queue[i % LATE_QUEUE];
      if (work->done || !work->bytes) continue;
      if (work->address < address + bytes && address < work->address + work->bytes) return true;
    }
  }
  return false;
}
