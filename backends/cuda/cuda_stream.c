#include "backends/cuda/cuda_stream.h"

#include "backends/cuda/cuda_point.h"
#include "backends/cuda/cuda_status.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/native.h"
#include "gm/native_cuda.h"

/* Two threads may make one at the same time; the second gives its own back. */
static gm_status cuda_stream_own(gm__cuda_device *device, CUstream *out, gm_error *err) {
  CUstream stream = atomic_load(&device->own_stream), made = NULL;
  if (!stream) {
    const CUresult code = device->cu->cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return gm__cuda_device_fail(device, code, "cuStreamCreate", err);
    if (!made) return gm__cuda_nonsense(err, "cuStreamCreate", "gave no stream");
    if (atomic_compare_exchange_strong(&device->own_stream, &stream, made)) {
      stream = made;
    } else {
      device->cu->cuStreamDestroy_v2(made);
    }
  }
  *out = stream;
  return GM_OK;
}

/* A stream is captured while this answers ACTIVE or INVALIDATED; the legacy default one also while an ordinary stream
 * is (IMPLICIT). */
static gm_status cuda_stream_ask(gm__cuda_device *device, const gm__cuda_stream *stream, bool *out, gm_error *err) {
  CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
  *out = false;
  if (!device->cu->cuStreamIsCapturing) return GM_OK;
  const CUresult code = device->cu->cuStreamIsCapturing(stream->handle, &state);
  if (code != CUDA_SUCCESS && code != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
    return gm__cuda_device_fail(device, code, "cuStreamIsCapturing", err);
  }
  *out = code != CUDA_SUCCESS || state != CU_STREAM_CAPTURE_STATUS_NONE;
  return GM_OK;
}

static gm_status cuda_stream_captured(gm__cuda_device *device, const gm__cuda_stream *stream, gm_error *err) {
  bool captured = false;
  const gm_status status = cuda_stream_ask(device, stream, &captured, err);
  if (status != GM_OK || !captured) return status;
  return gm__fail(
      err, GM_ERR_NOT_SUPPORTED, 0, "cuStreamIsCapturing",
      "the engine is capturing a stream that it lent: inside a capture gm neither allocates nor submits; do "
      "it before or after");
}

gm_status gm__cuda_stream_capturing(void *device, void *stream, bool *out, gm_error *err) {
  const gm__cuda_stream *asked = stream;
  gm__cuda_scope scope;
  bool captured = false;
  gm_status status = GM_OK;
  if (asked && asked->adopted) {
    status = gm__cuda_enter(device, &scope, err);
    if (status != GM_OK) return status;
    status = cuda_stream_ask(device, asked, &captured, err);
    gm__cuda_leave(&scope);
  }
  if (status == GM_OK) *out = captured;
  return status;
}

gm_status gm__cuda_capture_check(gm__cuda_device *device, gm_error *err) {
  gm_status status = GM_OK;
  gm__mutex_lock(&device->lock);
  for (const gm__cuda_stream *stream = device->adopted; stream && status == GM_OK; stream = stream->next) {
    if (stream->handle != CU_STREAM_PER_THREAD) status = cuda_stream_captured(device, stream, err);
  }
  gm__mutex_unlock(&device->lock);
  return status;
}

/* CU_STREAM_PER_THREAD is another stream in every thread, and the handle of a destroyed stream comes again: the number
 * tells which it is. */
static gm_status cuda_stream_number(gm__cuda_device *device, CUstream handle, unsigned long long *out, gm_error *err) {
  *out = 0;
  if (handle == CU_STREAM_LEGACY || !device->cu->cuStreamGetId) return GM_OK;
  const CUresult code = device->cu->cuStreamGetId(handle, out);
  return code == CUDA_SUCCESS ? GM_OK : gm__cuda_device_fail(device, code, "cuStreamGetId", err);
}

static gm_status cuda_stream_check_thread(gm__cuda_device *device, const gm__cuda_stream *stream, gm_error *err) {
  unsigned long long id = 0;
  if (stream->handle != CU_STREAM_PER_THREAD) return GM_OK;
  const gm_status status = cuda_stream_number(device, stream->handle, &id, err);
  if (status != GM_OK || id == stream->id) return status;
  return gm__bad_argument(err, "cuda",
                          "`stream` is the per-thread default stream of another thread: adopt it in this one");
}

static gm_status cuda_stream_handle(gm__cuda_device *device, const gm__cuda_stream *stream, CUstream *out,
                                    gm_error *err) {
  if (!stream) return cuda_stream_own(device, out, err);
  gm_status status = cuda_stream_check_thread(device, stream, err);
  if (status == GM_OK && stream->adopted) status = cuda_stream_captured(device, stream, err);
  if (status == GM_OK) *out = stream->handle;
  return status;
}

gm_status gm__cuda_begin(gm__cuda_device *device, void *stream, gm__cuda_job *out, gm_error *err) {
  gm_status status = gm__cuda_enter(device, &out->scope, err);
  if (status != GM_OK) return status;
  status = cuda_stream_handle(device, stream, &out->stream, err);
  if (status != GM_OK) gm__cuda_leave(&out->scope);
  return status;
}

static gm_status cuda_stream_wait(gm__cuda_device *device, CUstream stream, gm_error *err) {
  const CUresult code = device->cu->cuStreamSynchronize(stream);
  return code == CUDA_SUCCESS ? GM_OK : gm__cuda_device_fail(device, code, "cuStreamSynchronize", err);
}

gm_status gm__cuda_end(gm__cuda_device *device, const gm__cuda_job *job, CUresult code, const char *op,
                       gm_backend_point *out, gm_error *err) {
  gm_status status = code == CUDA_SUCCESS ? GM_OK : gm__cuda_device_fail(device, code, op, err);
  if (status == GM_OK) {
    status = out ? gm__cuda_point_mark(device, job->stream, out, err) : cuda_stream_wait(device, job->stream, err);
  }
  if (status != GM_OK) device->cu->cuStreamSynchronize(job->stream);
  gm__cuda_leave(&job->scope);
  return status;
}

static gm__cuda_stream *cuda_stream_make(gm__cuda_device *device, gm_error *err) {
  gm__cuda_stream *stream = gm__alloc(device->services, sizeof *stream);
  if (!stream) gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "cuda", "no host memory for the stream's record");
  return stream;
}

gm_status gm__cuda_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_scope scope;
  gm__cuda_stream *stream = cuda_stream_make(opened, err);
  if (!stream) return GM_ERR_OUT_OF_HOST_MEMORY;
  gm_status status = gm__cuda_enter(opened, &scope, err);
  if (status == GM_OK) {
    const CUresult code = opened->cu->cuStreamCreate(&stream->handle, CU_STREAM_NON_BLOCKING);
    gm__cuda_leave(&scope);
    if (code != CUDA_SUCCESS) {
      status = gm__cuda_device_fail(opened, code, "cuStreamCreate", err);
    } else if (!stream->handle) {
      status = gm__cuda_nonsense(err, "cuStreamCreate", "gave no stream");
    }
  }
  if (status != GM_OK) {
    gm__release(opened->services, stream, sizeof *stream);
    return status;
  }
  *out_stream = stream;
  *out_kind = GM_STREAM_FIFO;
  return GM_OK;
}

/* The default streams belong to whatever context is current; others have one, which must be the device's. */
static gm_status cuda_adopt_check(gm__cuda_device *device, gm__cuda_stream *stream, gm_error *err) {
  CUcontext context = NULL;
  if (stream->handle == CU_STREAM_PER_THREAD && !device->cu->cuStreamGetId) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "cuda",
                    "`stream` is CU_STREAM_PER_THREAD, another stream in each thread that CUDA before 12 gives no "
                    "number to: lend one that was created");
  }
  const gm_status status = cuda_stream_number(device, stream->handle, &stream->id, err);
  if (status != GM_OK) return status;
  if (stream->handle == CU_STREAM_LEGACY || stream->handle == CU_STREAM_PER_THREAD) return GM_OK;
  if (!device->cu->cuStreamGetCtx) return GM_OK;
  const CUresult code = device->cu->cuStreamGetCtx(stream->handle, &context);
  if (code != CUDA_SUCCESS) return gm__cuda_device_fail(device, code, "cuStreamGetCtx", err);
  if (context == device->context) return GM_OK;
  return gm__bad_argument(err, "cuda", "`stream` belongs to another context than the device");
}

static void cuda_adopted_add(gm__cuda_device *device, gm__cuda_stream *stream) {
  gm__mutex_lock(&device->lock);
  stream->next = device->adopted;
  if (stream->next) stream->next->prev = stream;
  device->adopted = stream;
  gm__mutex_unlock(&device->lock);
}

static void cuda_adopted_remove(gm__cuda_device *device, gm__cuda_stream *stream) {
  gm__mutex_lock(&device->lock);
  if (stream->prev) stream->prev->next = stream->next;
  if (stream->next) stream->next->prev = stream->prev;
  if (device->adopted == stream) device->adopted = stream->next;
  gm__mutex_unlock(&device->lock);
}

/* The entries that gm calls take 0 as the legacy default stream, whichever way the engine was compiled: it says 2 when
 * it means its threads' own. */
static gm_status cuda_stream_lent(const gm_native_stream *native, CUstream *out, gm_error *err) {
  gm_cuda_stream lent;
  const gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_CUDA, "cuda", "native", err);
  if (status == GM_OK) *out = lent.stream ? (CUstream)lent.stream : CU_STREAM_LEGACY;
  return status;
}

gm_status gm__cuda_stream_adopt(void *device, const gm_native_stream *native, void **out_stream,
                                gm_stream_kind *out_kind, gm_error *err) {
  gm__cuda_device *opened = device;
  CUstream lent = NULL;
  gm__cuda_scope scope;
  gm_status status = cuda_stream_lent(native, &lent, err);
  if (status != GM_OK) return status;
  gm__cuda_stream *stream = cuda_stream_make(opened, err);
  if (!stream) return GM_ERR_OUT_OF_HOST_MEMORY;
  stream->handle = lent;
  stream->adopted = true;
  status = gm__cuda_enter(opened, &scope, err);
  if (status == GM_OK) {
    status = cuda_adopt_check(opened, stream, err);
    gm__cuda_leave(&scope);
  }
  if (status != GM_OK) {
    gm__release(opened->services, stream, sizeof *stream);
    return status;
  }
  cuda_adopted_add(opened, stream);
  *out_stream = stream;
  *out_kind = GM_STREAM_FIFO;
  return GM_OK;
}

gm_status gm__cuda_stream_same(void *device, void *stream, const gm_native_stream *native, bool *out, gm_error *err) {
  const gm__cuda_stream *adopted = stream;
  CUstream lent = NULL;
  gm__cuda_scope scope;
  unsigned long long id = 0;
  gm_status status = cuda_stream_lent(native, &lent, err);
  if (status == GM_OK && lent == adopted->handle) {
    status = gm__cuda_enter(device, &scope, err);
    if (status != GM_OK) return status;
    status = cuda_stream_number(device, lent, &id, err);
    gm__cuda_leave(&scope);
  }
  if (status == GM_OK) *out = lent == adopted->handle && id == adopted->id;
  return status;
}

void gm__cuda_stream_close(void *device, void *stream, gm_close_mode mode) {
  gm__cuda_device *opened = device;
  gm__cuda_stream *closing = stream;
  gm__cuda_scope scope;
  if (!closing) return;
  if (mode == GM_CLOSE_NORMAL && closing->adopted) cuda_adopted_remove(opened, closing);
  if (mode == GM_CLOSE_NORMAL && !closing->adopted && gm__cuda_enter(opened, &scope, NULL) == GM_OK) {
    opened->cu->cuStreamSynchronize(closing->handle);
    opened->cu->cuStreamDestroy_v2(closing->handle);
    gm__cuda_leave(&scope);
  }
  gm__release(opened->services, closing, sizeof *closing);
}

/* Work runs without a flush; under WDDM, where it is gathered first, a query sends it. */
gm_status gm__cuda_stream_flush(void *device, void *stream, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_job job;
  const gm_status status = gm__cuda_begin(opened, stream, &job, err);
  if (status != GM_OK) return status;
  const CUresult code = opened->cu->cuStreamQuery(job.stream);
  gm__cuda_leave(&job.scope);
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_READY) return GM_OK;
  return gm__cuda_device_fail(opened, code, "cuStreamQuery", err);
}

gm_status gm__cuda_stream_sync(void *device, void *stream, gm_error *err) {
  gm__cuda_job job;
  gm_status status = gm__cuda_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  status = cuda_stream_wait(device, job.stream, err);
  gm__cuda_leave(&job.scope);
  return status;
}

/* A stream runs its work in order, and later work sees what earlier work wrote. */
gm_status gm__cuda_stream_barrier(void *device, void *stream, gm_error *err) {
  (void)device;
  (void)stream;
  (void)err;
  return GM_OK;
}
