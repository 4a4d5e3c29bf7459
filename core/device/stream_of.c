/* Streams by their native handles. Invariants: a stream of the table counts one adoption of the device's own, `kept`.
 * Only the device and gm_stream_forget end that one. Nobody waits with adopt_lock held. */
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/device/stream.h"
#include "core/device/stream_table.h"
#include "core/discovery/answer.h"

static gm_status stream_of_name(gm_device *device, const gm_native_stream *native, const char *op, gm_stream_name *out,
                                gm_error *err) {
  gm_status status = gm__device_check(device, op, err);
  if (status != GM_OK) return status;
  if (!native) return gm__bad_argument(err, op, "`native` is NULL");
  status = device->ops->stream_name(device->handle, native, out, err);
  if (status == GM_ERR_NOT_SUPPORTED) {
    return gm__fail(err, status, op, "backend %s cannot tell streams by their handles: use gm_stream_adopt",
                    device->info.backend);
  }
  return gm__error_of(op, status, err);
}

/* The API has given the handle to a new stream. The older stream is gone, and gm may not ask it any more: so the whole
 * device is waited for, once. */
static gm_status stream_of_settle(gm_device *device, gm_stream *stream, gm_error *err) {
  const uint64_t clock = atomic_fetch_add(&device->order_clock, 1);
  const gm_status status = gm__submitting(device)->device_sync(device->handle, err);
  gm__error_of("gm_stream_of", status, err);
  if (status == GM_OK) gm__stream_tell_synced(stream, clock);
  return status;
}

/* A stream that had the handle before this one. The thread that claims it lets go of it. NULL: there is none, or
 * another thread is at it. */
static gm_stream *stream_of_claim_older(gm_device *device, const gm_stream_name *name, gm_stream_name *out) {
  gm__mutex_lock(&device->adopt_lock);
  gm_stream *stream = gm__stream_table_older(&device->named, name, out);
  if (stream && !stream->kept) stream = NULL;
  if (stream) stream->kept = false;
  gm__mutex_unlock(&device->adopt_lock);
  return stream;
}

/* Others who adopted the older stream keep their adoptions. */
static gm_status stream_of_drop_older(gm_device *device, const gm_stream_name *name, gm_error *err) {
  gm_stream_name older;
  gm_stream *stream = stream_of_claim_older(device, name, &older);
  if (!stream) return GM_OK;
  gm_status status = stream_of_settle(device, stream, err);
  if (status == GM_OK) status = gm__stream_let_go(stream, err);
  gm__mutex_lock(&device->adopt_lock);
  if (status == GM_OK) {
    gm__stream_table_remove(&device->named, &older);
  } else {
    stream->kept = true;
  }
  gm__mutex_unlock(&device->adopt_lock);
  return status;
}

/* The adoption becomes the device's, unless another thread was first. */
static gm_status stream_of_keep(gm_device *device, const gm_stream_name *name, gm_stream *fresh, gm_stream **out,
                                gm_error *err) {
  gm_status status = GM_OK;
  gm__mutex_lock(&device->adopt_lock);
  gm_stream *stream = gm__stream_table_find(&device->named, name);
  const bool keep = !stream && !fresh->kept; /* a backend may give one queue two names: the first is kept */
  if (!stream) stream = fresh;
  if (keep) status = gm__stream_table_add(&device->named, gm__context_services(device->ctx), name, fresh);
  if (keep && status == GM_OK) fresh->kept = true;
  gm__mutex_unlock(&device->adopt_lock);
  if (keep && status == GM_OK) {
    atomic_fetch_sub(&device->children, 1); /* it closes with the device */
    *out = fresh;
    return GM_OK;
  }
  gm_stream_close(fresh, NULL);
  if (status != GM_OK) return gm__fail(err, status, "gm_stream_of", "no host memory for the name of a stream");
  *out = stream;
  return GM_OK;
}

gm_status gm_stream_of(gm_device *device, const gm_native_stream *native, gm_stream **out, gm_error *err) {
  gm_stream_name name;
  gm_status status = stream_of_name(device, native, "gm_stream_of", &name, err);
  if (status != GM_OK) return status;
  if (!out) return gm__bad_argument(err, "gm_stream_of", "`out` is NULL");
  gm_stream *stream = gm__stream_table_find(&device->named, &name);
  if (stream) {
    *out = stream;
    return GM_OK;
  }
  status = stream_of_drop_older(device, &name, err);
  if (status == GM_OK) status = gm__error_of("gm_stream_of", gm_stream_adopt(device, native, &stream, err), err);
  return status == GM_OK ? stream_of_keep(device, &name, stream, out, err) : status;
}

/* The device's adoption becomes one that gm_stream_close can end. NULL: there is none. */
static gm_stream *stream_of_release(gm_device *device, const gm_stream_name *name) {
  gm__mutex_lock(&device->adopt_lock);
  gm_stream *stream = gm__stream_table_find(&device->named, name);
  if (stream && !stream->kept) stream = NULL; /* another thread is at it */
  if (stream) {
    stream->kept = false;
    atomic_fetch_add(&device->children, 1);
  }
  gm__mutex_unlock(&device->adopt_lock);
  return stream;
}

static void stream_of_take_back(gm_device *device, gm_stream *stream) {
  gm__mutex_lock(&device->adopt_lock);
  stream->kept = true;
  atomic_fetch_sub(&device->children, 1);
  gm__mutex_unlock(&device->adopt_lock);
}

gm_status gm_stream_forget(gm_device *device, const gm_native_stream *native, gm_error *err) {
  GM__UNCANCELLED();
  gm_stream_name name;
  gm_status status = stream_of_name(device, native, "gm_stream_forget", &name, err);
  if (status != GM_OK) return status;
  gm_stream *stream = stream_of_release(device, &name);
  if (!stream) return GM_OK;
  status = gm__error_of("gm_stream_forget", gm_stream_close(stream, err), err);
  if (status != GM_OK) {
    stream_of_take_back(device, stream);
    return status;
  }
  gm__mutex_lock(&device->adopt_lock);
  gm__stream_table_remove(&device->named, &name);
  gm__mutex_unlock(&device->adopt_lock);
  return GM_OK;
}

void gm__device_release_named(gm_device *device) {
  gm_stream_name name;
  for (gm_stream *stream; (stream = gm__stream_table_any(&device->named, &name));) {
    gm__stream_table_remove(&device->named, &name);
    gm__stream_discard(stream, gm__context_forked(device->ctx));
  }
  gm__stream_table_clear(&device->named, gm__context_services(device->ctx));
}
