/* Pools of the strategy best_fit: blocks that are parts of segments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "core/arena/arena_alloc.h"
#include "core/device/device.h"
#include "gm/copy.h"
#include "gm/native_cpu.h"
#include "support/pool_blocks.h"
#include "support/random.h"

#define MIB (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)

/* How often a block was handed out in a step of its own, after the arena's lock was left. */
static uint32_t handed_out;
void __real_gm__arena_alloc_hand_out(const gm__grant *grant, const gm__want *want, bool fresh, gm_block *block);
void __wrap_gm__arena_alloc_hand_out(const gm__grant *grant, const gm__want *want, bool fresh, gm_block *block);

void __wrap_gm__arena_alloc_hand_out(const gm__grant *grant, const gm__want *want, bool fresh, gm_block *block) {
  handed_out++;
  __real_gm__arena_alloc_hand_out(grant, want, fresh, block);
}

static void bench_open(pool_bench *bench, const char *backend, const char *options, uint64_t max_bytes) {
  gm_pool_params params = {.struct_size = sizeof params,
                           .strategy = GM_STRATEGY_BEST_FIT,
                           .name = "best",
                           .no_vmm = true,
                           .max_bytes = max_bytes,
                           .checked = true};
  pool_bench_open(bench, backend, options, &params);
}

/* Nothing is out: a trim gives every byte back, and the pool works on. */
static void check_empty(pool_bench *bench) {
  check_trim_to_nothing(bench);
  gm_block block = take(bench, 1, NULL, GM_ACQUIRE_FRESH);
  give(bench, &block, NULL);
}

static void test_blocks_share_driver_memory(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "null", "null:capacity=64M", 0);
  gm_block blocks[100];
  for (int i = 0; i < 100; i++) {
    blocks[i] = take(&bench, 1000, NULL, i ? GM_ACQUIRE_OK : GM_ACQUIRE_FRESH);
    assert_int_equal(blocks[i].bytes, 1024);
    assert_int_equal(blocks[i].memory, blocks[0].memory);
    gm_memory memory;
    uint64_t offset;
    assert_int_equal(gm_block_memory(bench.pool, &blocks[i], &memory, &offset), GM_OK);
    assert_int_equal(memory.address + offset, blocks[i].address);
  }
  gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(stats.driver_allocs, 1);
  assert_int_equal(stats.reserved_bytes, 2 * MIB);
  assert_int_equal(stats.in_use_bytes, 100 * 1024);
  assert_int_equal(stats.reclaimable_bytes, 0);
  assert_int_equal(gm_pool_trim(bench.pool, 0), 0);
  for (int i = 0; i < 100; i += 2) give(&bench, &blocks[i], NULL);
  for (int i = 1; i < 100; i += 2) give(&bench, &blocks[i], NULL);
  assert_int_equal(pool_bench_stats(&bench).reclaimable_bytes, 2 * MIB);
  check_empty(&bench);
  pool_bench_close(&bench);
}

static void test_neighbours_are_joined(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "null", "null:capacity=64M", 0);
  gm_block parts[8], whole = take(&bench, 8 * MIB, NULL, GM_ACQUIRE_FRESH);
  give(&bench, &whole, NULL);
  for (int i = 0; i < 8; i++) parts[i] = take(&bench, MIB, NULL, GM_ACQUIRE_OK);
  static const int order[8] = {1, 3, 5, 7, 0, 6, 2, 4};
  for (int i = 0; i < 8; i++) give(&bench, &parts[order[i]], NULL);
  gm_block again = take(&bench, 8 * MIB, NULL, GM_ACQUIRE_OK);
  assert_int_equal(again.address, whole.address);
  give(&bench, &again, NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

/* Pooled memory that a request may use as it is. The device's memory has no host address. The deadline keeps the
 * request off gm_alloc's shortest way. */
static void test_pooled_memory_takes_one_step(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "null", "null:capacity=64M", 0);
  gm_block block = take(&bench, 4096, NULL, GM_ACQUIRE_FRESH);
  give(&bench, &block, NULL);
  const gm_request patient = {.bytes = 4096, .deadline_ns = SECOND};
  handed_out = 0;
  assert_int_equal(gm_alloc(bench.pool, &patient, &block), GM_ACQUIRE_OK);
  assert_int_equal(handed_out, 0);
  give(&bench, &block, NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

static void test_any_alignment(void **state) {
  (void)state;
  static const char *const backends[] = {"cpu", "null"};
  for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
    pool_bench bench;
    gm_block blocks[44];
    bench_open(&bench, backends[i], NULL, 0);
    for (uint32_t k = 0; k < 44; k++) {
      gm_request request = {.bytes = 700, .align = UINT32_C(1) << k % 22};
      assert_true(gm_alloc(bench.pool, &request, &blocks[k]) <= GM_ACQUIRE_FRESH);
      assert_int_equal(blocks[k].address % request.align, 0);
    }
    for (int k = 0; k < 44; k++) give(&bench, &blocks[k], NULL);
    check_empty(&bench);
    pool_bench_close(&bench);
  }
}

static void test_contents_natives_maps_and_pointers(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "cpu", NULL, 0);
  gm_block first = take(&bench, 5000, NULL, GM_ACQUIRE_FRESH), block;
  gm_request request = {.bytes = 3000, .flags = GM_ZERO | GM_HOST_VISIBLE};
  pool_bench_ok(gm_block_fill(bench.pool, &first, 0, first.bytes, "x", 1, NULL, NULL, err));
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_OK);
  assert_int_equal(block.memory, first.memory);
  gm_cpu_memory native = {.head = {sizeof native, GM_API_CPU}};
  pool_bench_ok(gm_block_native(bench.pool, &block, &native.head, err));
  assert_int_equal((uintptr_t)native.pointer, block.address);
  unsigned char bytes[3000];
  pool_bench_ok(gm_block_read(bench.pool, &block, 0, bytes, sizeof bytes, NULL, NULL, err));
  for (size_t i = 0; i < sizeof bytes; i++) assert_int_equal(bytes[i], 0);
  void *mapped;
  pool_bench_ok(gm_block_map(bench.pool, &block, 100, 8, GM_MAP_WRITE, NULL, &mapped, err));
  assert_int_equal((uintptr_t)mapped, block.address + 100);
  memcpy(mapped, "12345678", 8);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_ERR_BUSY);
  pool_bench_ok(gm_block_unmap(bench.pool, &block, mapped, NULL, err));
  pool_bench_ok(gm_block_copy(bench.pool, &first, 0, bench.pool, &block, 100, 8, NULL, NULL, err));
  pool_bench_ok(gm_block_read(bench.pool, &first, 0, bytes, 9, NULL, NULL, err));
  assert_memory_equal(bytes, "12345678x", 9);
  gm_error failure;
  assert_int_equal(gm_block_read(bench.pool, &first, first.bytes, bytes, 1, NULL, NULL, &failure),
                   GM_ERR_INVALID_ARGUMENT); /* the neighbour's */
  gm_block found;
  assert_int_equal(gm_block_of(bench.pool, (char *)native.pointer + 2999, &found), GM_OK);
  assert_int_equal(found.address, block.address);
  assert_int_equal(gm_free_ptr(bench.pool, (char *)native.pointer + 1, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free_ptr(bench.pool, native.pointer, 3000, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_of(bench.pool, native.pointer, &found), GM_ERR_NOT_FOUND);
  give(&bench, &first, NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

/* ---- streams, in the null backend's virtual time ---- */

static gm_stream *open_stream(pool_bench *bench) {
  gm_stream *stream;
  pool_bench_ok(gm_stream_create(bench->device, &stream, err));
  return stream;
}

/* A second of work on a block. */
static void work(pool_bench *bench, const gm_block *block, gm_stream *stream) {
  gm_point point;
  pool_bench_ok(gm_block_fill(bench->pool, block, 0, block->bytes, "w", 1, stream, &point, err));
  gm_point_release(bench->device, &point);
}

static void test_a_hole_is_its_streams_until_the_point_has_passed(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "null", "null:capacity=64M,latency=1000000000", 0);
  gm_stream *a = open_stream(&bench), *b = open_stream(&bench);
  gm_block first = take(&bench, 2 * MIB, a, GM_ACQUIRE_FRESH);
  work(&bench, &first, a);
  give(&bench, &first, a);
  gm_block own = take(&bench, MIB, a, GM_ACQUIRE_OK); /* at once, and its rest is still a's alone */
  assert_int_equal(own.address, first.address);
  gm_block other = take(&bench, MIB, b, GM_ACQUIRE_FRESH);
  assert_int_not_equal(other.memory, own.memory);
  give(&bench, &own, a);
  gm__null_advance(bench.device->handle, 10 * SECOND);
  gm_block late = take(&bench, 2 * MIB, b, GM_ACQUIRE_OK);
  assert_int_equal(late.address, first.address);
  give(&bench, &late, NULL);
  give(&bench, &other, NULL);
  pool_bench_ok(gm_stream_close(a, err));
  pool_bench_ok(gm_stream_close(b, err));
  check_empty(&bench);
  pool_bench_close(&bench);
}

/* When a stream closes, its free chunks and those of streams that are done become everybody's at once. All that touch
 * are one: on one side of a free chunk there can be several. */
static void test_a_hole_joins_all_that_touch_when_a_stream_closes(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "null", "null:capacity=64M", 0);
  gm_stream *first = open_stream(&bench), *second = open_stream(&bench);
  gm_block a = take(&bench, 1024, first, GM_ACQUIRE_FRESH), b = take(&bench, 1024, second, GM_ACQUIRE_OK);
  gm_block c = take(&bench, 1024, NULL, GM_ACQUIRE_OK);
  gm_block rest = take(&bench, 2 * MIB - 3 * 1024, NULL, GM_ACQUIRE_OK);
  give(&bench, &a, first);
  give(&bench, &b, second);
  give(&bench, &c, NULL);
  pool_bench_ok(gm_stream_sync(first, err));
  pool_bench_ok(gm_stream_close(second, err));
  gm_block all = take(&bench, 3 * 1024, NULL, GM_ACQUIRE_OK);
  assert_int_equal(all.address, a.address);
  give(&bench, &all, NULL);
  give(&bench, &rest, NULL);
  pool_bench_ok(gm_stream_close(first, err));
  check_empty(&bench);
  pool_bench_close(&bench);
}

static void test_short_of_memory_it_waits_for_another_stream(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "null", "null:latency=1000000000", 2 * MIB);
  gm_stream *a = open_stream(&bench), *b = open_stream(&bench);
  gm_block first = take(&bench, 2 * MIB, a, GM_ACQUIRE_FRESH);
  work(&bench, &first, a);
  give(&bench, &first, a);
  assert_int_equal(gm_pool_trim(bench.pool, 0), 0); /* still used */
  gm_request request = {.bytes = MIB, .stream = b};
  gm_block second = take(&bench, MIB, b, GM_ACQUIRE_NEEDS_WAIT);
  assert_int_equal(gm_block_point(bench.pool, &second).stream, gm_stream_id(a));
  request.flags = GM_INSERT_WAIT;
  gm_block third;
  assert_int_equal(gm_alloc(bench.pool, &request, &third), GM_ACQUIRE_OK);
  take(&bench, 1, NULL, GM_ACQUIRE_OVER_LIMIT);
  give(&bench, &second, b);
  give(&bench, &third, b);
  pool_bench_ok(gm_stream_close(a, err)); /* waits */
  pool_bench_ok(gm_stream_close(b, err));
  check_empty(&bench);
  pool_bench_close(&bench);
}

static void test_a_hole_of_several_streams(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "null", "null:latency=1000000000", 4 * MIB);
  gm_stream *a = open_stream(&bench), *b = open_stream(&bench), *c = open_stream(&bench);
  gm_block first = take(&bench, 4 * MIB, a, GM_ACQUIRE_FRESH);
  work(&bench, &first, a);
  assert_int_equal(gm_use_on(bench.pool, &first, b), GM_OK);
  work(&bench, &first, b);
  give(&bench, &first, a);
  take(&bench, MIB, NULL, GM_ACQUIRE_OVER_LIMIT); /* the host cannot wait */
  take(&bench, MIB, c, GM_ACQUIRE_OVER_LIMIT);    /* two points, and one can be handed out */
  gm_block second = take(&bench, MIB, a, GM_ACQUIRE_NEEDS_WAIT);
  assert_int_equal(gm_block_point(bench.pool, &second).stream, gm_stream_id(b));
  give(&bench, &second, a);
  pool_bench_ok(gm_stream_close(b, err)); /* now a's alone */
  second = take(&bench, 4 * MIB, a, GM_ACQUIRE_OK);
  give(&bench, &second, a);
  gm__null_advance(bench.device->handle, 10 * SECOND);
  second = take(&bench, 4 * MIB, c, GM_ACQUIRE_OK);
  give(&bench, &second, c);
  pool_bench_ok(gm_stream_close(a, err));
  pool_bench_ok(gm_stream_close(c, err));
  check_empty(&bench);
  pool_bench_close(&bench);
}

/* More streams than slots, each with its own hole; and slots that serve again. */
static void test_many_streams(void **state) {
  (void)state;
  enum { STREAMS = 70 };
  pool_bench bench;
  gm_stream *streams[STREAMS];
  bench_open(&bench, "null", "null:latency=1000", 0);
  for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < STREAMS; i++) {
      streams[i] = open_stream(&bench);
      gm_block block = {0};
      gm_request request = {.bytes = 10000, .stream = streams[i], .flags = GM_INSERT_WAIT};
      assert_true(gm_alloc(bench.pool, &request, &block) <= GM_ACQUIRE_FRESH);
      give(&bench, &block, streams[i]);
    }
    for (int i = 0; i < STREAMS; i++) pool_bench_ok(gm_stream_close(streams[i], err));
  }
  check_empty(&bench);
  pool_bench_close(&bench);
}

/* ---- limits and failures ---- */

static void test_a_cap_can_be_used_to_the_last_byte(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "null", NULL, 5 * MIB + 512);
  gm_block blocks[5], last, large;
  for (int i = 0; i < 5; i++) {
    gm_request request = {.bytes = MIB};
    assert_true(gm_alloc(bench.pool, &request, &blocks[i]) <= GM_ACQUIRE_FRESH);
  }
  last = take(&bench, 512, NULL, GM_ACQUIRE_FRESH);
  take(&bench, 1, NULL, GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 5 * MIB + 512);
  for (int i = 0; i < 5; i++) give(&bench, &blocks[i], NULL);
  large = take(&bench, 5 * MIB, NULL, GM_ACQUIRE_FRESH); /* smaller segments make room for it */
  assert_int_equal(pool_bench_stats(&bench).peak_reserved_bytes, 5 * MIB + 512);
  give(&bench, &large, NULL);
  give(&bench, &last, NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

static void test_a_full_device_and_its_largest_allocation(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "null", "null:capacity=9M,max_alloc=3M", 0);
  take(&bench, 4 * MIB, NULL, GM_ACQUIRE_EXHAUSTED);
  gm_block blocks[3];
  for (int i = 0; i < 3; i++) blocks[i] = take(&bench, 3 * MIB, NULL, GM_ACQUIRE_FRESH);
  gm_request request = {.bytes = 1};
  gm_block block;
  gm_acquire answer = gm_alloc(bench.pool, &request, &block);
  assert_true(answer == GM_ACQUIRE_EXHAUSTED || answer == GM_ACQUIRE_OVER_LIMIT);
  for (int i = 0; i < 3; i++) give(&bench, &blocks[i], NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

static void test_the_nth_host_allocation_fails(void **state) {
  (void)state;
  enum { COUNT = 200 };
  pool_bench bench;
  bool done = false;
  for (size_t n = 1; !done; n++) {
    bench_open(&bench, "null", "null:latency=1000", 0);
    gm_stream *stream = open_stream(&bench);
    gm_block blocks[COUNT];
    int count = 0;
    bench.host.fail_at = atomic_load(&bench.host.calls) + n;
    while (count < COUNT) {
      gm_request request = {.bytes = 300 * MIB / COUNT + (uint64_t)count, .align = 8192, .stream = stream};
      if (count % 2) request.align = 0;
      if (gm_alloc(bench.pool, &request, &blocks[count]) > GM_ACQUIRE_FRESH) break;
      count++;
    }
    for (int i = 0; i < count; i += 2) give(&bench, &blocks[i], stream);
    for (int i = 1; i < count; i += 2) give(&bench, &blocks[i], NULL);
    done = count == COUNT && atomic_load(&bench.host.calls) < bench.host.fail_at;
    bench.host.fail_at = 0;
    pool_bench_ok(gm_stream_close(stream, err));
    check_empty(&bench);
    pool_bench_close(&bench);
  }
}

static void test_segments_of_a_size_that_was_set(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open_device(&bench, "null", "null:capacity=10M");
  gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BEST_FIT, .checked = true};
  pool_bench_ok(gm_config_set(bench.ctx, "segment_size", "4M", err));
  pool_bench_ok(gm_pool_create(bench.device, &params, &bench.pool, err));
  static const uint64_t reserved[4] = {4, 8, 8, 10}; /* MiB: the last finds no room for 4 */
  gm_block blocks[4];
  for (int i = 0; i < 4; i++) {
    gm_request request = {.bytes = i == 2 ? 512 : i == 3 ? 2 * MIB : 3 * MIB};
    assert_true(gm_alloc(bench.pool, &request, &blocks[i]) <= GM_ACQUIRE_FRESH);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, reserved[i] * MIB);
  }
  for (int i = 0; i < 4; i++) give(&bench, &blocks[i], NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

static void test_by_configuration_and_beside_other_pools(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  assert_int_equal(gm_pool_strategy(bench.pool), GM_STRATEGY_BEST_FIT);
  pool_bench_ok(gm_config_set(bench.ctx, "allocation_strategy", "bucket", err));
  pool_bench_ok(gm_pool_destroy(bench.pool, err));
  pool_bench_ok(gm_pool_create(bench.device, NULL, &bench.pool, err));
  assert_int_equal(gm_pool_strategy(bench.pool), GM_STRATEGY_BUCKET);
  assert_int_equal(gm_pool_strategy(NULL), GM_STRATEGY_AUTO);
  pool_bench_ok(gm_config_set(bench.ctx, "allocation_strategy", "best_fit", err));
  pool_bench_ok(gm_pool_destroy(bench.pool, err));
  pool_bench_ok(gm_pool_create(bench.device, NULL, &bench.pool, err));
  gm_block first = take(&bench, 100, NULL, GM_ACQUIRE_FRESH), second = take(&bench, 100, NULL, GM_ACQUIRE_OK), wrapped;
  assert_int_equal(first.memory, second.memory);
  static char mine[4096];
  gm_cpu_memory native = {.head = {sizeof native, GM_API_CPU}, .pointer = mine, .bytes = sizeof mine};
  pool_bench_ok(gm_block_wrap(bench.pool, &native.head, &wrapped, err));
  give(&bench, &wrapped, NULL);
  gm_pool *bucket;
  gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BUCKET, .checked = true};
  pool_bench_ok(gm_pool_create(bench.device, &params, &bucket, err)); /* the program's word is nearer */
  gm_request request = {.bytes = 100};
  gm_block alone;
  assert_int_equal(gm_alloc(bucket, &request, &alone), GM_ACQUIRE_FRESH);
  assert_int_not_equal(alone.memory, first.memory);
  assert_int_equal(gm_free(bucket, &first, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(bucket, &alone, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(bucket, err));
  give(&bench, &first, NULL);
  give(&bench, &second, NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_blocks_share_driver_memory),
      cmocka_unit_test(test_neighbours_are_joined),
      cmocka_unit_test(test_pooled_memory_takes_one_step),
      cmocka_unit_test(test_any_alignment),
      cmocka_unit_test(test_contents_natives_maps_and_pointers),
      cmocka_unit_test(test_a_hole_is_its_streams_until_the_point_has_passed),
      cmocka_unit_test(test_a_hole_joins_all_that_touch_when_a_stream_closes),
      cmocka_unit_test(test_short_of_memory_it_waits_for_another_stream),
      cmocka_unit_test(test_a_hole_of_several_streams),
      cmocka_unit_test(test_many_streams),
      cmocka_unit_test(test_a_cap_can_be_used_to_the_last_byte),
      cmocka_unit_test(test_a_full_device_and_its_largest_allocation),
      cmocka_unit_test(test_the_nth_host_allocation_fails),
      cmocka_unit_test(test_segments_of_a_size_that_was_set),
      cmocka_unit_test(test_by_configuration_and_beside_other_pools),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
