/* Inside of a device and of a stream, for the layers above: pool, buffer, transfer call the backend through these. */
#ifndef GM_CORE_DEVICE_DEVICE_H
#define GM_CORE_DEVICE_DEVICE_H

#include <stdatomic.h>

#include "core/base/map.h"
#include "core/base/thread.h"
#include "core/context/context.h"
#include "core/context/object.h"
#include "core/context/process.h"
#include "gm/device.h"
#include "gm/request.h"
#include "gm/stream.h"

struct gm__driver; /* one backend in one context: registry.h */

/* Asked before a stream closes where nothing could wait for it: GM_OK, or a reason why it must not, and nothing has
 * changed. Told when it closes, before it is gone: a pool settles what it remembers of it; no device lock is held. And
 * when the host has waited for all that was submitted before the device's `order_clock` stood at `clock`, or the engine
 * says that this is done at a point (NULL: now); under the device's lock, so it takes no other than its own. */
typedef struct gm__stream_listener {
  struct gm__stream_listener *next, *prev;
  gm_status (*may_close)(void *user, gm_stream *stream, gm_error *err);
  bool (*closing)(void *user, gm_stream *stream); /* false: another thread still uses it for a request of its own */
  void (*synced)(void *user, gm_stream *stream, uint64_t clock);
  gm_status (*passing)(void *user, gm_stream *stream, uint64_t clock, const gm_point *point, gm_error *err);
  void *user;
} gm__stream_listener;

#define GM__MAX_MEMORY_TYPES 32
#define GM__STREAM_BITS 40

struct gm_device {
  gm__object head;
  gm_context *ctx;
  struct gm__driver *driver;
  const gm_backend_ops *ops; /* complete: stubs where the backend has nothing */
  void *handle;              /* the backend's device */
  gm_device_info info;
  uint64_t id; /* never reused in its context */
  bool adopted;
  uint32_t type_count;
  gm_memory_type types[GM__MAX_MEMORY_TYPES];
  gm__used_bytes *used;          /* bytes of all contexts on the same physical device */
  _Atomic uint64_t own_bytes;    /* of this device object: held */
  _Atomic uint64_t pooled_bytes; /* of that: reclaimable */
  _Atomic uint32_t children;     /* pools, streams, buffers */
  _Atomic bool lost;
  _Atomic uint64_t synthetic_bytes; /* addresses given to blocks of an API that has none */
  _Atomic uint64_t order_clock;     /* how often streams were asked how far they are: core/pool/order.c */
  _Atomic int pressure;             /* gm_pressure_level said last */
  gm__mutex grow_lock;              /* held from asking for room until the memory is counted */
  gm__mutex trim_lock;              /* held while a pool trims others */
  gm__mutex lock;                   /* streams, listeners, lazy default stream, room */
  gm_stream *streams;               /* list of open ones */
  gm_stream *closed, **closed_end;  /* closed ones, oldest first, by `next`: their names stay safe for a while */
  uint32_t closed_count;
  gm__stream_listener *listeners;
  gm__mutex adopt_lock;       /* of `adopted_streams` and their `adoptions` */
  gm_stream *adopted_streams; /* that somebody has adopted and not closed, by `next_adopted` */
  gm__mutex share_lock;       /* of `opened`; held while the backend opens and closes */
  struct gm__opened *opened;  /* memory of other processes: core/pool/share.h */
  gm__map mapped;             /* address to bytes of what is mapped; under the context's lock: core/device/peer.h */
  gm_stream *default_stream;  /* gm's own for waiting copies; NULL until first needed */
  struct gm__room_reading {
    uint64_t at_ns;      /* 0: never read */
    uint64_t bytes;      /* what gm might still take then */
    uint64_t used_bytes; /* what gm held then */
  } room;
};

struct gm_stream {
  gm__object head;
  gm_device *device; /* NULL: it is closed */
  void *handle;      /* the backend's stream */
  uint64_t id;       /* the low bits of the device's, GM__STREAM_BITS of its own */
  gm_stream_kind kind;
  bool adopted;
  bool silent;        /* the engine lent it without leave to submit */
  uint32_t adoptions; /* adopted and not closed so often; under the device's adopt_lock */
  gm_stream *next, *prev, *next_adopted;
};

/* The backend, for a call that submits to a stream or waits for one: an engine's hook may be called, so no lock of gm
 * is held but turns (docs/design.md, "Locks"). */
static inline const gm_backend_ops *gm__submitting(const gm_device *device) {
  gm__rank_check_submit();
  return device->ops;
}

/* GM_OK; INVALID_ARGUMENT for NULL and, in debug builds, for what was closed; FORKED. Fills `err`. (A lost device is
 * told by the backend's own answers.) */
gm_status gm__device_check(const gm_device *device, const char *op, gm_error *err);
gm_status gm__stream_check(const gm_stream *stream, const char *op, gm_error *err);

/* Its name is safe until its device closes. */
bool gm__stream_is_closed(const gm_stream *stream);

/* At the device's own closing: the objects of closed streams. */
void gm__device_release_streams(gm_device *device);

/* GM_OK; INVALID_ARGUMENT for NULL, and for a point of another device. */
gm_status gm__point_check(const gm_device *device, const gm_point *point, const char *op, gm_error *err);
/* The stream of a point that may not have passed yet; NULL: it has. Borrowed, as below. */
gm_stream *gm__point_stream(gm_device *device, const gm_point *point);

/* Is the engine capturing the stream? Asks the driver for a stream that was lent, and nobody for others (NULL: false).
 */
bool gm__stream_captured(const gm_stream *stream);

/* Can gm make streams of its own here? An engine's device may forbid it. */
bool gm__device_makes_streams(const gm_device *device);

/* What is missing then, and what an engine is to do; and where a call could name a stream. */
#define GM__STREAM_MISSING                                                                                             \
  "take a stream of gm's own, and none may be made: adopt the device with leave for one (allow_queue), where its API " \
  "has that"
#define GM__STREAM_ADVICE                                                                                            \
  "name an adopted stream as `stream`, or adopt the device with leave for a queue of gm's own (allow_queue), where " \
  "its "                                                                                                             \
  "API has that"

/* gm's own stream for calls that name none: created on first use. NOT_SUPPORTED, as a refusal of `op`, where the engine
 * forbids streams. */
gm_status gm__device_default_stream(gm_device *device, const char *op, gm_stream **out, gm_error *err);

/* At the device's own closing. */
void gm__device_close_default_stream(gm_device *device);

/* The id of a new stream of the device: from it alone a point tells the points of other devices from passed ones. */
uint64_t gm__device_next_stream_id(const gm_device *device);
bool gm__device_made_stream(const gm_device *device, uint64_t id);

/* The open stream with this id, or NULL. Borrowed: the caller makes sure it is not being closed (listeners). */
gm_stream *gm__device_find_stream(gm_device *device, uint64_t id);

void gm__device_add_listener(gm_device *device, gm__stream_listener *listener);
void gm__device_remove_listener(gm_device *device, gm__stream_listener *listener);

/* One allocation at the backend of a type that satisfies `must_be` and `flags` (GM_HOST_VISIBLE, GM_COMMIT), the types
 * tried in the backend's order, falling through to the next when one is out of memory; counted in own_bytes and `used`.
 * Checks max_alloc_bytes first (ALLOCATION_TOO_LARGE). On failure `err` is that of the most telling attempt. */
typedef struct gm__device_request {
  uint64_t bytes;
  uint32_t align, usage, flags; /* flags: gm_request_flags */
  gm_must_be must_be;
  bool beside_device;  /* only memory that is not the device's own: pinned host memory */
  bool managed;        /* only memory that migrates, which nobody else gets */
  gm_share_kind share; /* made so that it can be exported in this way */
} gm__device_request;
gm_status gm__device_alloc(gm_device *device, const gm__device_request *request, gm_memory *out, gm_error *err);

/* Has the device memory of a type that the request may have? Of host memory only: all such types have a host pointer.
 */
bool gm__device_has_type(const gm_device *device, const gm__device_request *request);
bool gm__device_has_host_types_only(const gm_device *device, const gm__device_request *request);
gm_status gm__device_free(gm_device *device, const gm_memory *memory, gm_error *err);

/* Charged bytes are about to go back to the driver: the device object holds them no more, and they are room for others
 * after gm__used_left. */
void gm__device_leave(gm_device *device, uint64_t bytes);

/* Does this memory take of the device's own bytes on gm's account? Pinned host memory of a card and wrapped memory of
 * the engine do not: they are counted nowhere. */
bool gm__device_is_charged(const gm_device *device, const gm_memory *memory);

/* `bytes` of charged memory moved between "handed out" and "pooled" (negative: back into use): keeps reclaimable
 * figures right. */
void gm__device_note_pooled(gm_device *device, int64_t bytes);

/* What gm may take on the device now, with nothing given back first: min(memory_fraction × total − used by us, free −
 * min_free_bytes). UINT64_MAX where nothing is known, 0 without host memory. The figures behind it are at most 10 ms
 * old
 * (`read_now`: they are read for this call); what gm itself took and gave back since then is counted exactly. */
uint64_t gm__device_room(gm_device *device, bool read_now);

/* The same for managed allocations, read for this call. */
uint64_t gm__device_room_managed(gm_device *device);

#endif
