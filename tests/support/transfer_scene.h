/* A simulated CUDA device with a ring of a few small slots, two blocks, and the host's bytes for them. For tests of
 * transfers. Needs cmocka.h, and what it needs, included before. */
#ifndef GM_TESTS_SUPPORT_TRANSFER_SCENE_H
#define GM_TESTS_SUPPORT_TRANSFER_SCENE_H

#include "core/staging/staging.h"
#include "gm/transfer.h"
#include "support/adopt_scene.h"
#include "support/cuda_fixture.h"

enum { SLOT = 65536, SLOTS = 3, BYTES = 20 * SLOT + 123 };

static gm_context *ctx;
static gm_device *device;
static gm_pool *pool;
static gm_stream *stream;
static gm_block there, beside; /* of BYTES each */
static unsigned char *up, *down;
static bool lost; /* the driver keeps what was in a lost context */

static inline void ok(gm_status status, const gm_error *err) {
  if (status) fail_msg("%s: %s", err->op, err->message);
}

static inline gm_block take(uint64_t bytes) {
  const gm_request request = {.bytes = bytes};
  gm_block block = {0};
  assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
  return block;
}

static inline int begin(void **state) {
  (void)state;
  gm_error err;
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  lost = false;
  ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  ok(gm_device_open_index(ctx, "cuda", 0, &device, &err), &err);
  ok(gm_pool_create(device, NULL, &pool, &err), &err);
  ok(gm_stream_create(device, &stream, &err), &err);
  ok(gm__staging_shape(device, SLOTS, SLOT, &err), &err);
  there = take(BYTES);
  beside = take(BYTES);
  up = malloc(BYTES);
  down = calloc(1, BYTES);
  assert_true(up && down);
  for (int i = 0; i < BYTES; i++) up[i] = (unsigned char)(i * 7 + i / 251);
  cuda_say("zero");
  return 0;
}

static inline int end(void **state) {
  (void)state;
  char left[1024];
  gm_error err;
  assert_int_equal(gm_free(pool, &there, NULL), GM_OK);
  assert_int_equal(gm_free(pool, &beside, NULL), GM_OK);
  ok(gm_stream_close(stream, &err), &err);
  ok(gm_pool_destroy(pool, &err), &err);
  adopt_scene_end(ctx, device);
  if (!lost && cuda_script("leaks", left, sizeof left)) fail_msg("left at the driver:\n%s", left);
  free(up);
  free(down);
  return 0;
}

static inline gm_copy copy_up(uint64_t at, uint64_t bytes) {
  return (gm_copy){.struct_size = sizeof(gm_copy),
                   .to = {.pool = pool, .block = &there, .offset = at},
                   .from = {.host = up, .offset = at},
                   .bytes = bytes};
}

static inline gm_copy copy_down(uint64_t at, uint64_t bytes) {
  return (gm_copy){.struct_size = sizeof(gm_copy),
                   .to = {.host = down, .offset = at},
                   .from = {.pool = pool, .block = &there, .offset = at},
                   .bytes = bytes};
}

static inline gm_copy copy_inside(uint64_t bytes) {
  return (gm_copy){.struct_size = sizeof(gm_copy),
                   .to = {.pool = pool, .block = &beside},
                   .from = {.pool = pool, .block = &there},
                   .bytes = bytes};
}

static inline gm_transfer *start(const gm_copy *copies, uint64_t count, const gm_transfer_params *params) {
  gm_transfer *t = NULL;
  gm_error err;
  ok(gm_transfer_start(device, copies, count, params, &t, &err), &err);
  return t;
}

static inline gm_transfer_stats wait_for(gm_transfer *t, gm_status expected) {
  gm_transfer_stats stats = {.struct_size = sizeof stats};
  gm_error err = {.message = ""};
  const gm_status status = gm_transfer_wait(t, UINT64_MAX, &stats, &err);
  if (status != expected) fail_msg("%s, not %s: %s", gm_status_name(status), gm_status_name(expected), err.message);
  assert_int_equal(stats.status, expected);
  return stats;
}

static inline void release(gm_transfer *t) {
  gm_error err;
  ok(gm_transfer_release(t, &err), &err);
}

static inline gm_transfer_stats run(const gm_copy *copies, uint64_t count, const gm_transfer_params *params) {
  gm_transfer *t = start(copies, count, params);
  const gm_transfer_stats stats = wait_for(t, GM_OK);
  release(t);
  return stats;
}

static inline void check_there(void) {
  gm_error err;
  memset(down, 0, BYTES);
  ok(gm_block_read(pool, &there, 0, down, BYTES, NULL, NULL, &err), &err);
  assert_memory_equal(up, down, BYTES);
}

#endif
