/* A pool of fixed sizes on any device: all that a stream takes and gives is there, and no driver is asked for memory.
 * Needs cmocka.h. */
#ifndef GM_TESTS_SUPPORT_FIXED_SCENE_H
#define GM_TESTS_SUPPORT_FIXED_SCENE_H

#include "gm/warm_up.h"
#include "support/pool_bench.h"

enum { FIXED_SCENE_BYTES = 64 << 10, FIXED_SCENE_TURNS = 20 };

static inline void fixed_scene_turn(gm_pool *pool, gm_stream *stream, uint64_t bytes) {
  gm_block blocks[3];
  for (int i = 0; i < 2; i++) {
    const gm_request request = {.bytes = bytes, .stream = stream, .flags = GM_INSERT_WAIT};
    assert_int_equal(gm_alloc(pool, &request, &blocks[i]), GM_ACQUIRE_OK);
    assert_true(blocks[i].bytes >= FIXED_SCENE_BYTES);
  }
  const gm_request third = {.bytes = bytes, .stream = stream, .flags = GM_INSERT_WAIT};
  assert_int_equal(gm_alloc(pool, &third, &blocks[2]), GM_ACQUIRE_OVER_LIMIT);
  for (int i = 0; i < 2; i++) assert_int_equal(gm_free(pool, &blocks[i], i ? NULL : stream), GM_OK);
}

/* `zero` and `asked` (NULL: nobody counts) set the driver's own count of calls for memory to nothing, and read it. */
static inline void fixed_scene_run(gm_device *device, gm_stream *stream, void (*zero)(void), long (*asked)(void)) {
  static const gm_warm_up sizes[] = {{FIXED_SCENE_BYTES, 2}, {1 << 20, 1}};
  const gm_pool_params params = {
      .struct_size = sizeof params, .strategy = GM_STRATEGY_FIXED, .sizes = sizes, .size_count = 2};
  gm_stats warm = {.struct_size = sizeof warm}, now = {.struct_size = sizeof now};
  gm_pool *pool;
  pool_bench_ok(gm_pool_create(device, &params, &pool, err));
  assert_int_equal(gm_pool_stats(pool, &warm), GM_OK);
  if (zero) zero();
  for (uint64_t i = 0; i < FIXED_SCENE_TURNS; i++) fixed_scene_turn(pool, stream, FIXED_SCENE_BYTES - i);
  if (asked) assert_int_equal(asked(), 0);
  assert_int_equal(gm_pool_stats(pool, &now), GM_OK);
  assert_int_equal(warm.driver_allocs, 3);
  assert_int_equal(now.driver_allocs, 3);
  assert_int_equal(now.driver_frees, 0);
  assert_int_equal(now.reserved_bytes, warm.reserved_bytes);
  pool_bench_ok(gm_stream_sync(stream, err));
  pool_bench_ok(gm_pool_destroy(pool, err));
}

#endif
