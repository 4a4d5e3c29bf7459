#include "backends/hip/hip_stream.h"

#include "backends/hip/hip_point.h"
#include "backends/hip/hip_status.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/native.h"
#include "gm/native_hip.h"

enum { HIP_STREAM_LEGACY = 1, HIP_STREAM_PER_THREAD = 2 }; /* as handles; the first since HIP 6.2 */

static gm_status hip_stream_make(gm__hip_device *device, hipStream_t *out, gm_error *err) {
  hipStream_t made = NULL;
  const hipError_t code = device->hip->hipStreamCreateWithFlags(&made, hipStreamNonBlocking);
  if (code != hipSuccess) return gm__hip_device_fail(device, code, "hipStreamCreateWithFlags", err);
  if (!made) return gm__hip_nonsense(err, "hipStreamCreateWithFlags", "gave no stream");
  *out = made;
  return GM_OK;
}

/* Two threads may make one at the same time; the second gives its own back. */
static gm_status hip_stream_own(gm__hip_device *device, hipStream_t *out, gm_error *err) {
  hipStream_t stream = atomic_load(&device->own_stream), made = NULL;
  if (!stream) {
    const gm_status status = hip_stream_make(device, &made, err);
    if (status != GM_OK) return status;
    if (atomic_compare_exchange_strong(&device->own_stream, &stream, made)) {
      stream = made;
    } else {
      device->hip->hipStreamDestroy(made);
    }
  }
  *out = stream;
  return GM_OK;
}

/* A stream is captured while this answers anything but NONE; the null stream also while an ordinary one is (IMPLICIT).
 */
static gm_status hip_stream_ask(gm__hip_device *device, const gm__hip_stream *stream, bool *out, gm_error *err) {
  hipStreamCaptureStatus state = hipStreamCaptureStatusNone;
  *out = false;
  if (!device->hip->hipStreamIsCapturing) return GM_OK;
  const hipError_t code = device->hip->hipStreamIsCapturing(stream->handle, &state);
  if (code != hipSuccess && code != hipErrorStreamCaptureImplicit) {
    return gm__hip_device_fail(device, code, "hipStreamIsCapturing", err);
  }
  *out = code != hipSuccess || state != hipStreamCaptureStatusNone;
  return GM_OK;
}

static gm_status hip_stream_captured(gm__hip_device *device, const gm__hip_stream *stream, gm_error *err) {
  bool captured = false;
  const gm_status status = hip_stream_ask(device, stream, &captured, err);
  if (status != GM_OK || !captured) return status;
  return gm__fail(
      err, GM_ERR_NOT_SUPPORTED, 0, "hipStreamIsCapturing",
      "the engine is capturing a stream that it lent: inside a capture gm neither allocates nor submits; do "
      "it before or after");
}

gm_status gm__hip_stream_capturing(void *device, void *stream, bool *out, gm_error *err) {
  const gm__hip_stream *asked = stream;
  gm__hip_scope scope;
  bool captured = false;
  gm_status status = GM_OK;
  if (asked && asked->adopted) {
    status = gm__hip_enter(device, &scope, err);
    if (status != GM_OK) return status;
    status = hip_stream_ask(device, asked, &captured, err);
    gm__hip_leave(&scope);
  }
  if (status == GM_OK) *out = captured;
  return status;
}

gm_status gm__hip_capture_check(gm__hip_device *device, gm_error *err) {
  gm_status status = GM_OK;
  gm__mutex_lock(&device->lock);
  for (const gm__hip_stream *stream = device->adopted; stream && status == GM_OK; stream = stream->next) {
    status = hip_stream_captured(device, stream, err);
  }
  gm__mutex_unlock(&device->lock);
  return status;
}

static gm_status hip_stream_handle(gm__hip_device *device, const gm__hip_stream *stream, hipStream_t *out,
                                   gm_error *err) {
  if (!stream) return hip_stream_own(device, out, err);
  const gm_status status = stream->adopted ? hip_stream_captured(device, stream, err) : GM_OK;
  if (status == GM_OK) *out = stream->handle;
  return status;
}

gm_status gm__hip_begin(gm__hip_device *device, void *stream, gm__hip_job *out, gm_error *err) {
  gm_status status = gm__hip_enter(device, &out->scope, err);
  if (status != GM_OK) return status;
  status = hip_stream_handle(device, stream, &out->stream, err);
  if (status != GM_OK) gm__hip_leave(&out->scope);
  return status;
}

static gm_status hip_stream_wait(gm__hip_device *device, hipStream_t stream, gm_error *err) {
  const hipError_t code = device->hip->hipStreamSynchronize(stream);
  return code == hipSuccess ? GM_OK : gm__hip_device_fail(device, code, "hipStreamSynchronize", err);
}

gm_status gm__hip_end(gm__hip_device *device, const gm__hip_job *job, hipError_t code, const char *op,
                      gm_backend_point *out, gm_error *err) {
  gm_status status = code == hipSuccess ? GM_OK : gm__hip_device_fail(device, code, op, err);
  if (status == GM_OK) {
    status = out ? gm__hip_point_mark(device, job->stream, out, err) : hip_stream_wait(device, job->stream, err);
  }
  if (status != GM_OK) device->hip->hipStreamSynchronize(job->stream);
  gm__hip_leave(&job->scope);
  return status;
}

static gm__hip_stream *hip_stream_record(gm__hip_device *device, gm_error *err) {
  gm__hip_stream *stream = gm__alloc(device->services, sizeof *stream);
  if (!stream) gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "hip", "no host memory for the stream's record");
  return stream;
}

gm_status gm__hip_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  gm__hip_stream *stream = hip_stream_record(opened, err);
  if (!stream) return GM_ERR_OUT_OF_HOST_MEMORY;
  gm_status status = gm__hip_enter(opened, &scope, err);
  if (status == GM_OK) {
    status = hip_stream_make(opened, &stream->handle, err);
    gm__hip_leave(&scope);
  }
  if (status != GM_OK) {
    gm__release(opened->services, stream, sizeof *stream);
    return status;
  }
  *out_stream = stream;
  *out_kind = GM_STREAM_FIFO;
  return GM_OK;
}

/* The null stream belongs to whatever device is current; others have one, which must be this. */
static gm_status hip_adopt_check(gm__hip_device *device, hipStream_t handle, gm_error *err) {
  hipDevice_t owner = -1;
  if (!handle || !device->hip->hipStreamGetDevice) return GM_OK;
  const hipError_t code = device->hip->hipStreamGetDevice(handle, &owner);
  if (code != hipSuccess) return gm__hip_device_fail(device, code, "hipStreamGetDevice", err);
  if (owner == (hipDevice_t)device->info.index) return GM_OK;
  return gm__bad_argument(err, "hip", "`stream` belongs to device %d, and this is device %u", (int)owner,
                          (unsigned)device->info.index);
}

static void hip_adopted_add(gm__hip_device *device, gm__hip_stream *stream) {
  gm__mutex_lock(&device->lock);
  stream->next = device->adopted;
  if (stream->next) stream->next->prev = stream;
  device->adopted = stream;
  gm__mutex_unlock(&device->lock);
}

static void hip_adopted_remove(gm__hip_device *device, gm__hip_stream *stream) {
  gm__mutex_lock(&device->lock);
  if (stream->prev) stream->prev->next = stream->next;
  if (stream->next) stream->next->prev = stream->prev;
  if (device->adopted == stream) device->adopted = stream->next;
  gm__mutex_unlock(&device->lock);
}

static gm_status hip_stream_lend(gm__hip_device *device, hipStream_t handle, void **out_stream, gm_error *err) {
  gm__hip_scope scope;
  gm__hip_stream *stream = hip_stream_record(device, err);
  if (!stream) return GM_ERR_OUT_OF_HOST_MEMORY;
  stream->handle = handle;
  stream->adopted = true;
  gm_status status = gm__hip_enter(device, &scope, err);
  if (status == GM_OK) {
    status = hip_adopt_check(device, handle, err);
    gm__hip_leave(&scope);
  }
  if (status != GM_OK) {
    gm__release(device->services, stream, sizeof *stream);
    return status;
  }
  hip_adopted_add(device, stream);
  *out_stream = stream;
  return GM_OK;
}

/* The entries that gm calls take 0 as the null stream, whichever way the engine was compiled, and older runtimes do not
 * know 1. */
static hipStream_t hip_stream_lent(const gm_hip_stream *lent) {
  return (hipStream_t)(lent->stream == HIP_STREAM_LEGACY ? 0 : lent->stream);
}

gm_status gm__hip_stream_adopt(void *device, const gm_native_stream *native, void **out_stream,
                               gm_stream_kind *out_kind, gm_error *err) {
  gm_hip_stream lent;
  gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_HIP, "hip", "native", err);
  if (status != GM_OK) return status;
  if (lent.stream == HIP_STREAM_PER_THREAD) {
    return gm__fail(
        err, GM_ERR_NOT_SUPPORTED, 0, "hip",
        "`stream` is hipStreamPerThread, another stream in each thread that HIP gives no number to: lend one "
        "that was created");
  }
  status = hip_stream_lend(device, hip_stream_lent(&lent), out_stream, err);
  if (status == GM_OK) *out_kind = GM_STREAM_FIFO;
  return status;
}

gm_status gm__hip_stream_same(void *device, void *stream, const gm_native_stream *native, bool *out, gm_error *err) {
  const gm__hip_stream *adopted = stream;
  gm_hip_stream lent;
  (void)device;
  const gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_HIP, "hip", "native", err);
  if (status == GM_OK) *out = hip_stream_lent(&lent) == adopted->handle;
  return status;
}

void gm__hip_stream_close(void *device, void *stream, gm_close_mode mode) {
  gm__hip_device *opened = device;
  gm__hip_stream *closing = stream;
  gm__hip_scope scope;
  if (!closing) return;
  if (mode == GM_CLOSE_NORMAL && closing->adopted) hip_adopted_remove(opened, closing);
  if (mode == GM_CLOSE_NORMAL && !closing->adopted && gm__hip_enter(opened, &scope, NULL) == GM_OK) {
    opened->hip->hipStreamSynchronize(closing->handle);
    opened->hip->hipStreamDestroy(closing->handle);
    gm__hip_leave(&scope);
  }
  gm__release(opened->services, closing, sizeof *closing);
}

/* Submitted work runs by itself; where the runtime gathers commands, a query sends them. */
gm_status gm__hip_stream_flush(void *device, void *stream, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_job job;
  const gm_status status = gm__hip_begin(opened, stream, &job, err);
  if (status != GM_OK) return status;
  const hipError_t code = opened->hip->hipStreamQuery(job.stream);
  gm__hip_leave(&job.scope);
  if (code == hipSuccess || code == hipErrorNotReady) return GM_OK;
  return gm__hip_device_fail(opened, code, "hipStreamQuery", err);
}

gm_status gm__hip_stream_sync(void *device, void *stream, gm_error *err) {
  gm__hip_job job;
  gm_status status = gm__hip_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  status = hip_stream_wait(device, job.stream, err);
  gm__hip_leave(&job.scope);
  return status;
}

/* A stream runs its work in order, and later work sees what earlier work wrote. */
gm_status gm__hip_stream_barrier(void *device, void *stream, gm_error *err) {
  (void)device;
  (void)stream;
  (void)err;
  return GM_OK;
}
