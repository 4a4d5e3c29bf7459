/* Inside of a stream, and the streams of a device. */
#ifndef GM_CORE_DEVICE_STREAM_H
#define GM_CORE_DEVICE_STREAM_H

#include "core/base/inner.h"
#include "core/device/device.h"
#include "gm/stream.h"

enum { GM__STREAM_BITS = 40 };

struct gm_stream {
  gm__object head;
  gm_device *device; /* NULL: it is closed */
  void *handle;      /* the backend's stream */
  uint64_t id;       /* the low bits of the device's id, then GM__STREAM_BITS of its own */
  gm_stream_kind kind;
  bool adopted;
  bool silent;                 /* the engine lent it without leave to submit */
  bool kept;                   /* one adoption is the device's own (gm_stream_of); under the device's adopt_lock */
  _Atomic uint32_t recordings; /* captures that the engine has told gm of, and not ended */
  uint32_t adoptions;          /* adopted and not closed this often; under the device's adopt_lock */
  gm_stream *next, *prev, *next_adopted;
};

/* A pool that wants to hear of the device's streams. The device's lock is held where said: such a call takes no other
 * lock than its own.
 * may_close: asked before a stream closes that nothing can wait for. GM_OK, or the reason why it must not close.
 * closing: told before the stream is gone, with no device lock held. The pool settles what it remembers of it. False:
 *   another thread still uses the stream for a request of its own.
 * synced (device lock): the host has waited for all work submitted before the device's `order_clock` stood at `clock`.
 *   May be NULL.
 * passing (device lock): the engine says that this work is done at `point` (NULL: now). */
typedef struct gm__stream_listener {
  struct gm__stream_listener *next, *prev;
  gm_status (*may_close)(void *user, gm_stream *stream, gm_error *err);
  bool (*closing)(void *user, gm_stream *stream);
  void (*synced)(void *user, gm_stream *stream, uint64_t clock);
  gm_status (*passing)(void *user, gm_stream *stream, uint64_t clock, const gm_point *point, gm_error *err);
  void *user;
} gm__stream_listener;

void gm__device_add_listener(gm_device *device, gm__stream_listener *listener);
void gm__device_remove_listener(gm_device *device, gm__stream_listener *listener);

/* GM_OK; INVALID_ARGUMENT for NULL and for a closed stream; FORKED. Fills `err`. */
gm_status gm__stream_check(const gm_stream *stream, const char *op, gm_error *err);

/* A closed stream's name is safe until its device closes. */
bool gm__stream_is_closed(const gm_stream *stream);

/* True while the engine captures the stream. Only a lent stream costs a question to the driver. NULL: false. */
bool gm__stream_captured(const gm_stream *stream);

/* True while the engine captures any stream of the device. REQUIRES: no lock of a rank from DEVICE on. */
bool gm__device_captured(gm_device *device);

/* Whether gm can make streams of its own on this device. An engine's device may forbid it. */
bool gm__device_makes_streams(const gm_device *device);

/* Asks the backend for a stream. `native` NULL: gm's own. Discard ends a stream that no pool has heard of. */
gm_status gm__stream_open(gm_device *device, const gm_native_stream *native, gm_stream **out, gm_error *err);
void gm__stream_discard(gm_stream *stream, bool forked);

/* One adoption less, of a stream whose work is known to be done. It is not asked any more. BUSY: another thread is in
 * the driver with it; nothing has changed. */
gm_status gm__stream_let_go(gm_stream *stream, gm_error *err);

/* Tells pools that the host has waited for all work that was submitted before the order clock stood at `clock`. */
void gm__stream_tell_synced(gm_stream *stream, uint64_t clock);

/* At the device's own closing: ends the streams of gm_stream_of. */
void gm__device_release_named(gm_device *device);

/* For messages: what a device without streams of gm's own lacks, and what a caller can name instead. */
#define GM__STREAM_MISSING                                                                                     \
  "take a stream of gm's own, and none may be made: choose an adopted stream (gm_device_set_default_stream), " \
  "or adopt the device with leave for a queue of gm's own (allow_queue), where its API has that"
#define GM__STREAM_ADVICE                                                                                          \
  "name an adopted stream as `stream`, or choose one for all such calls (gm_device_set_default_stream), or adopt " \
  "the device with leave for a queue of gm's own (allow_queue)"

/* The stream that the caller chose for calls that name none; NULL: it chose none. */
gm_stream *gm__device_chosen_stream(gm_device *device);

/* True when calls that name no stream have one. */
bool gm__device_has_default_stream(gm_device *device);

/* The stream for calls that name none: the chosen one, else gm's own, created on first use. NOT_SUPPORTED, as a refusal
 * of `op`, where the engine forbids streams. */
GM__INNER gm_status gm__device_default_stream(gm_device *device, const char *op, gm_stream **out, gm_error *err);

/* True when the device made the stream with this id. */
bool gm__device_made_stream(const gm_device *device, uint64_t id);

/* The open stream with this id, or NULL. Borrowed: a listener keeps it from closing. */
gm_stream *gm__device_find_stream(gm_device *device, uint64_t id);

/* At the device's own closing: first the default stream, at the end the objects of closed streams. */
void gm__device_close_default_stream(gm_device *device);
void gm__device_release_streams(gm_device *device);

#endif
