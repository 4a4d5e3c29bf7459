/* How many steps a compaction with a bound takes beside many blocks. Looks at places and at last uses are counted, but
 * for those of the trims that give back what a compaction has emptied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "core/arena/arena.h"
#include "core/device/stream.h"
#include "core/heap/pieces.h"
#include "gm/relocation.h"
#include "gm/stream.h"
#include "support/pool_bench.h"

enum { BYTES = 4096, ROW = 16, FEW = 6000, MANY = 48000, WORK = 1000, MOST = 4096 };

static struct { size_t places, uses; } looks;

uint64_t __real_gm__heap_trim(gm__heap *heap, uint64_t keep_bytes, uint64_t freed_by);
uint64_t __wrap_gm__heap_trim(gm__heap *heap, uint64_t keep_bytes, uint64_t freed_by);
uint64_t __wrap_gm__heap_trim(gm__heap *heap, uint64_t keep_bytes, uint64_t freed_by) {
  const size_t uses = looks.uses;
  const uint64_t bytes = __real_gm__heap_trim(heap, keep_bytes, freed_by);
  looks.uses = uses;
  return bytes;
}

bool __real_gm__pieces_next_place(gm__heap *heap, uint64_t memory, gm__piece_place *out);
bool __wrap_gm__pieces_next_place(gm__heap *heap, uint64_t memory, gm__piece_place *out);
bool __wrap_gm__pieces_next_place(gm__heap *heap, uint64_t memory, gm__piece_place *out) {
  looks.places++;
  return __real_gm__pieces_next_place(heap, memory, out);
}

gm__last_use __real_gm__arena_last_use(const gm__arena *arena, uint32_t number);
gm__last_use __wrap_gm__arena_last_use(const gm__arena *arena, uint32_t number);
gm__last_use __wrap_gm__arena_last_use(const gm__arena *arena, uint32_t number) {
  looks.uses++;
  return __real_gm__arena_last_use(arena, number);
}

typedef struct steps_scene {
  pool_bench bench;
  gm_stream *streams[2];
  gm_block *blocks;
  gm_buffer **buffers;
  int count;
} steps_scene;

static void work(const steps_scene *scene, const gm_stream *stream) {
  const gm_memory nowhere = {.handle = 1, .bytes = 64};
  gm_backend_point done;
  void *device = scene->bench.device->handle;
  assert_int_equal(gm__null_backend.fill(device, stream->handle, &nowhere, 0, 64, "", 1, &done, NULL), GM_OK);
  gm__null_backend.point_release(device, &done, GM_CLOSE_NORMAL);
}

/* A place in a row is free, and two streams have work there; or free; or a buffer; or a block. */
static bool is_busy(int i) { return i % 4 == 1; }
static bool is_hole(int i) { return i % ROW == 0; }
static bool is_buffer(int i) { return i % ROW == 3; }

/* Rows of blocks in small segments. One of each row is a buffer. */
static void scene_open(steps_scene *scene, int count) {
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true};
  *scene = (steps_scene){.blocks = calloc((size_t)count, sizeof *scene->blocks),
                         .buffers = calloc((size_t)count / ROW, sizeof *scene->buffers),
                         .count = count};
  assert_true(scene->blocks && scene->buffers);
  pool_bench_open_device(&scene->bench, "null", "null:capacity=16G,latency=1000000000");
  pool_bench_ok(gm_config_set(scene->bench.ctx, "segment_size", "65536", err));
  pool_bench_ok(gm_config_set(scene->bench.ctx, "track_allocations", "false", err));
  pool_bench_ok(gm_pool_create(scene->bench.device, &params, &scene->bench.pool, err));
  for (int i = 0; i < 2; i++) pool_bench_ok(gm_stream_create(scene->bench.device, &scene->streams[i], err));
  const gm_buffer_params buffer = {.struct_size = sizeof buffer, .request = {.bytes = BYTES, .flags = GM_RELOCATABLE}};
  const gm_request block = {.bytes = BYTES};
  for (int i = 0; i < count; i++) {
    if (is_buffer(i)) {
      pool_bench_ok(gm_buffer_create(scene->bench.pool, &buffer, &scene->buffers[i / ROW], err));
    } else {
      assert_in_range(gm_alloc(scene->bench.pool, &block, &scene->blocks[i]), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    }
  }
  for (int i = 0; i < WORK; i++) work(scene, scene->streams[i % 2]);
  for (int i = 0; i < count; i++) {
    if (is_busy(i)) assert_int_equal(gm_use_on(scene->bench.pool, &scene->blocks[i], scene->streams[0]), GM_OK);
    if (!is_busy(i) && !is_hole(i)) continue;
    assert_int_equal(gm_free(scene->bench.pool, &scene->blocks[i], is_busy(i) ? scene->streams[1] : NULL), GM_OK);
  }
}

static void scene_close(steps_scene *scene) {
  for (int i = 0; i < scene->count; i++) {
    if (is_buffer(i)) {
      gm_buffer_release(scene->buffers[i / ROW], NULL);
    } else if (!is_busy(i) && !is_hole(i)) {
      assert_int_equal(gm_free(scene->bench.pool, &scene->blocks[i], NULL), GM_OK);
    }
  }
  for (int i = 0; i < 2; i++) pool_bench_ok(gm_stream_close(scene->streams[i], err));
  pool_bench_close(&scene->bench);
  free(scene->blocks);
  free(scene->buffers);
}

/* The most steps of some runs. */
static size_t compact(const steps_scene *scene, uint64_t max_bytes) {
  const gm_compact_params params = {.struct_size = sizeof params, .max_bytes = max_bytes};
  gm_compact_report report = {.struct_size = sizeof report};
  size_t most = 0;
  for (int i = 0; i < 4; i++) {
    looks.places = looks.uses = 0;
    pool_bench_ok(gm_pool_compact(scene->bench.pool, &params, &report, err));
    if (looks.places + looks.uses > most) most = looks.places + looks.uses;
    printf("  %d blocks: %zu places, %zu last uses, %d moves\n", scene->count, looks.places, looks.uses,
           (int)report.moves);
  }
  return most;
}

static void test_a_bound_bounds_the_steps(void **state) {
  (void)state;
  for (int count = FEW; count <= MANY; count *= 8) {
    steps_scene scene;
    scene_open(&scene, count);
    assert_true(compact(&scene, 64 << 10) <= MOST);
    assert_true(compact(&scene, 1) <= MOST);
    scene_close(&scene);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_bound_bounds_the_steps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
