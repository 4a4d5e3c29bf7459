/* Inside of a device, for the floors above: they call the backend through it. */
#ifndef GM_CORE_DEVICE_DEVICE_H
#define GM_CORE_DEVICE_DEVICE_H

#include <stdatomic.h>

#include "core/base/map.h"
#include "core/base/thread.h"
#include "core/context/context.h"
#include "core/context/object.h"
#include "core/device/stream_table.h"
#include "core/device/traffic.h"
#include "core/discovery/registry.h"
#include "core/room/room.h"
#include "gm/backend.h"
#include "gm/device.h"
#include "gm/stream.h"

struct gm_turn;             /* turn.h */
struct gm__stream_listener; /* stream.h */

#define GM__MAX_MEMORY_TYPES 32

struct gm_device {
  gm__object head;
  gm_context *ctx;
  struct gm__driver *driver;
  const gm_backend_ops *ops; /* complete: stubs where the backend has nothing */
  void *handle;              /* the backend's device */
  gm__opened at_driver;      /* its place among the open devices of its backend */
  gm_device_info info;
  uint64_t id; /* never reused in its context */
  bool adopted;
  uint32_t type_count;
  gm_memory_type types[GM__MAX_MEMORY_TYPES];
  struct gm__held {
    _Atomic uint64_t bytes, count;
  } held[GM__MAX_MEMORY_TYPES];  /* what this device object has of each type: bytes, and driver allocations */
  gm__room room;                 /* how much of the device's own memory may be taken */
  _Atomic uint64_t own_bytes;    /* of this device object: held */
  _Atomic uint64_t pooled_bytes; /* of that: reclaimable */
  _Atomic uint64_t moves;        /* how often bytes came from the driver or went back */
  _Atomic uint32_t children;     /* pools, streams, buffers, registered ranges, reservations, watches */
  _Atomic bool lost;
  _Atomic uint64_t synthetic_bytes; /* addresses given to blocks of an API that has none */
  _Atomic uint64_t order_clock;     /* how often streams were asked how far they are (order.c) */
  _Atomic int pressure;             /* gm_pressure_level said last */
  _Atomic uint32_t watches;         /* of it and of its pools: watch.h */
  gm__mutex trim_lock;              /* held while a pool trims others */
  gm__mutex lock;                   /* streams, listeners, lazy default stream */
  gm__traffic traffic;
  gm_stream *streams;              /* list of open ones */
  gm_stream *closed, **closed_end; /* closed ones, oldest first, by `next`: their names stay safe for a while */
  uint32_t closed_count;
  struct gm__stream_listener *listeners;
  gm__mutex adopt_lock;                              /* of `adopted_streams` and their `adoptions` */
  gm_stream *adopted_streams;                        /* that somebody has adopted and not closed, by `next_adopted` */
  gm__stream_table named;                            /* streams of gm_stream_of; adopt_lock keeps writers apart */
  gm__mutex share_lock;                              /* of `opened`; held while the backend opens and closes */
  struct gm__import *opened;                         /* memory of other processes that is open: import.h */
  gm__mutex range_lock;                              /* of `host_ranges` */
  struct gm__host_range *host_ranges;                /* registered memory of the caller: host_range.h */
  struct gm__reclaimer *reclaimers, *last_reclaimer; /* under the context's lock, with the next */
  uint32_t reclaimer_count;
  gm__mutex evict_lock;            /* of `evictors`: evictor.h */
  gm__cond evict_done;             /* an evictor that is awaited has no calls left */
  struct gm_evictor *evictors;     /* in the order in which they are asked */
  _Atomic uint32_t evictor_count;  /* those that are not gone */
  uint32_t evicting;               /* those that have not ended, and the next device that has any: both under */
  struct gm_device *next_evicting; /* the context's lock */
  gm__mutex turn_lock;             /* of `turns` */
  gm__cond turn_moved;             /* another one may be first */
  struct gm_turn *turns;           /* requests that wait for memory, first come first */
  _Atomic uint32_t turn_count;     /* how many: so others know that there are any */
  gm__map mapped;            /* address to bytes of what is mapped; under the context's lock: core/device/peer.h */
  gm_stream *default_stream; /* gm's own for waiting copies; NULL until first needed */
  gm_stream *chosen_stream;  /* the caller's in its place; NULL: none. Under `lock` */
  struct gm__stock *stock;   /* of core/staging, made at first use; NULL: there is none. Under `lock` */
  gm_status (*end_stock)(gm_device *device, gm_error *err); /* before the device closes; set with `stock` */
};

/* The backend, for a call that submits to a stream or waits for one. Such a call may come back into the engine, so the
 * caller holds no lock of gm but turns (docs/design.md, "Locks"). */
static inline const gm_backend_ops *gm__submitting(const gm_device *device) {
  gm__rank_check_submit();
  return device->ops;
}

/* GM_OK; INVALID_ARGUMENT for NULL and, in debug builds, for a closed device; FORKED. Fills `err`. The backend's own
 * answers tell of a lost device. */
gm_status gm__device_check(const gm_device *device, const char *op, gm_error *err);

/* Fills [offset, offset + bytes) of the memory with zeros, on the host or on gm's own stream, and waits for that. */
gm_status gm__device_zero(gm_device *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err);

/* A failure that less memory, or memory of another kind, might not meet. */
bool gm__is_shortage(gm_status status);

#endif
