/* Inside of a buffer: where it was wanted and where it is. */
#ifndef GM_CORE_BUFFER_BUFFER_H
#define GM_CORE_BUFFER_BUFFER_H

#include <stdatomic.h>

#include "core/base/inner.h"
#include "core/buffer/heat_queue.h"
#include "core/buffer/layout.h"
#include "core/buffer/place.h"
#include "core/staging/range.h"

struct gm_buffer {
  gm__object head;
  gm_pool *pool;
  _Atomic uint32_t references;
  uint64_t id, bytes, elements;
  gm_request wanted; /* its stream and deadline are good only during the call that brings them */
  bool relocatable;  /* gm may move it on the device while nobody has locked it */
  bool evictable;    /* gm may put it off the device while nobody has locked it */
  bool may_pin;      /* then to pinned memory, which is not where it is wanted */
  gm__place at;      /* changes only while the buffer is `moving` */
  bool fell_back;    /* it is not where it was wanted; changes with `at` */

  /* Under the lock of gm_pool.buffers (hold.c). */
  gm_buffer *prev, *next;
  uint32_t locks;   /* gm_buffer_lock, and calls that use its bytes now */
  uint32_t callers; /* of these: gm_buffer_lock */
  void *host;       /* what gm_buffer_host gave: good until the last lock goes; NULL: nobody asked */
  bool unmapping;   /* `host` was unmapped by a command, and the wait for it failed */
  bool waiting;     /* a thread waits for `uses`, which stay as they are meanwhile */
  bool asleep;      /* gm_pool_sleep has moved it to the host; changes with `at` */
  bool moving;      /* one thread has it, to move it or to end it */
  bool parked;      /* gm_buffer_move has put it off the device: gm_pool_promote leaves it there */
  bool persistent;  /* it leaves the device after all others */
  bool shown;       /* somebody got its block without a lock, and may use it still */
  uint32_t demotions;
  uint64_t heat, heat_at, demoted_at; /* heat.c */
  gm__heat_node turn;                 /* in one of the pool's queues, or passed over by a search */
  gm__layout_node layout;             /* in the pool's, while a relocatable buffer is on the device */
  gm_point *uses;                     /* what gm_buffer_unlock recorded: while `moving`, of that thread alone */
  size_t use_count, use_capacity;
};

/* gm_buffer_write and gm_buffer_read, by `what`. */
GM__INNER gm_status gm__buffer_copy(gm_buffer *buffer, uint64_t offset, uint64_t bytes, const gm__transfer *what,
                                    gm_stream *stream, gm_error *err);

#endif
