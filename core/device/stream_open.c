/* Invariants. A device's list holds exactly its open streams. A point whose stream is not in it has passed, because
 * closing waited for it. A closed stream's object stays the device's until that closes, or until it serves another
 * stream. So a late use of its name finds a stream without a device, or another stream. The list of adopted streams
 * holds those that somebody has adopted and not closed. A thread that finds one there, with the adopt lock, counts
 * itself in, and the stream does not close meanwhile. A stream leaves that list before it closes, and comes back if
 * it must stay. */
#include "core/base/cancel.h"
#include "core/device/stream.h"

#include "core/base/error.h"
#include "core/discovery/answer.h"

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

/* REQUIRES: device lock. */
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

/* A point carries the id of its stream, and so shows from which device it comes. */
static uint64_t stream_next_id(const gm_device *device) {
  uint64_t own = gm__context_next_id(device->ctx) & ((UINT64_C(1) << GM__STREAM_BITS) - 1);
  return device->id << GM__STREAM_BITS | own;
}

gm_status gm__stream_open(gm_device *device, const gm_native_stream *native, gm_stream **out, gm_error *err) {
  gm_stream *stream = stream_object(device);
  if (!stream) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_stream_create", "no host memory for a stream");
  const gm_status status = stream_ask(device, native, stream, err);
  if (status != GM_OK) {
    gm__object_end(device->ctx, &stream->head);
    return status;
  }
  stream->device = device;
  stream->adopted = native != NULL;
  stream->silent = native && stream_is_silent(device, stream->handle);
  stream->id = stream_next_id(device);
  stream_link(device, stream);
  *out = stream;
  return GM_OK;
}

gm_status gm_stream_create(gm_device *device, gm_stream **out, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__device_check(device, "gm_stream_create", err);
  if (status != GM_OK) return status;
  if (!out) return gm__bad_argument(err, "gm_stream_create", "`out` is NULL");
  status = gm__stream_open(device, NULL, out, err);
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

void gm__stream_discard(gm_stream *stream, bool forked) {
  gm_device *device = stream->device;
  if (!forked) gm__mutex_lock(&device->lock);
  stream_unlink(device, stream);
  if (!forked) gm__mutex_unlock(&device->lock);
  device->ops->stream_close(device->handle, stream->handle, forked ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL);
  if (!forked) gm__mutex_lock(&device->lock);
  stream_keep(device, stream);
  if (!forked) gm__mutex_unlock(&device->lock);
}

/* Makes sure that the stream's work is done. Where nothing can wait for it, no pool may have anything that it may still
 * use. */
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

/* The adopted stream of that queue; NULL: there is none, or the backend cannot tell. REQUIRES: adopt lock. */
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

/* True when the device holds the only adoption. */
static bool stream_is_only_kept(gm_device *device, const gm_stream *stream, bool forked) {
  if (!forked) gm__mutex_lock(&device->adopt_lock);
  const bool only = stream->kept && stream->adoptions == 1;
  if (!forked) gm__mutex_unlock(&device->adopt_lock);
  return only;
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
  GM__UNCANCELLED();
  gm_stream *stream = NULL, *fresh = NULL;
  gm_status status = gm__device_check(device, "gm_stream_adopt", err);
  if (status != GM_OK) return status;
  if (!native || !out) return gm__bad_argument(err, "gm_stream_adopt", "`%s` is NULL", native ? "out" : "native");
  status = stream_count_in(device, native, NULL, &stream, err);
  if (status == GM_OK && !stream) {
    status = gm__stream_open(device, native, &fresh, err);
    if (status == GM_OK) status = stream_count_in(device, native, fresh, &stream, err);
    if (fresh && stream != fresh) gm__stream_discard(fresh, false); /* another thread was first */
  }
  if (status != GM_OK) return status;
  atomic_fetch_add(&device->children, 1);
  *out = stream;
  return GM_OK;
}

static gm_status stream_check_chosen(const gm_stream *stream, gm_error *err) {
  if (gm__device_chosen_stream(stream->device) != stream) return GM_OK;
  return gm__fail(err, GM_ERR_BUSY, "gm_stream_close",
                  "the stream is the device's default stream: choose another one, or none "
                  "(gm_device_set_default_stream)");
}

static gm_status stream_check_captured(const gm_stream *stream, gm_error *err) {
  if (!gm__stream_captured(stream)) return GM_OK;
  return gm__fail(err, GM_ERR_BUSY, "gm_stream_close", "the stream is being captured: end the capture first");
}

/* Its work is done. Pools forget the stream, and it ends. */
static gm_status stream_leave(gm_stream *stream, gm_error *err) {
  if (!stream_tell_listeners(stream->device, stream)) {
    return gm__fail(err, GM_ERR_BUSY, "gm_stream_close",
                    "a thread is in the driver with the stream, for a request of another stream: close it later, and "
                    "not inside the lock of a queue");
  }
  gm__stream_discard(stream, false);
  return GM_OK;
}

/* Nobody else has adopted it. */
static gm_status stream_end(gm_stream *stream, bool forked, gm_error *err) {
  if (forked) {
    gm__stream_discard(stream, true);
    return GM_OK;
  }
  gm_status status = stream_check_chosen(stream, err);
  if (status == GM_OK) status = stream_check_captured(stream, err);
  if (status == GM_OK) status = stream_finish(stream, err);
  return status == GM_OK ? stream_leave(stream, err) : status;
}

gm_status gm__stream_let_go(gm_stream *stream, gm_error *err) {
  gm_device *device = stream->device;
  if (!stream_count_out(device, stream, false)) return GM_OK;
  gm_status status = stream_check_chosen(stream, err);
  if (status == GM_OK) status = stream_leave(stream, err);
  if (status != GM_OK) stream_count_back(device, stream);
  return status;
}

gm_status gm_stream_close(gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  if (!stream) return GM_OK;
  if (gm__stream_is_closed(stream)) return gm__stream_check(stream, "gm_stream_close", err);
  gm_device *device = stream->device;
  bool forked = gm__context_forked(device->ctx);
  if (stream_is_only_kept(device, stream, forked)) {
    return gm__bad_argument(err, "gm_stream_close",
                            "the device owns the adoption of `stream` (gm_stream_of): gm_stream_forget ends it");
  }
  const bool last = stream_count_out(device, stream, forked);
  gm_status status = last ? stream_end(stream, forked, err) : GM_OK;
  if (status == GM_OK) {
    atomic_fetch_sub(&device->children, 1);
  } else {
    stream_count_back(device, stream);
  }
  return status;
}
