/* One queue of an engine that is adopted twice on a device is one stream. For tests of a backend through gm's API.
 * Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_ADOPT_SCENE_H
#define GM_TESTS_SUPPORT_ADOPT_SCENE_H

#include <pthread.h>
#include <stdio.h>

#include "gm/context.h"
#include "gm/device.h"
#include "gm/stream.h"

enum { ADOPT_ROUNDS = 100 };

static inline void adopt_scene_ok(gm_status status, const gm_error *err) {
  if (status != GM_OK) fail_msg("%s: %s", err->op, err->message);
}

/* gm on `library` (NULL: the system's), nothing open. */
static inline gm_context *adopt_scene_context(const char *backend, const char *library) {
  gm_context *ctx = NULL;
  gm_error err;
  char libraries[1024] = "";
  if (library) snprintf(libraries, sizeof libraries, "%s=%s", backend, library);
  const gm_context_params params = {
      .struct_size = sizeof params, .backends = backend, .libraries = libraries, .ignore_environment = true};
  adopt_scene_ok(gm_context_create(&params, &ctx, &err), &err);
  return ctx;
}

static inline void adopt_scene_end(gm_context *ctx, gm_device *device) {
  gm_error err;
  adopt_scene_ok(gm_device_close(device, &err), &err);
  adopt_scene_ok(gm_context_destroy(ctx, &err), &err);
}

static inline gm_stream *adopt_scene_adopt(gm_device *device, const gm_native_stream *queue) {
  gm_stream *stream = NULL;
  gm_error err;
  adopt_scene_ok(gm_stream_adopt(device, queue, &stream, &err), &err);
  return stream;
}

static inline void adopt_scene_close(gm_stream *stream) {
  gm_error err;
  adopt_scene_ok(gm_stream_close(stream, &err), &err);
}

/* Adopted three times, closed three times; afterwards it is adopted anew. `other`: another queue, or NULL. */
static inline void adopt_scene_counts(gm_device *device, const gm_native_stream *queue, const gm_native_stream *other) {
  gm_stream *first = adopt_scene_adopt(device, queue);
  gm_stream *apart = other ? adopt_scene_adopt(device, other) : NULL;
  gm_stream *second = adopt_scene_adopt(device, queue), *third = adopt_scene_adopt(device, queue);
  const uint64_t id = gm_stream_id(first);
  assert_ptr_equal(first, second);
  assert_ptr_equal(first, third);
  assert_ptr_not_equal(first, apart);
  if (apart) adopt_scene_close(apart);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(gm_stream_id(first), id);
    assert_int_equal(gm_stream_flush(first, NULL), GM_OK);
    assert_int_equal(gm_device_close(device, NULL), GM_ERR_BUSY);
    adopt_scene_close(first);
  }
  assert_int_equal(gm_stream_flush(first, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_stream_close(first, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_stream *anew = adopt_scene_adopt(device, queue);
  assert_int_not_equal(gm_stream_id(anew), id);
  adopt_scene_close(anew);
}

/* The end of a scene with a pool that has no block in use. */
static inline void adopt_scene_end_pool(gm_context *ctx, gm_device *device, gm_pool *pool) {
  gm_error err;
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(pool, &stats);
  assert_int_equal(stats.active, 0);
  adopt_scene_ok(gm_pool_destroy(pool, &err), &err);
  adopt_scene_end(ctx, device);
}

typedef struct adopt_thread {
  gm_device *device;
  const gm_native_stream *queue;
  pthread_barrier_t *together;
  gm_stream *got[ADOPT_ROUNDS];
} adopt_thread;

/* In each round both have it at a time; then they adopt and close as it comes. */
static inline void *adopt_thread_run(void *user) {
  adopt_thread *mine = user;
  for (int i = 0; i < ADOPT_ROUNDS; i++) {
    pthread_barrier_wait(mine->together);
    mine->got[i] = adopt_scene_adopt(mine->device, mine->queue);
    pthread_barrier_wait(mine->together);
    adopt_scene_close(mine->got[i]);
  }
  for (int i = 0; i < ADOPT_ROUNDS; i++) {
    gm_stream *stream = adopt_scene_adopt(mine->device, mine->queue);
    assert_int_equal(gm_stream_flush(stream, NULL), GM_OK);
    adopt_scene_close(stream);
  }
  return NULL;
}

static inline void adopt_scene_threads(gm_device *device, const gm_native_stream *queue) {
  pthread_barrier_t together;
  pthread_t threads[2];
  adopt_thread users[2];
  assert_int_equal(pthread_barrier_init(&together, NULL, 2), 0);
  for (int i = 0; i < 2; i++) {
    users[i] = (adopt_thread){.device = device, .queue = queue, .together = &together};
    assert_int_equal(pthread_create(&threads[i], NULL, adopt_thread_run, &users[i]), 0);
  }
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < ADOPT_ROUNDS; i++) assert_ptr_equal(users[0].got[i], users[1].got[i]);
  pthread_barrier_destroy(&together);
}

#endif
