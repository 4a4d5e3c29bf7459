/* Figures of each heap: what the driver says, what gm holds, and how far both can be trusted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/device/device.h"
#include "core/figures/memory_info.h"
#include "gm/memory_info.h"
#include "support/fake_backend.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1) << 20)

static gm_heap_info heap_at(gm_device *device, uint32_t index) {
  gm_heap_info heap = {.struct_size = sizeof heap};
  pool_bench_ok(gm_device_heap(device, index, &heap, err));
  return heap;
}

static uint32_t heap_count(gm_device *device) {
  uint32_t count = 0;
  pool_bench_ok(gm_device_heap_count(device, &count, err));
  return count;
}

static void test_one_heap_has_the_figures_of_the_device(void **state) {
  (void)state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_block block;
    const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategies[s]};
    pool_bench_open(&bench, "null", "null:capacity=64M", &params);
    const gm_request request = {.bytes = 16 * MIB};
    assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
    const gm_heap_info heap = heap_at(bench.device, 0);
    const gm_stats stats = pool_bench_stats(&bench);
    assert_int_equal(heap_count(bench.device), 1);
    assert_int_equal(heap.flags, GM_HEAP_DEVICE_LOCAL);
    assert_int_equal(heap.total_bytes, 64 * MIB);
    assert_int_equal(heap.budget_bytes, 64 * MIB);
    assert_int_equal(heap.reserved_bytes, stats.reserved_bytes);
    assert_int_equal(heap.used_bytes, stats.reserved_bytes);
    assert_int_equal(heap.free_bytes, 64 * MIB - stats.reserved_bytes);
    assert_int_equal(heap.allocation_count, stats.driver_allocs - stats.driver_frees);
    assert_int_equal(heap.free_state, GM_FIGURE_KNOWN);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    gm_pool_trim(bench.pool, 0);
    assert_int_equal(heap_at(bench.device, 0).reserved_bytes, 0);
    assert_int_equal(heap_at(bench.device, 0).allocation_count, 0);
    pool_bench_close(&bench);
  }
}

/* ---- a card with several heaps ---- */

static gm_context *fake_context(gm_device **device, gm_pool **pool) {
  const gm_context_params params = {.struct_size = sizeof params, .ignore_environment = true};
  const gm_pool_params bucket = {.struct_size = sizeof bucket, .strategy = GM_STRATEGY_BUCKET};
  gm_context *ctx = NULL;
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  pool_bench_ok(gm_backend_register(ctx, &fake_ops, err));
  pool_bench_ok(gm_device_open_index(ctx, fake_ops.name, 0, device, err));
  pool_bench_ok(gm_pool_create(*device, &bucket, pool, err));
  return ctx;
}

static void fake_end(gm_context *ctx, gm_device *device, gm_pool *pool) {
  pool_bench_ok(gm_pool_destroy(pool, err));
  pool_bench_ok(gm_device_close(device, err));
  pool_bench_ok(gm_context_destroy(ctx, err));
}

static void test_a_card_and_its_pinned_memory(void **state) {
  (void)state;
  gm_device *device;
  gm_pool *pool;
  gm_block local, pinned;
  fake_backend_reset();
  fake.type_count = 2;
  fake.types[1] = (gm_memory_type){
      .flags = GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT | GM_MEMORY_PINNED, .heap = 77, .atom_bytes = 1};
  gm_context *ctx = fake_context(&device, &pool);
  const gm_request here = {.bytes = 4 * MIB};
  const gm_request there = {.bytes = 8 * MIB, .must_be = GM_DEVICE_ACCESSIBLE, .flags = GM_HOST_VISIBLE};
  assert_true(gm_acquired(gm_alloc(pool, &here, &local)));
  assert_true(gm_acquired(gm_alloc(pool, &there, &pinned)));
  assert_int_equal(heap_count(device), 2);
  const gm_heap_info card = heap_at(device, 0), host = heap_at(device, 1);
  assert_int_equal(card.flags, GM_HEAP_DEVICE_LOCAL);
  assert_int_equal(card.reserved_bytes, 4 * MIB);
  assert_int_equal(card.total_bytes, 1000 * MIB);
  assert_int_equal(card.free_bytes, 900 * MIB);
  assert_int_equal(card.budget_bytes, 904 * MIB); /* 96 MiB are others' */
  assert_int_equal(host.flags, GM_HEAP_HOST);
  assert_int_equal(host.number, 77);
  assert_int_equal(host.reserved_bytes, 8 * MIB);
  assert_int_equal(host.allocation_count, 1);
  assert_int_equal(host.free_source, GM_SOURCE_OS);
  assert_int_not_equal(host.total_bytes, GM_UNKNOWN_BYTES);
  assert_int_equal(gm_free(pool, &local, NULL), GM_OK);
  assert_int_equal(gm_free(pool, &pinned, NULL), GM_OK);
  fake_end(ctx, device, pool);
}

/* Managed memory has no heap of its own. It counts with the card's. */
static void test_managed_memory_counts_with_the_card(void **state) {
  (void)state;
  gm_device *device;
  gm_pool *pool;
  fake_backend_reset();
  fake.type_count = 2;
  fake.types[1] = (gm_memory_type){.flags = GM_MEMORY_MANAGED, .heap = 9, .atom_bytes = 1};
  gm_context *ctx = fake_context(&device, &pool);
  atomic_store(&device->held[1].bytes, 4 * MIB);
  atomic_store(&device->held[1].count, 2);
  assert_int_equal(heap_count(device), 1);
  assert_int_equal(heap_at(device, 0).reserved_bytes, 4 * MIB);
  assert_int_equal(heap_at(device, 0).allocation_count, 2);
  atomic_store(&device->held[1].bytes, 0);
  atomic_store(&device->held[1].count, 0);
  fake_end(ctx, device, pool);
}

static void test_what_nobody_says_is_unknown(void **state) {
  (void)state;
  gm_device *device;
  gm_pool *pool;
  fake_backend_reset();
  fake.type_count = 2; /* two heaps of the card, whose free figure is of both */
  fake.types[1] = (gm_memory_type){.flags = GM_MEMORY_DEVICE_LOCAL, .heap = 1, .heap_bytes = 7 * MIB, .atom_bytes = 1};
  gm_context *ctx = fake_context(&device, &pool);
  assert_int_equal(heap_count(device), 2);
  for (uint32_t i = 0; i < 2; i++) {
    const gm_heap_info heap = heap_at(device, i);
    assert_int_equal(heap.free_state, GM_FIGURE_UNKNOWN);
    assert_int_equal(heap.free_bytes, GM_UNKNOWN_BYTES);
    assert_int_equal(heap.budget_bytes, GM_UNKNOWN_BYTES);
    assert_int_equal(heap.total_bytes, i ? 7 * MIB : GM_UNKNOWN_BYTES);
  }
  fake.figures_status = GM_ERR_DRIVER; /* figures that fail are none, and no failure of the call */
  assert_int_equal(heap_count(device), 2);
  fake_end(ctx, device, pool);
}

static void test_wrong_arguments(void **state) {
  (void)state;
  pool_bench bench;
  gm_heap_info heap = {.struct_size = sizeof heap};
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  assert_int_equal(gm_device_heap(bench.device, 1, &heap, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_heap(bench.device, 0, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_heap(NULL, 0, &heap, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_heap_count(bench.device, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_heap_count(NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  heap.struct_size = 0;
  assert_int_equal(gm_device_heap(bench.device, 0, &heap, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_close(&bench);
}

/* ---- what Vulkan says ---- */

static void test_vulkan_heaps(void **state) {
  (void)state;
  gm_raw_figures raw = {.rules = GM_RAW_VULKAN, .place = GM_RAW_OWN_MEMORY, .flags = GM_RAW_BUDGET, .heap_count = 4};
  gm__heap_figures out;
  raw.heaps[0] = (gm_raw_heap){8000 * MIB, 7000 * MIB, 1000 * MIB, 500 * MIB, 1};
  raw.heaps[1] = (gm_raw_heap){16000 * MIB, 12000 * MIB, 100 * MIB, 300 * MIB, 0}; /* the driver knows less than gm */
  raw.heaps[2] = (gm_raw_heap){256 * MIB, UINT64_MAX - 5, 0, 0, 1};                /* a negative budget */
  raw.heaps[3] = (gm_raw_heap){256 * MIB, 300 * MIB, 0, 0, 1};                     /* more than there is */
  gm__heaps_resolve(&raw, &out);
  assert_int_equal(out.count, 4);
  assert_int_equal(out.heaps[0].budget_bytes, 7000 * MIB);
  assert_int_equal(out.heaps[0].used_bytes, 1000 * MIB);
  assert_int_equal(out.heaps[0].free_bytes, 6000 * MIB);
  assert_int_equal(out.heaps[0].free_state, GM_FIGURE_ESTIMATED);
  assert_int_equal(out.heaps[0].free_source, GM_SOURCE_DRIVER);
  assert_int_equal(out.heaps[1].flags, GM_HEAP_HOST);
  assert_int_equal(out.heaps[1].free_bytes, 11700 * MIB);
  assert_int_equal(out.heaps[2].free_bytes, 0);
  assert_int_equal(out.heaps[3].budget_bytes, 256 * MIB);
  raw.flags = 0;
  gm__heaps_resolve(&raw, &out);
  assert_int_equal(out.heaps[0].budget_bytes, 6400 * MIB);
  assert_int_equal(out.heaps[0].used_bytes, 500 * MIB);
  assert_int_equal(out.heaps[0].free_source, GM_SOURCE_OWN_ACCOUNTING);
  raw.heap_count = 1000; /* cut to the array */
  gm__heaps_resolve(&raw, &out);
  assert_int_equal(out.count, GM_RAW_HEAPS_MAX);
  raw.rules = GM_RAW_CUDA;
  gm__heaps_resolve(&raw, &out);
  assert_int_equal(out.count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_heap_has_the_figures_of_the_device),
      cmocka_unit_test(test_a_card_and_its_pinned_memory),
      cmocka_unit_test(test_managed_memory_counts_with_the_card),
      cmocka_unit_test(test_what_nobody_says_is_unknown),
      cmocka_unit_test(test_wrong_arguments),
      cmocka_unit_test(test_vulkan_heaps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
