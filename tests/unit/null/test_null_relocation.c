/* Compaction and sleep on the null backend, on segments and on pages. It has no bytes to look at, so contents cannot
 * leave the device. Where blocks lie, and what is given back, is as on every other device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/relocation_bench.h"

static void null_open(pool_bench *bench, bool pages) {
  const gm_pool_params shape = {.struct_size = sizeof shape, .no_vmm = !pages};
  relocation_unread = true;
  pool_bench_open(bench, "null", "null:capacity=256M", &shape);
}

static void test_buffers_move_within_the_device(void **state) {
  (void)state;
  for (int pages = 0; pages < 2; pages++) {
    pool_bench bench;
    null_open(&bench, pages);
    relocation_frees_segments(bench.pool);
    relocation_at_random(bench.pool, 7, 6);
    pool_bench_close(&bench);
  }
}

static void test_contents_cannot_leave(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  null_open(&bench, true);
  gm_buffer *buffer = relocation_make(bench.pool, 100 * RELOCATION_KIB, GM_RELOCATABLE);
  assert_int_equal(gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, &failure), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_pool_sleep(bench.pool, true, NULL, NULL, &failure), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_pool_sleep_whole(bench.pool, true, NULL, NULL, &failure), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_DEVICE);
  assert_true(pool_bench_stats(&bench).in_use_bytes > 0);
  gm_buffer_release(buffer, NULL);
  pool_bench_close(&bench);
}

static void test_pools_sleep_without_contents(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block, before, after;
  gm_memory memory;
  uint64_t freed = 0, offset;
  const gm_request request = {.bytes = 5 * RELOCATION_KIB * RELOCATION_KIB};
  null_open(&bench, true);
  gm_buffer *buffer = relocation_make(bench.pool, 100 * RELOCATION_KIB, 0);
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  pool_bench_ok(gm_buffer_block(buffer, &before, err));
  pool_bench_ok(gm_pool_sleep_whole(bench.pool, false, NULL, &freed, err));
  assert_true(freed >= request.bytes);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, freed);
  pool_bench_ok(gm_buffer_block(buffer, &after, err));
  assert_memory_equal(&after, &before, sizeof before);
  assert_int_equal(gm_block_memory(bench.pool, &block, &memory, &offset), GM_OK);
  assert_int_equal(memory.address + offset, block.address);
  gm_buffer_release(buffer, NULL);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_buffers_sleep_by_handle_without_contents(void **state) {
  (void)state;
  pool_bench bench;
  null_open(&bench, false);
  gm_buffer *buffer = relocation_make(bench.pool, 100 * RELOCATION_KIB, 0);
  pool_bench_ok(gm_pool_sleep(bench.pool, false, NULL, NULL, err));
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_HOST);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_DEVICE);
  gm_buffer_release(buffer, NULL);
  pool_bench_close(&bench);
}

/* Handles are as large as these buffers, so each hole's pages are mapped elsewhere, and no buffer has to move. */
static void test_whole_pages_need_no_copy(void **state) {
  (void)state;
  enum { COUNT = 28 };
  const uint64_t page = 2 * RELOCATION_KIB * RELOCATION_KIB;
  const gm_request large = {.bytes = COUNT / 2 * page};
  pool_bench bench;
  gm_buffer *buffers[COUNT];
  gm_block block;
  relocation_unread = true;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  for (int i = 0; i < COUNT; i++) buffers[i] = relocation_make(bench.pool, page, GM_RELOCATABLE);
  for (int i = 1; i < COUNT; i += 2) gm_buffer_release(buffers[i], NULL);
  const gm_compact_report report = relocation_compact(bench.pool);
  assert_int_equal(report.moves, 0);
  assert_true(report.freed_bytes >= large.bytes);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, large.bytes);
  assert_true(gm_acquired(gm_alloc(bench.pool, &large, &block)));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  for (int i = 0; i < COUNT; i += 2) gm_buffer_release(buffers[i], NULL);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_buffers_move_within_the_device),
      cmocka_unit_test(test_whole_pages_need_no_copy),
      cmocka_unit_test(test_contents_cannot_leave),
      cmocka_unit_test(test_pools_sleep_without_contents),
      cmocka_unit_test(test_buffers_sleep_by_handle_without_contents),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
