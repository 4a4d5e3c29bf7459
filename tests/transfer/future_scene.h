/* A pool under a cap, and futures of it. Needs cmocka.h included before. */
#ifndef GM_TESTS_TRANSFER_FUTURE_SCENE_H
#define GM_TESTS_TRANSFER_FUTURE_SCENE_H

#include "gm/future.h"
#include "transfer/transfer_world.h"

enum { UNIT = 1 << 20, CAP = 8 * UNIT };

typedef struct future_scene {
  transfer_world w;
  gm_device *device;
  gm_pool *pool;
  gm_error err;
} future_scene;

static inline bool scene_open(future_scene *s, const char *backend) {
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = CAP, .no_vmm = true};
  memset(s, 0, sizeof *s);
  world_begin(&s->w);
  if (!world_add(&s->w, backend, 0)) {
    world_finish(&s->w);
    return false;
  }
  s->device = s->w.ends[0].device;
  world_ok(gm_pool_create(s->device, &params, &s->pool, err));
  return true;
}

static inline void scene_finish(future_scene *s) {
  if (s->pool) world_ok(gm_pool_destroy(s->pool, err));
  world_finish(&s->w);
}

static inline gm_block scene_take(const future_scene *s, uint64_t bytes) {
  const gm_request request = {.bytes = bytes};
  gm_block block;
  const gm_acquire answer = gm_alloc(s->pool, &request, &block);
  if (!gm_acquired(answer)) fail_msg("%s", gm_acquire_name(answer));
  return block;
}

static inline void scene_give(const future_scene *s, const gm_block *block) {
  assert_int_equal(gm_free(s->pool, block, NULL), GM_OK);
}

static inline bool scene_ask(const future_scene *s, uint64_t bytes, gm_future *future) {
  const gm_request request = {.bytes = bytes};
  return gm_alloc_async(s->pool, &request, future);
}

/* The future is done, with a block, which goes back. */
static inline void scene_served(const future_scene *s, gm_future *future) {
  if (!gm_future_done(future)) fail_msg("it waits");
  if (!gm_acquired(future->answer)) fail_msg("%s", gm_acquire_name(future->answer));
  assert_int_equal(future->status, GM_OK);
  scene_give(s, &future->block);
}

static inline void scene_ended(gm_future *future, gm_acquire answer, gm_status status) {
  if (!gm_future_done(future)) fail_msg("it waits");
  assert_string_equal(gm_acquire_name(future->answer), gm_acquire_name(answer));
  assert_string_equal(gm_status_name(future->status), gm_status_name(status));
}

#endif
