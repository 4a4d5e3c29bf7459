/* How a guarded block comes out: the guard has the memory before anybody can name it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "backends/cpu/cpu_backend.h"
#include "core/base/poll.h"
#include "core/device/stream.h"
#include "core/pool/pool.h"
#include "gm/debug.h"
#include "gm/quota.h"
#include "gm/tracker.h"
#include "support/pool_bench.h"

enum { STRATEGIES = 2, BYTES = 3000, ZONE = 64, TAG = 7, QUOTA = 1 << 20, MOST_REQUESTS = 1000 };

static const gm_strategy strategies[STRATEGIES] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

/* The memory that a fill sees, while it writes to memory on its way out. */
static struct {
  gm_pool *pool; /* NULL: fills do not look */
  uint32_t fills, named;
  uint64_t in_use;
  gm_status status; /* what a fill answers */
  gm__guard *asked; /* whose guard a fill asks whether it is drained; NULL: fills do not ask */
  uint32_t drained;
} seen;

/* A fill has nobody to wait for: it is the work that is under way. */
bool __real_gm__poll_again(gm__poll *poll);
bool __wrap_gm__poll_again(gm__poll *poll);

bool __wrap_gm__poll_again(gm__poll *poll) { return !seen.asked && __real_gm__poll_again(poll); }

typedef struct guard_scene {
  pool_bench base;
  gm_stream *stream;
} guard_scene;

static gm_status seen_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                           const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  gm_block block;
  gm_stats stats = {.struct_size = sizeof stats};
  seen.fills++;
  if (seen.pool) {
    seen.named += gm_block_of(seen.pool, (unsigned char *)dst->host + offset, &block) == GM_OK;
    gm_pool_stats(seen.pool, &stats);
    seen.in_use += stats.in_use_bytes;
  }
  if (seen.asked) seen.drained += gm__guard_drained(seen.asked);
  if (seen.status) return seen.status;
  return gm__cpu_backend.fill(device, stream, dst, offset, bytes, pattern, pattern_bytes, out, err);
}

static void scene_open(guard_scene *scene, gm_strategy strategy) {
  gm_backend_ops ops = gm__cpu_backend;
  ops.name = "seen";
  ops.api = GM_API_OTHER;
  ops.fill = seen_fill;
  pool_bench *base = &scene->base;
  counted_services_init(&base->host);
  const gm_context_params context = {
      .struct_size = sizeof context, .services = &base->host.services, .ignore_environment = true};
  const gm_pool_params params = {
      .struct_size = sizeof params, .strategy = strategy, .red_zone_bytes = ZONE, .debug = GM_DEBUG_POISON};
  pool_bench_ok(gm_context_create(&context, &base->ctx, err));
  pool_bench_ok(gm_backend_register(base->ctx, &ops, err));
  pool_bench_ok(gm_device_open_index(base->ctx, "seen", 0, &base->device, err));
  pool_bench_ok(gm_pool_create(base->device, &params, &base->pool, err));
  pool_bench_ok(gm_stream_create(base->device, &scene->stream, err));
  seen.pool = NULL;
  seen.fills = seen.named = 0;
  seen.in_use = 0;
  seen.status = GM_OK;
  seen.asked = NULL;
  seen.drained = 0;
}

static void scene_close(guard_scene *scene) {
  pool_bench_ok(gm_stream_close(scene->stream, err));
  pool_bench_close(&scene->base);
}

static gm_acquire scene_alloc(const guard_scene *scene, gm_block *out) {
  const gm_request request = {.bytes = BYTES, .stream = scene->stream, .tag = TAG};
  return gm_alloc(scene->base.pool, &request, out);
}

/* Frees the block, and gives the pool its memory. */
static void scene_free(const guard_scene *scene, const gm_block *block) {
  assert_int_equal(gm_free(scene->base.pool, block, scene->stream), GM_OK);
  pool_bench_ok(gm_stream_sync(scene->stream, err));
  pool_bench_ok(gm_pool_check(scene->base.pool, NULL, err));
}

/* New memory, then the same memory again. */
static void test_zones_are_there_before_the_block(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    guard_scene scene;
    scene_open(&scene, strategies[i]);
    for (int turn = 0; turn < 2; turn++) {
      gm_block block, found;
      seen.pool = scene.base.pool;
      assert_true(scene_alloc(&scene, &block) <= GM_ACQUIRE_FRESH);
      seen.pool = NULL;
      assert_int_equal(gm_block_of(scene.base.pool, (void *)(uintptr_t)block.address, &found), GM_OK);
      assert_memory_equal(&found, &block, sizeof block);
      scene_free(&scene, &block);
    }
    assert_true(seen.fills >= 6); /* two zones and a pattern each time */
    assert_int_equal(seen.named, 0);
    assert_int_equal(seen.in_use, 0);
    scene_close(&scene);
  }
}

/* Whoever asks in the middle of the newest work is told that it is under way, also where no work came after it. */
static void test_a_guard_at_work_is_not_drained(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    guard_scene scene;
    gm_block block;
    scene_open(&scene, strategies[i]);
    assert_true(scene_alloc(&scene, &block) <= GM_ACQUIRE_FRESH);
    const uint32_t fills = seen.fills;
    seen.asked = scene.base.pool->guard;
    scene_free(&scene, &block);
    seen.asked = NULL;
    assert_true(seen.fills > fills);
    assert_int_equal(seen.drained, 0);
    assert_true(gm__guard_drained(scene.base.pool->guard));
    scene_close(&scene);
  }
}

/* A request that fails while its memory is in the guard's hands leaves nothing behind. */
static void check_refused(guard_scene *scene, const gm_stats *before) {
  gm_quota quota = {.struct_size = sizeof quota};
  const gm_stats stats = pool_bench_stats(&scene->base);
  assert_int_equal(stats.in_use_bytes, 0);
  assert_int_equal(stats.frees, before->frees);
  assert_int_equal(stats.reserved_bytes, before->reserved_bytes);
  pool_bench_ok(gm_pool_quota(scene->base.pool, TAG, &quota, err));
  assert_int_equal(quota.used_bytes, 0);
}

static void scene_warm(guard_scene *scene) {
  gm_block block;
  pool_bench_ok(gm_pool_set_quota(scene->base.pool, TAG, QUOTA, 0, 0, err));
  assert_true(scene_alloc(scene, &block) <= GM_ACQUIRE_FRESH);
  scene_free(scene, &block);
}

static void test_without_host_memory_there_is_no_block(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    guard_scene scene;
    gm_block block;
    gm_acquire answer = GM_ACQUIRE_FAILED;
    size_t requests = 0;
    scene_open(&scene, strategies[i]);
    scene_warm(&scene);
    const gm_stats before = pool_bench_stats(&scene.base);
    while (!gm_acquired(answer) && ++requests < MOST_REQUESTS) {
      scene.base.host.fail_at = atomic_load(&scene.base.host.calls) + requests;
      answer = scene_alloc(&scene, &block);
      scene.base.host.fail_at = 0;
      if (gm_acquired(answer)) break;
      check_refused(&scene, &before);
    }
    assert_true(requests > 1);
    assert_true(gm_acquired(answer));
    scene_free(&scene, &block);
    scene_close(&scene);
  }
}

static void test_without_zones_there_is_no_block(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    guard_scene scene;
    gm_block block;
    scene_open(&scene, strategies[i]);
    scene_warm(&scene);
    const gm_stats before = pool_bench_stats(&scene.base);
    seen.status = GM_ERR_DRIVER;
    assert_int_equal(scene_alloc(&scene, &block), GM_ACQUIRE_FAILED);
    seen.status = GM_OK;
    check_refused(&scene, &before);
    assert_true(gm_acquired(scene_alloc(&scene, &block)));
    scene_free(&scene, &block);
    scene_close(&scene);
  }
}

/* A byte behind the block, in the stream's order. */
static void scribble(const guard_scene *scene, const gm_block *block) {
  const gm_device *device = scene->base.device;
  gm_memory memory;
  uint64_t offset;
  assert_int_equal(gm_block_memory(scene->base.pool, block, &memory, &offset), GM_OK);
  assert_int_equal(
      device->ops->fill(device->handle, scene->stream->handle, &memory, offset + BYTES, 1, "", 1, NULL, NULL), GM_OK);
}

/* It holds where tracking began after the block came out, too. */
static void test_damage_names_the_trackers_entry(void **state) {
  (void)state;
  for (int i = 0; i < 2 * STRATEGIES; i++) {
    guard_scene scene;
    gm_block block;
    gm_track_entry entry;
    gm_check_report report = {.struct_size = sizeof report};
    scene_open(&scene, strategies[i / 2]);
    assert_true(gm_acquired(scene_alloc(&scene, &block)));
    pool_bench_ok(gm_pool_set_tracking(scene.base.pool, true, err));
    assert_int_equal(gm_tracker_find_old(gm_pool_tracker(scene.base.pool), 0, &entry, 1), 1);
    assert_int_not_equal(entry.id, 0);
    scribble(&scene, &block);
    if (i & 1) assert_int_equal(gm_free(scene.base.pool, &block, scene.stream), GM_OK);
    assert_int_equal(gm_pool_check(scene.base.pool, &report, NULL), GM_ERR_DAMAGED);
    assert_int_equal(report.last.track_id, entry.id);
    if (!(i & 1)) assert_int_equal(gm_free(scene.base.pool, &block, NULL), GM_ERR_DAMAGED);
    scene_close(&scene);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_zones_are_there_before_the_block), cmocka_unit_test(test_a_guard_at_work_is_not_drained),
      cmocka_unit_test(test_without_host_memory_there_is_no_block),
      cmocka_unit_test(test_without_zones_there_is_no_block), cmocka_unit_test(test_damage_names_the_trackers_entry)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
