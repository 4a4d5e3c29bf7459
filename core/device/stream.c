/* Invariants: a device's list holds exactly its open streams; a point whose stream is not in it has passed, because
 * closing waited for it. A closed stream's object stays the device's until that closes, or until it is used again for
 * another stream, so whoever names it late finds a stream without a device, or another one. The list of adopted
 * streams holds those that somebody has adopted and not closed: whoever finds one there, with adopt_lock, counts
 * himself in, and it does not close under him. A stream leaves that list before it closes, and comes back if it must
 * stay. */
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/device/answer.h"
#include "core/device/device.h"

bool gm__stream_is_closed(const gm_stream *stream) {
  return !gm__object_is(&stream->head, GM__KIND_STREAM) || !stream->device;
}

gm_status gm__stream_check(const gm_stream *stream, const char *op, gm_error *err) {
  if (!stream) return gm__bad_argument(err, op, "`stream` is NULL");
  if (gm__stream_is_closed(stream)) return gm__bad_argument(err, op, "`stream` is closed");
  return gm__context_check(stream->device->ctx, op, err);
}

static void stream_link(gm_device *device, gm_stream *stream) {
  gm__mutex_lock(&device->lock);
  stream->next = device->streams;
  if (device->streams) device->streams->prev = stream;
  device->streams = stream;
  gm__mutex_unlock(&device->lock);
}

static void stream_unlink(gm_device *device, gm_stream *stream) {
  if (stream->next) stream->next->prev = stream->prev;
  if (stream->prev) {
    stream->prev->next = stream->next;
  } else {
    device->streams = stream->next;
  }
}

/* Ask the backend for it. `native` NULL: gm's own. */
static gm_status stream_ask(const gm_device *device, const gm_native_stream *native, gm_stream *stream, gm_error *err) {
  const char *backend = device->info.backend, *op = native ? "stream_adopt" : "stream_create";
  gm_status status = native ? device->ops->stream_adopt(device->handle, native, &stream->handle, &stream->kind, err)
                            : device->ops->stream_create(device->handle, &stream->handle, &stream->kind, err);
  gm__error_of(native ? "gm_stream_adopt" : "gm_stream_create", status, err);
  status = gm__answer_check_object(backend, op, status, &stream->handle, err);
  if (status != GM_OK) return status;
  status = gm__answer_check_kind(backend, stream->kind, err);
  if (status != GM_OK) device->ops->stream_close(device->handle, stream->handle, GM_CLOSE_NORMAL);
  return status;
}

enum { STREAM_CLOSED_MOST = 64 }; /* closed streams that are kept before the first is used again */

/* The object of the stream that was closed first, when there are many; else a new one. NULL: no host memory. */
static gm_stream *stream_object(gm_device *device) {
  gm_stream *stream = NULL;
  gm__mutex_lock(&device->lock);
  if (device->closed_count >= STREAM_CLOSED_MOST) {
    stream = device->closed;
    device->closed = stream->next;
    device->closed_count--;
    *stream = (gm_stream){.head = stream->head};
  }
  gm__mutex_unlock(&device->lock);
  return stream ? stream : gm__object_new(device->ctx, GM__KIND_STREAM, sizeof *stream);
}

/* With the device's lock. */
static void stream_keep(gm_device *device, gm_stream *stream) {
  stream->device = NULL;
  stream->handle = NULL;
  stream->prev = stream->next = NULL;
  gm_stream **end = device->closed ? device->closed_end : &device->closed;
  *end = stream;
  device->closed_end = &stream->next;
  device->closed_count++;
}

void gm__device_release_streams(gm_device *device) {
  for (gm_stream *stream = device->closed, *next; stream; stream = next) {
    next = stream->next;
    gm__object_end(device->ctx, &stream->head);
  }
}

/* A wait for what has passed already takes no submission, and is refused where none may be made. */
static bool stream_is_silent(const gm_device *device, void *handle) {
  static const gm_backend_point passed = {0};
  if (!(device->info.capabilities & GM_CAP_POINTS)) return false;
  return gm__submitting(device)->point_wait_on(device->handle, handle, &passed, NULL) == GM_ERR_NOT_SUPPORTED;
}

/* `native` NULL: gm's own. */
static gm_status stream_open(gm_device *device, const gm_native_stream *native, gm_stream **out, gm_error *err) {
  gm_stream *stream = stream_object(device);
  if (!stream) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_stream_create", "no host memory for a stream");
  const gm_status status = stream_ask(device, native, stream, err);
  if (status != GM_OK) {
    gm__object_end(device->ctx, &stream->head);
    return status;
  }
  stream->device = device;
  stream->adopted = native != NULL;
  stream->silent = native && stream_is_silent(device, stream->handle);
  stream->id = gm__device_next_stream_id(device);
  stream_link(device, stream);
  *out = stream;
  return GM_OK;
}

gm_status gm_stream_create(gm_device *device, gm_stream **out, gm_error *err) {
  gm_status status = gm__device_check(device, "gm_stream_create", err);
  if (status != GM_OK) return status;
  if (!out) return gm__bad_argument(err, "gm_stream_create", "`out` is NULL");
  status = stream_open(device, NULL, out, err);
  if (status == GM_OK) atomic_fetch_add(&device->children, 1);
  return status;
}

/* The list is stable while a stream closes because a pool's destruction and a stream's closing exclude each other by
 * contract. */
static gm__stream_listener *stream_listeners(gm_device *device) {
  gm__mutex_lock(&device->lock);
  gm__stream_listener *listener = device->listeners;
  gm__mutex_unlock(&device->lock);
  return listener;
}

/* Pools hear of it first, while the stream can still record and wait. False: one of them still uses it. */
static bool stream_tell_listeners(gm_device *device, gm_stream *stream) {
  bool unused = true;
  for (gm__stream_listener *listener = stream_listeners(device); listener && unused; listener = listener->next) {
    unused = listener->closing(listener->user, stream);
  }
  return unused;
}

/* A stream that no pool has heard of. */
static void stream_discard(gm_stream *stream, bool forked) {
  gm_device *device = stream->device;
  if (!forked) gm__mutex_lock(&device->lock);
  stream_unlink(device, stream);
  if (!forked) gm__mutex_unlock(&device->lock);
  device->ops->stream_close(device->handle, stream->handle, forked ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL);
  if (!forked) gm__mutex_lock(&device->lock);
  stream_keep(device, stream);
  if (!forked) gm__mutex_unlock(&device->lock);
}

bool gm__stream_captured(const gm_stream *stream) {
  bool captured = false;
  if (!stream || !stream->adopted) return false;
  const gm_device *device = stream->device;
  const gm_status status = device->ops->stream_capturing(device->handle, stream->handle, &captured, NULL);
  gm__answer_mend_bool(&captured);
  return status == GM_OK && captured;
}

/* Its work is done; or nothing can wait for it, in any thread or in this one, and no pool has anything that it may
 * still use. */
static gm_status stream_finish(gm_stream *stream, gm_error *err) {
  gm_device *device = stream->device;
  gm_status status = gm__submitting(device)->stream_sync(device->handle, stream->handle, err);
  if (status == GM_ERR_DEVICE_LOST) return GM_OK; /* nothing runs there any more */
  if (status != GM_ERR_NOT_SUPPORTED && status != GM_ERR_INVALID_ARGUMENT) return status;
  status = GM_OK;
  for (gm__stream_listener *listener = stream_listeners(device); listener && !status; listener = listener->next) {
    status = listener->may_close(listener->user, stream, err);
  }
  return status;
}

/* The adopted stream of that queue; NULL: there is none, or the backend cannot tell. With adopt_lock. */
static gm_status stream_find_adopted(const gm_device *device, const gm_native_stream *native, gm_stream **out,
                                     gm_error *err) {
  *out = NULL;
  for (gm_stream *stream = device->adopted_streams; stream; stream = stream->next_adopted) {
    gm_error why = {.status = GM_OK};
    bool same = false;
    const gm_status status = device->ops->stream_same(device->handle, stream->handle, native, &same, &why);
    if (status == GM_ERR_NOT_SUPPORTED) return GM_OK;
    if (status != GM_OK) {
      gm__error_of("gm_stream_adopt", status, &why);
      if (err) *err = why;
      return status;
    }
    gm__answer_mend_bool(&same);
    if (!same) continue;
    *out = stream;
    return GM_OK;
  }
  return GM_OK;
}

static void stream_link_adopted(gm_device *device, gm_stream *stream) {
  stream->next_adopted = device->adopted_streams;
  device->adopted_streams = stream;
}

/* The stream of that queue, adopted once more: one that is there, else `fresh`, which may be NULL. */
static gm_status stream_count_in(gm_device *device, const gm_native_stream *native, gm_stream *fresh, gm_stream **out,
                                 gm_error *err) {
  gm__mutex_lock(&device->adopt_lock);
  const gm_status status = stream_find_adopted(device, native, out, err);
  if (status == GM_OK && !*out && fresh) {
    stream_link_adopted(device, fresh);
    *out = fresh;
  }
  if (*out) (*out)->adoptions++;
  gm__mutex_unlock(&device->adopt_lock);
  return status;
}

/* One adoption less. False: there are others. */
static bool stream_count_out(gm_device *device, gm_stream *stream, bool forked) {
  if (!stream->adopted) return true;
  if (!forked) gm__mutex_lock(&device->adopt_lock);
  const bool last = --stream->adoptions == 0;
  gm_stream **at = &device->adopted_streams;
  while (last && *at && *at != stream) at = &(*at)->next_adopted;
  if (last && *at) *at = stream->next_adopted;
  if (!forked) gm__mutex_unlock(&device->adopt_lock);
  return last;
}

/* The last adoption could not end. */
static void stream_count_back(gm_device *device, gm_stream *stream) {
  if (!stream->adopted) return;
  gm__mutex_lock(&device->adopt_lock);
  stream_link_adopted(device, stream);
  stream->adoptions++;
  gm__mutex_unlock(&device->adopt_lock);
}

gm_status gm_stream_adopt(gm_device *device, const gm_native_stream *native, gm_stream **out, gm_error *err) {
  gm_stream *stream = NULL, *fresh = NULL;
  gm_status status = gm__device_check(device, "gm_stream_adopt", err);
  if (status != GM_OK) return status;
  if (!native || !out) return gm__bad_argument(err, "gm_stream_adopt", "`%s` is NULL", native ? "out" : "native");
  status = stream_count_in(device, native, NULL, &stream, err);
  if (status == GM_OK && !stream) {
    status = stream_open(device, native, &fresh, err);
    if (status == GM_OK) status = stream_count_in(device, native, fresh, &stream, err);
    if (fresh && stream != fresh) stream_discard(fresh, false); /* another thread was first */
  }
  if (status != GM_OK) return status;
  atomic_fetch_add(&device->children, 1);
  *out = stream;
  return GM_OK;
}

/* Nobody else has adopted it. */
static gm_status stream_end(gm_stream *stream, bool forked, gm_error *err) {
  gm_device *device = stream->device;
  if (!forked && gm__stream_captured(stream)) {
    return gm__fail(err, GM_ERR_BUSY, 0, "gm_stream_close", "the stream is being captured: end the capture first");
  }
  gm_status status = forked ? GM_OK : stream_finish(stream, err);
  if (status != GM_OK) return status;
  if (!forked && !stream_tell_listeners(device, stream)) {
    return gm__fail(err, GM_ERR_BUSY, 0, "gm_stream_close",
                    "a thread is in the driver with the stream, for a request of another stream: close it later, and "
                    "not inside the lock of a queue");
  }
  stream_discard(stream, forked);
  return GM_OK;
}

gm_status gm_stream_close(gm_stream *stream, gm_error *err) {
  if (!stream) return GM_OK;
  if (gm__stream_is_closed(stream)) return gm__stream_check(stream, "gm_stream_close", err);
  gm_device *device = stream->device;
  bool forked = gm__context_forked(device->ctx);
  const bool last = stream_count_out(device, stream, forked);
  gm_status status = last ? stream_end(stream, forked, err) : GM_OK;
  if (status == GM_OK) {
    atomic_fetch_sub(&device->children, 1);
  } else {
    stream_count_back(device, stream);
  }
  return status;
}

bool gm__device_makes_streams(const gm_device *device) { return (device->info.capabilities & GM_CAP_STREAMS) != 0; }

gm_status gm__device_default_stream(gm_device *device, const char *op, gm_stream **out, gm_error *err) {
  if (!gm__device_makes_streams(device)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, op,
                    "`stream` is NULL, and gm has no stream of its own on this device: " GM__STREAM_ADVICE);
  }
  gm__mutex_lock(&device->lock);
  gm_stream *stream = device->default_stream;
  gm__mutex_unlock(&device->lock);
  if (!stream) {
    gm_stream *fresh = NULL;
    gm_status status = stream_open(device, NULL, &fresh, err);
    if (status != GM_OK) return status;
    gm__mutex_lock(&device->lock);
    stream = device->default_stream;
    if (!stream) device->default_stream = stream = fresh;
    gm__mutex_unlock(&device->lock);
    if (stream != fresh) stream_discard(fresh, false); /* another thread was first */
  }
  *out = stream;
  return GM_OK;
}

void gm__device_close_default_stream(gm_device *device) {
  if (device->default_stream) stream_discard(device->default_stream, gm__context_forked(device->ctx));
  device->default_stream = NULL;
}

uint64_t gm__device_next_stream_id(const gm_device *device) {
  uint64_t own = gm__context_next_id(device->ctx) & ((UINT64_C(1) << GM__STREAM_BITS) - 1);
  return device->id << GM__STREAM_BITS | own;
}

bool gm__device_made_stream(const gm_device *device, uint64_t id) {
  return (id ^ device->id << GM__STREAM_BITS) >> GM__STREAM_BITS == 0;
}

gm_stream *gm__device_find_stream(gm_device *device, uint64_t id) {
  gm__mutex_lock(&device->lock);
  gm_stream *stream = device->streams;
  while (stream && stream->id != id) stream = stream->next;
  gm__mutex_unlock(&device->lock);
  return stream;
}

void gm__device_add_listener(gm_device *device, gm__stream_listener *listener) {
  gm__mutex_lock(&device->lock);
  listener->prev = NULL;
  listener->next = device->listeners;
  if (device->listeners) device->listeners->prev = listener;
  device->listeners = listener;
  gm__mutex_unlock(&device->lock);
}

void gm__device_remove_listener(gm_device *device, gm__stream_listener *listener) {
  gm__mutex_lock(&device->lock);
  if (listener->next) listener->next->prev = listener->prev;
  if (listener->prev) {
    listener->prev->next = listener->next;
  } else {
    device->listeners = listener->next;
  }
  gm__mutex_unlock(&device->lock);
}

gm_stream_kind gm_stream_get_kind(const gm_stream *stream) { return stream ? stream->kind : GM_STREAM_FIFO; }

gm_device *gm_stream_device(const gm_stream *stream) { return stream ? stream->device : NULL; }

uint64_t gm_stream_id(const gm_stream *stream) { return stream ? stream->id : 0; }

gm_status gm_stream_flush(gm_stream *stream, gm_error *err) {
  gm_status status = gm__stream_check(stream, "gm_stream_flush", err);
  if (status == GM_OK)
    status = gm__submitting(stream->device)->stream_flush(stream->device->handle, stream->handle, err);
  return gm__error_of("gm_stream_flush", status, err);
}

static void stream_tell_synced(gm_stream *stream, uint64_t clock) {
  gm_device *device = stream->device;
  gm__mutex_lock(&device->lock);
  for (gm__stream_listener *listener = device->listeners; listener; listener = listener->next) {
    if (listener->synced) listener->synced(listener->user, stream, clock);
  }
  gm__mutex_unlock(&device->lock);
}

gm_status gm_stream_sync(gm_stream *stream, gm_error *err) {
  gm_status status = gm__stream_check(stream, "gm_stream_sync", err);
  if (status != GM_OK) return status;
  gm_device *device = stream->device;
  uint64_t clock = atomic_fetch_add(&device->order_clock, 1); /* what is freed later may have work behind the wait */
  status = gm__submitting(device)->stream_sync(device->handle, stream->handle, err);
  if (status == GM_OK) stream_tell_synced(stream, clock);
  return gm__error_of("gm_stream_sync", status, err);
}

gm_status gm_stream_barrier(gm_stream *stream, gm_error *err) {
  gm_status status = gm__stream_check(stream, "gm_stream_barrier", err);
  if (status != GM_OK || stream->kind == GM_STREAM_FIFO) return status;
  status = gm__submitting(stream->device)->stream_barrier(stream->device->handle, stream->handle, err);
  return gm__error_of("gm_stream_barrier", status, err);
}

static gm_status stream_tell_passing(gm_stream *stream, uint64_t clock, const gm_point *point, gm_error *err) {
  gm_device *device = stream->device;
  gm_status status = GM_OK;
  gm__mutex_lock(&device->lock);
  for (gm__stream_listener *listener = device->listeners; listener && !status; listener = listener->next) {
    status = listener->passing(listener->user, stream, clock, point, err);
  }
  gm__mutex_unlock(&device->lock);
  return status;
}

gm_status gm_stream_passed(gm_stream *stream, const gm_point *point, gm_error *err) {
  static const char op[] = "gm_stream_passed";
  gm_status status = gm__stream_check(stream, op, err);
  if (status == GM_OK && point) status = gm__point_check(stream->device, point, op, err);
  if (status != GM_OK) return status;
  const uint64_t clock = atomic_fetch_add(&stream->device->order_clock, 1); /* later frees are not meant */
  const bool pending = point && gm__point_stream(stream->device, point);
  return stream_tell_passing(stream, clock, pending ? point : NULL, err);
}
