/* Red zones on more streams than a pool follows one by one. A free waits for none of them, and the zones are read once
 * the stream's work is done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "backends/cpu/cpu_backend.h"
#include "core/device/stream.h"
#include "gm/debug.h"
#include "support/pool_bench.h"

enum { STRATEGIES = 2, SLOTS = 63, STREAMS = 80, BYTES = 1 << 20, SMALL = 4096 };

static const gm_strategy strategies[STRATEGIES] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

static struct {
  bool late; /* no point is reached as far as gm can see */
  int waits; /* of the host, for streams and points */
} late_shape;

typedef struct zone_scene {
  pool_bench base;
  gm_stream *streams[STREAMS];
} zone_scene;

static gm_status late_sync(void *device, void *stream, gm_error *err) {
  late_shape.waits++;
  return gm__cpu_backend.stream_sync(device, stream, err);
}

static gm_status late_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  late_shape.waits++;
  if (late_shape.late) return GM_ERR_TIMEOUT;
  return gm__cpu_backend.point_wait(device, point, timeout_ns, err);
}

static gm_status late_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  const gm_status status = gm__cpu_backend.point_done(device, point, out, err);
  *out = *out && !late_shape.late;
  return status;
}

static gm_block take(const zone_scene *scene, gm_stream *stream, uint64_t bytes) {
  const gm_request request = {.bytes = bytes, .stream = stream};
  gm_block block = {0};
  assert_true(gm_alloc(scene->base.pool, &request, &block) <= GM_ACQUIRE_FRESH);
  return block;
}

static void sync_all(const zone_scene *scene) {
  for (int i = 0; i < STREAMS; i++) pool_bench_ok(gm_stream_sync(scene->streams[i], err));
}

/* All slots are taken. */
static void scene_open(zone_scene *scene, gm_strategy strategy) {
  gm_backend_ops ops = gm__cpu_backend;
  ops.name = "late";
  ops.api = GM_API_OTHER;
  ops.stream_sync = late_sync;
  ops.point_wait = late_wait;
  ops.point_done = late_done;
  late_shape.late = false;
  counted_services_init(&scene->base.host);
  const gm_context_params context = {
      .struct_size = sizeof context, .services = &scene->base.host.services, .ignore_environment = true};
  const gm_pool_params params = {
      .struct_size = sizeof params, .strategy = strategy, .red_zone_bytes = 64, .debug = GM_DEBUG_POISON};
  pool_bench_ok(gm_context_create(&context, &scene->base.ctx, err));
  pool_bench_ok(gm_backend_register(scene->base.ctx, &ops, err));
  pool_bench_ok(gm_device_open_index(scene->base.ctx, "late", 0, &scene->base.device, err));
  pool_bench_ok(gm_pool_create(scene->base.device, &params, &scene->base.pool, err));
  for (int i = 0; i < STREAMS; i++) pool_bench_ok(gm_stream_create(scene->base.device, &scene->streams[i], err));
  for (int i = 0; i < SLOTS; i++) {
    const gm_block block = take(scene, scene->streams[i], SMALL);
    assert_int_equal(gm_free(scene->base.pool, &block, scene->streams[i]), GM_OK);
  }
  sync_all(scene);
  pool_bench_ok(gm_pool_check(scene->base.pool, NULL, err));
  late_shape.waits = 0;
}

static void scene_close(zone_scene *scene) {
  for (int i = 0; i < STREAMS; i++) pool_bench_ok(gm_stream_close(scene->streams[i], err));
  pool_bench_close(&scene->base);
}

/* Nobody else gets what work may still use. */
static void check_kept(const zone_scene *scene, const gm_block *freed) {
  gm_block blocks[STREAMS];
  for (int i = SLOTS; i < STREAMS; i++) {
    blocks[i] = take(scene, NULL, BYTES);
    for (int other = SLOTS; other < STREAMS; other++) assert_true(blocks[i].address != freed[other].address);
  }
  for (int i = SLOTS; i < STREAMS; i++) assert_int_equal(gm_free(scene->base.pool, &blocks[i], NULL), GM_OK);
}

static void test_no_free_waits(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    zone_scene scene;
    gm_block blocks[STREAMS];
    scene_open(&scene, strategies[i]);
    late_shape.late = true;
    for (int at = SLOTS; at < STREAMS; at++) {
      blocks[at] = take(&scene, scene.streams[at], BYTES);
      assert_int_equal(gm_free(scene.base.pool, &blocks[at], scene.streams[at]), GM_OK);
    }
    assert_int_equal(late_shape.waits, 0);
    check_kept(&scene, blocks);
    sync_all(&scene);
    late_shape.late = false;
    pool_bench_ok(gm_pool_check(scene.base.pool, NULL, err));
    gm_pool_trim(scene.base.pool, 0);
    assert_int_equal(pool_bench_stats(&scene.base).reserved_bytes, 0);
    scene_close(&scene);
  }
}

static void scribble(const zone_scene *scene, const gm_block *block, gm_stream *stream) {
  const unsigned char byte = 1;
  gm_memory memory = {0};
  uint64_t offset = 0;
  const gm_device *device = scene->base.device;
  assert_int_equal(gm_block_memory(scene->base.pool, block, &memory, &offset), GM_OK);
  assert_int_equal(
      device->ops->fill(device->handle, stream->handle, &memory, offset + block->bytes, 1, &byte, 1, NULL, NULL),
      GM_OK);
}

static void test_damage_is_found(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    zone_scene scene;
    gm_check_report report = {.struct_size = sizeof report};
    scene_open(&scene, strategies[i]);
    gm_stream *late = scene.streams[SLOTS + 3];
    const gm_block block = take(&scene, late, BYTES);
    scribble(&scene, &block, late);
    late_shape.late = true;
    assert_int_equal(gm_free(scene.base.pool, &block, late), GM_OK);
    late_shape.late = false;
    assert_int_equal(gm_pool_check(scene.base.pool, &report, NULL), GM_ERR_DAMAGED);
    assert_int_equal(report.damaged, 1);
    assert_int_equal(report.last.kind, GM_DAMAGE_BEHIND);
    assert_int_equal(report.last.offset, BYTES);
    scene_close(&scene);
  }
}

static void test_without_host_memory_nothing_changes(void **state) {
  (void)state;
  for (int i = 0; i < STRATEGIES; i++) {
    zone_scene scene;
    scene_open(&scene, strategies[i]);
    gm_stream *late = scene.streams[SLOTS];
    const gm_block block = take(&scene, late, BYTES);
    scene.base.host.fail_at = scene.base.host.calls + 1;
    assert_int_equal(gm_free(scene.base.pool, &block, late), GM_ERR_OUT_OF_HOST_MEMORY);
    scene.base.host.fail_at = 0;
    assert_int_equal(gm_free(scene.base.pool, &block, late), GM_OK);
    scene_close(&scene);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_free_waits), cmocka_unit_test(test_damage_is_found),
                                     cmocka_unit_test(test_without_host_memory_nothing_changes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
