/* A whole backend without a driver. Its queues do their work only when somebody asks or waits, which an honest backend
 * may do. Nothing is earlier than it must be, so what passes too early shows at once. It needs no thread and no clock.
 *
 * point_done runs one job of the point's stream, and then answers. Waits, closing, maps and copies without a point run
 * what they wait for. Queues that wait for each other in a circle answer DRIVER, where others would hang.
 *
 * Lies (liars.c) are entries that replace those of lazy_ops, and may call them. */
#ifndef GM_TESTS_CTS_LIARS_LAZY_H
#define GM_TESTS_CTS_LIARS_LAZY_H

#include <pthread.h>

#include "gm/backend.h"

#define LAZY_CAPACITY (UINT64_C(256) << 20)
#define LAZY_CAPABILITIES (GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_ADDRESS | GM_CAP_MAPPING)

typedef struct lazy_driver {
  const gm_services *services;
  pthread_mutex_t lock;
  uint64_t used; /* bytes of the one device */
} lazy_driver;

typedef struct lazy_stream lazy_stream;

typedef struct lazy_device {
  const gm_services *services;
  lazy_driver *driver;
  pthread_mutex_t lock; /* of all queues */
  lazy_stream *streams; /* closed ones, too: points name them */
} lazy_device;

typedef struct lazy_job {
  unsigned char *dst;
  const unsigned char *src; /* NULL: a fill, or a wait */
  gm_rect box;
  unsigned char pattern[16];
  uint32_t pattern_bytes; /* 0 and no src: a wait */
  gm_backend_point wait;
} lazy_job;

struct lazy_stream {
  lazy_stream *next;
  lazy_job *jobs; /* ring of `room` */
  uint32_t first, count, room;
  uint64_t submitted, done; /* the point of job n is {stream, n} */
  bool running;             /* a job of it waits for another stream */
};

extern const gm_backend_ops lazy_ops;

gm_status lazy_fail(gm_error *err, gm_status status, const char *op, const char *message);

/* Entries in lazy_queue.c. */
gm_status lazy_stream_create(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err);
void lazy_stream_close(void *device, void *stream, gm_close_mode mode);
gm_status lazy_stream_flush(void *device, void *stream, gm_error *err);
gm_status lazy_stream_sync(void *device, void *stream, gm_error *err);
gm_status lazy_stream_barrier(void *device, void *stream, gm_error *err);
gm_status lazy_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err);
gm_status lazy_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err);
gm_status lazy_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err);
gm_status lazy_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err);
void lazy_point_release(void *device, const gm_backend_point *point, gm_close_mode mode);
gm_status lazy_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err);
gm_status lazy_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                              uint64_t bytes, gm_backend_point *out, gm_error *err);
gm_status lazy_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                            uint64_t bytes, gm_backend_point *out, gm_error *err);
gm_status lazy_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err);
gm_status lazy_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                    const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err);
gm_status lazy_rect_to_device(void *device, void *stream, const gm_memory *dst, const void *src, const gm_rect *rect,
                              gm_backend_point *out, gm_error *err);
gm_status lazy_rect_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                            gm_backend_point *out, gm_error *err);
gm_status lazy_rect_copy(void *device, void *stream, const gm_memory *dst, const gm_memory *src, const gm_rect *rect,
                         gm_backend_point *out, gm_error *err);
gm_status lazy_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count, gm_backend_point *out,
                         gm_error *err);

#endif
