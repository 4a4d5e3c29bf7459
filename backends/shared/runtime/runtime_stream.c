#include "backends/shared/runtime/runtime_stream.h"

#include "backends/shared/native.h"
#include "backends/shared/runtime/runtime_entries.h"
#include "backends/shared/runtime/runtime_event.h"
#include "backends/shared/runtime/runtime_native.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

static gm_status stream_make(gm__runtime_device *device, void **out, gm_error *err) {
  const gm__runtime_make *create = &device->api->stream_create;
  void *made = NULL;
  const int code = create->call(device, &made);
  if (code != GM__RUNTIME_SUCCESS) return gm__runtime_fail(device, code, create->op, err);
  if (!made) return gm__runtime_nonsense(device, create->op, "gave no stream", err);
  *out = made;
  return GM_OK;
}

/* Two threads may make one at the same time. The second gives its own back. */
static gm_status stream_own(gm__runtime_device *device, void **out, gm_error *err) {
  void *stream = atomic_load(&device->own_stream), *made = NULL;
  if (!stream) {
    const gm_status status = stream_make(device, &made, err);
    if (status != GM_OK) return status;
    if (atomic_compare_exchange_strong(&device->own_stream, &stream, made)) {
      stream = made;
    } else {
      device->api->stream_destroy.call(device, made);
    }
  }
  *out = stream;
  return GM_OK;
}

/* The default stream also answers that it is captured while an ordinary stream is (CAPTURE_IMPLICIT). */
static gm_status stream_ask(gm__runtime_device *device, const gm__runtime_stream *stream, bool *out, gm_error *err) {
  const gm__runtime_ask *capturing = &device->api->stream_capturing;
  gm__runtime_word state = 0;
  *out = false;
  const int code = capturing->call(device, (uintptr_t)stream->handle, &state);
  if (code != GM__RUNTIME_SUCCESS && code != GM__RUNTIME_CAPTURE_IMPLICIT) {
    return gm__runtime_fail(device, code, capturing->op, err);
  }
  *out = code != GM__RUNTIME_SUCCESS || state != 0;
  return GM_OK;
}

static gm_status stream_check_captured(gm__runtime_device *device, const gm__runtime_stream *stream, gm_error *err) {
  bool captured = false;
  const gm_status status = stream_ask(device, stream, &captured, err);
  if (status != GM_OK || !captured) return status;
  return gm__fail(
      err, GM_ERR_NOT_SUPPORTED, device->api->stream_capturing.op,
      "the engine is capturing a stream that it lent: inside a capture gm neither allocates nor submits; do "
      "it before or after");
}

gm_status gm__runtime_stream_capturing(void *device, void *stream, bool *out, gm_error *err) {
  const gm__runtime_stream *asked = stream;
  gm__runtime_scope scope;
  bool captured = false;
  gm_status status = GM_OK;
  if (asked && asked->adopted) {
    status = gm__runtime_enter(device, &scope, err);
    if (status != GM_OK) return status;
    status = stream_ask(device, asked, &captured, err);
    gm__runtime_leave(device, &scope);
  }
  if (status == GM_OK) *out = captured;
  return status;
}

/* A per-thread default stream can be asked about in its own thread only. */
gm_status gm__runtime_capture_check(gm__runtime_device *device, gm_error *err) {
  gm_status status = GM_OK;
  gm__mutex_lock(&device->lock);
  for (const gm__runtime_stream *stream = device->adopted; stream && status == GM_OK; stream = stream->next) {
    if (stream->handle != GM__RUNTIME_PER_THREAD) status = stream_check_captured(device, stream, err);
  }
  gm__mutex_unlock(&device->lock);
  return status;
}

/* The per-thread stream is another one in every thread, and the handle of a destroyed stream comes again. The driver's
 * number tells which stream it is. */
static gm_status stream_number(gm__runtime_device *device, void *handle, gm__runtime_word *out, gm_error *err) {
  const gm__runtime_ask *id = &device->api->stream_id;
  *out = 0;
  if (handle == device->api->default_stream || !id->call) return GM_OK;
  return gm__runtime_answer(device, id->call(device, (uintptr_t)handle, out), id->op, err);
}

static gm_status stream_check_thread(gm__runtime_device *device, const gm__runtime_stream *stream, gm_error *err) {
  gm__runtime_word id = 0;
  if (stream->handle != GM__RUNTIME_PER_THREAD) return GM_OK;
  const gm_status status = stream_number(device, stream->handle, &id, err);
  if (status != GM_OK || id == stream->id) return status;
  return gm__bad_argument(err, device->api->name,
                          "`stream` is the per-thread default stream of another thread: adopt it in this one");
}

static gm_status stream_handle(gm__runtime_device *device, const gm__runtime_stream *stream, void **out,
                               gm_error *err) {
  if (!stream) return stream_own(device, out, err);
  gm_status status = stream_check_thread(device, stream, err);
  if (status == GM_OK && stream->adopted) status = stream_check_captured(device, stream, err);
  if (status == GM_OK) *out = stream->handle;
  return status;
}

gm_status gm__runtime_begin(gm__runtime_device *device, void *stream, gm__runtime_job *out, gm_error *err) {
  gm_status status = gm__runtime_enter(device, &out->scope, err);
  if (status != GM_OK) return status;
  status = stream_handle(device, stream, &out->stream, err);
  if (status != GM_OK) gm__runtime_leave(device, &out->scope);
  return status;
}

static gm_status stream_wait(gm__runtime_device *device, void *stream, gm_error *err) {
  const gm__runtime_on *sync = &device->api->stream_sync;
  return gm__runtime_answer(device, sync->call(device, stream), sync->op, err);
}

gm_status gm__runtime_end(gm__runtime_device *device, const gm__runtime_job *job, int code, const char *op,
                          gm_backend_point *out, gm_error *err) {
  gm_status status = gm__runtime_answer(device, code, op, err);
  if (status == GM_OK) {
    status = out ? gm__runtime_event_mark(device, job->stream, out, err) : stream_wait(device, job->stream, err);
  }
  if (status != GM_OK) device->api->stream_sync.call(device, job->stream);
  gm__runtime_leave(device, &job->scope);
  return status;
}

static gm__runtime_stream *stream_record(gm__runtime_device *device, gm_error *err) {
  gm__runtime_stream *stream = gm__alloc(device->services, sizeof *stream);
  if (!stream) {
    gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, device->api->name, "no host memory for the stream's record");
  }
  return stream;
}

gm_status gm__runtime_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err) {
  gm__runtime_device *opened = device;
  gm__runtime_scope scope;
  gm__runtime_stream *stream = stream_record(opened, err);
  if (!stream) return GM_ERR_OUT_OF_HOST_MEMORY;
  gm_status status = gm__runtime_enter(opened, &scope, err);
  if (status == GM_OK) {
    status = stream_make(opened, &stream->handle, err);
    gm__runtime_leave(opened, &scope);
  }
  if (status != GM_OK) {
    gm__release(opened->services, stream, sizeof *stream);
    return status;
  }
  *out_stream = stream;
  *out_kind = GM_STREAM_FIFO;
  return GM_OK;
}

static void stream_enlist(gm__runtime_device *device, gm__runtime_stream *stream) {
  gm__mutex_lock(&device->lock);
  stream->next = device->adopted;
  if (stream->next) stream->next->prev = stream;
  device->adopted = stream;
  gm__mutex_unlock(&device->lock);
}

static void stream_delist(gm__runtime_device *device, gm__runtime_stream *stream) {
  gm__mutex_lock(&device->lock);
  if (stream->prev) stream->prev->next = stream->next;
  if (stream->next) stream->next->prev = stream->prev;
  if (device->adopted == stream) device->adopted = stream->next;
  gm__mutex_unlock(&device->lock);
}

/* gm's entries take 0 as the default stream, however the engine was compiled. An engine that means its threads' own
 * stream says 2. Older HIP does not know 1. */
static gm_status stream_lent(const gm__runtime *api, const gm_native_stream *native, void **out, gm_error *err) {
  gm__runtime_native_stream lent;
  const gm_status status = gm__native_in(&lent, sizeof lent, native, api->api, api->name, "native", err);
  if (status == GM_OK) *out = lent.stream <= 1 ? api->default_stream : (void *)lent.stream;
  return status;
}

gm_status gm__runtime_stream_adopt(void *device, const gm_native_stream *native, void **out_stream,
                                   gm_stream_kind *out_kind, gm_error *err) {
  gm__runtime_device *opened = device;
  void *lent = NULL;
  gm__runtime_scope scope;
  gm_status status = stream_lent(opened->api, native, &lent, err);
  if (status != GM_OK) return status;
  gm__runtime_stream *stream = stream_record(opened, err);
  if (!stream) return GM_ERR_OUT_OF_HOST_MEMORY;
  stream->handle = lent;
  stream->adopted = true;
  status = gm__runtime_enter(opened, &scope, err);
  if (status == GM_OK) {
    status = stream_number(opened, lent, &stream->id, err);
    if (status == GM_OK) status = opened->api->stream_check(opened, lent, err);
    gm__runtime_leave(opened, &scope);
  }
  if (status != GM_OK) {
    gm__release(opened->services, stream, sizeof *stream);
    return status;
  }
  stream_enlist(opened, stream);
  *out_stream = stream;
  *out_kind = GM_STREAM_FIFO;
  return GM_OK;
}

gm_status gm__runtime_stream_same(void *device, void *stream, const gm_native_stream *native, bool *out,
                                  gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime_stream *adopted = stream;
  void *lent = NULL;
  gm__runtime_scope scope;
  gm__runtime_word id = 0;
  gm_status status = stream_lent(opened->api, native, &lent, err);
  if (status == GM_OK && lent == adopted->handle && opened->api->stream_id.call) {
    status = gm__runtime_enter(opened, &scope, err);
    if (status != GM_OK) return status;
    status = stream_number(opened, lent, &id, err);
    gm__runtime_leave(opened, &scope);
  }
  if (status == GM_OK) *out = lent == adopted->handle && id == adopted->id;
  return status;
}

/* With the device's context. A handle knows its own, so the number is first asked without. */
static gm_status stream_number_inside(gm__runtime_device *device, void *handle, gm__runtime_word *out, gm_error *err) {
  gm__runtime_scope scope;
  gm_status status = gm__runtime_enter(device, &scope, err);
  if (status != GM_OK) return status;
  status = stream_number(device, handle, out, err);
  gm__runtime_leave(device, &scope);
  return status;
}

/* The driver's number says whether a handle is used again. The per-thread stream has one handle for many streams, so
 * there the number alone is the name; it is no address. */
gm_status gm__runtime_stream_name(void *device, const gm_native_stream *native, gm_stream_name *out, gm_error *err) {
  gm__runtime_device *opened = device;
  void *lent = NULL;
  gm__runtime_word id = 0;
  gm_status status = stream_lent(opened->api, native, &lent, err);
  if (status != GM_OK) return status;
  const bool per_thread = lent == GM__RUNTIME_PER_THREAD;
  if (per_thread || stream_number(opened, lent, &id, NULL) != GM_OK) {
    status = stream_number_inside(opened, lent, &id, err);
    if (status != GM_OK) return status;
  }
  *out = per_thread && id ? (gm_stream_name){{~(uint64_t)id, 0}} : (gm_stream_name){{(uintptr_t)lent, id}};
  return GM_OK;
}

gm_status gm__runtime_device_sync(void *device, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime_on *sync = &opened->api->device_sync;
  gm__runtime_scope scope;
  if (!sync->call) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, opened->api->name, "gm waits for no whole device of this API");
  }
  gm_status status = gm__runtime_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = gm__runtime_answer(opened, sync->call(opened, NULL), sync->op, err);
  gm__runtime_leave(opened, &scope);
  return status;
}

void gm__runtime_stream_close(void *device, void *stream, gm_close_mode mode) {
  gm__runtime_device *opened = device;
  gm__runtime_stream *closing = stream;
  gm__runtime_scope scope;
  if (!closing) return;
  if (mode == GM_CLOSE_NORMAL && closing->adopted) stream_delist(opened, closing);
  if (mode == GM_CLOSE_NORMAL && !closing->adopted && gm__runtime_enter(opened, &scope, NULL) == GM_OK) {
    opened->api->stream_sync.call(opened, closing->handle);
    opened->api->stream_destroy.call(opened, closing->handle);
    gm__runtime_leave(opened, &scope);
  }
  gm__release(opened->services, closing, sizeof *closing);
}

/* Submitted work runs by itself. Where the driver gathers it first (WDDM), a query sends it. */
gm_status gm__runtime_stream_flush(void *device, void *stream, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime_on *query = &opened->api->stream_query;
  gm__runtime_job job;
  const gm_status status = gm__runtime_begin(opened, stream, &job, err);
  if (status != GM_OK) return status;
  const int code = query->call(opened, job.stream);
  gm__runtime_leave(opened, &job.scope);
  return code == GM__RUNTIME_NOT_READY ? GM_OK : gm__runtime_answer(opened, code, query->op, err);
}

gm_status gm__runtime_stream_sync(void *device, void *stream, gm_error *err) {
  gm__runtime_job job;
  gm_status status = gm__runtime_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  status = stream_wait(device, job.stream, err);
  gm__runtime_leave(device, &job.scope);
  return status;
}
