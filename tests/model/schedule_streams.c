#include <inttypes.h>
#include <stdio.h>

#include "model/schedule_parts.h"

void wrong(schedule *s, const char *what, uint64_t number) {
  if (!s->why[0]) snprintf(s->why, sizeof s->why, "%s (%" PRIu64 ")", what, number);
}

void must(schedule *s, const char *what, gm_status status) {
  if (status != GM_OK) wrong(s, what, status);
}

void say(const schedule *s, const char *what, const lease *l, int stream, int other) {
  if (!s->aloud) return;
  printf("%s", what);
  if (l) printf(" 0x%" PRIx64 " + %" PRIu64 " word %u", l->block.address, l->block.bytes, l->word);
  printf(" stream %d", stream);
  if (other != NOBODY) printf(" by %d", other);
  printf("\n");
}

/* ---- order ---- */

static gm_backend_point inner_of(const gm_point *point) {
  return (gm_backend_point){.handle = point->handle, .value = point->value};
}

/* The point of a mute stream is what gm_stream_import_point makes of the engine's own. */
gm_point point_of(schedule *s, int stream) {
  gm_point point = {0};
  if (!is_mute(s, stream)) {
    must(s, "gm_stream_record", gm_stream_record(s->streams[stream], &point, NULL));
    return point;
  }
  const gm_backend_point inner = late_record(&s->driver->streams[s->slots[stream]]);
  if (gm_stream_record(s->streams[stream], &point, NULL) != GM_ERR_NOT_SUPPORTED) wrong(s, "a mute stream records", 0);
  s->driver->points++;
  return (gm_point){gm_stream_id(s->streams[stream]), inner.handle, inner.value};
}

void wait_for(schedule *s, int stream, const gm_point *point) {
  const gm_backend_point inner = inner_of(point);
  if (is_mute(s, stream)) {
    late_wait(s->driver, s->slots[stream], &inner);
  } else {
    must(s, "gm_stream_wait", gm_stream_wait(s->streams[stream], point, NULL));
  }
}

void follow(schedule *s, int to, int from) {
  say(s, "follow", NULL, to, from);
  if (is_mute(s, to)) {
    late_follow(s->driver, s->slots[to], s->slots[from]);
  } else if (to == from) {
    must(s, "gm_stream_barrier", gm_stream_barrier(s->streams[to], NULL));
  } else {
    gm_point point = point_of(s, from);
    wait_for(s, to, &point);
    gm_point_release(s->device, &point);
  }
}

/* The stream has done all its work. */
static void forget_stream(schedule *s, int stream) {
  for (uint32_t i = 0; i < s->count; i++) {
    s->leases[i].readers &= ~(1u << stream);
    if (s->leases[i].writer == stream) s->leases[i].writer = NOBODY;
    if (s->leases[i].taken_on == stream) s->leases[i].taken_on = NOBODY;
  }
}

void keep_point(schedule *s, int stream) {
  gm_point_release(s->device, &s->kept);
  s->kept = (gm_point){0};
  if (stream != NOBODY) s->kept = point_of(s, stream);
}

/* ---- what is done ---- */

static void finish(schedule *s, int stream) {
  late_finish(s->driver, s->slots[stream]);
  forget_stream(s, stream);
}

static void finish_and_tell(schedule *s, int stream) {
  finish(s, stream);
  must(s, "gm_stream_passed", gm_stream_passed(s->streams[stream], NULL, NULL));
}

/* The engine may wait for any stream itself, and need not tell. */
void sync_stream(schedule *s, int stream) {
  const bool mute = is_mute(s, stream), tell = chance(s, 70);
  say(s, "sync", NULL, stream, NOBODY);
  if (mute && gm_stream_sync(s->streams[stream], NULL) != GM_ERR_NOT_SUPPORTED) wrong(s, "a mute stream waits", 0);
  if (mute || chance(s, 15)) {
    tell ? finish_and_tell(s, stream) : finish(s, stream);
    return;
  }
  must(s, "gm_stream_sync", gm_stream_sync(s->streams[stream], NULL));
  forget_stream(s, stream);
}

void tell_passed(schedule *s, int stream) {
  const int other = any_stream(s);
  say(s, "passed at a point", NULL, stream, other);
  if (other != stream) follow(s, other, stream);
  gm_point point = point_of(s, other);
  must(s, "gm_stream_passed", gm_stream_passed(s->streams[stream], &point, NULL));
  gm_point_release(s->device, &point);
}

void settle_all(schedule *s) {
  for (int i = 0; i < (int)s->stream_count; i++) {
    if (is_mute(s, i)) {
      finish_and_tell(s, i);
    } else {
      must(s, "gm_stream_sync", gm_stream_sync(s->streams[i], NULL));
    }
  }
  for (uint32_t i = 0; i < FILLERS; i++) {
    if (s->fillers[i]) must(s, "gm_stream_sync", gm_stream_sync(s->fillers[i], NULL));
  }
}

/* ---- open and close ---- */

void open_stream(schedule *s, int stream) {
  s->driver->kind = (gm_stream_kind)(chance(s, 60) ? 0 : below(s, 3));
  s->driver->mute = chance(s, s->mutes);
  say(s, s->driver->mute ? "open mute, kind" : "open, kind", NULL, stream, (int)s->driver->kind);
  must(s, "gm_stream_create", gm_stream_create(s->device, &s->streams[stream], NULL));
  s->slots[stream] = s->driver->newest;
  s->driver->mute = false; /* nor is one that gm makes for itself */
}

/* A mute stream closes as long as no pool has memory that its work may still use, whatever else it does. */
void close_stream(schedule *s, int stream) {
  const gm_backend_point end = late_record(&s->driver->streams[s->slots[stream]]);
  const bool mute = is_mute(s, stream);
  say(s, "close", NULL, stream, NOBODY);
  gm_status status = gm_stream_close(s->streams[stream], NULL);
  if (status == GM_ERR_BUSY && mute) {
    finish_and_tell(s, stream);
    status = gm_stream_close(s->streams[stream], NULL);
  }
  must(s, "gm_stream_close", status);
  if (status == GM_OK && mute) late_reach(s->driver, &end);
  forget_stream(s, stream);
}

void renew_stream(schedule *s, int stream) {
  close_stream(s, stream);
  open_stream(s, stream);
}

static void open_filler(schedule *s, uint32_t number) {
  const gm_request request = {.bytes = LATE_GRANULE};
  gm_block block;
  s->driver->kind = GM_STREAM_FIFO;
  must(s, "gm_stream_create", gm_stream_create(s->device, &s->fillers[number], NULL));
  if (gm_alloc(s->pool, &request, &block) > GM_ACQUIRE_FRESH) return;
  late_kernel(s->driver, s->driver->newest, LATE_WRITE, block.address, block.bytes, ++s->word);
  must(s, "gm_free", gm_free(s->pool, &block, s->fillers[number]));
}

void open_fillers(schedule *s) {
  const uint32_t count = FILLERS - (uint32_t)below(s, 9);
  say(s, "others", NULL, (int)count, NOBODY);
  for (uint32_t i = 0; i < count && !s->why[0]; i++) open_filler(s, i);
}

void close_filler(schedule *s, uint32_t number) {
  if (!s->fillers[number]) return;
  say(s, "close other", NULL, (int)number, NOBODY);
  must(s, "gm_stream_close", gm_stream_close(s->fillers[number], NULL));
  s->fillers[number] = NULL;
}
