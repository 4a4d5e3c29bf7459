/* Buffers: fallback from a card that is full to pinned and to plain host memory, promotion, counts. The card
 * is the CPU backend in disguise: memory of its own that can run out, and a type of pinned host memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/context/context.h"
#include "gm/buffer.h"
#include "gm/native_cpu.h"
#include "gm/tracker.h"
#include "support/pinned_card.h"
#include "support/temp_folder.h"

static gm_buffer *make(const pool_bench *bench, uint64_t bytes, gm_fallback fallback) {
  gm_buffer_params params = {
      .struct_size = sizeof params, .request = {.bytes = bytes}, .fallback = fallback, .elements = bytes / 4};
  gm_buffer *buffer = NULL;
  pool_bench_ok(gm_buffer_create(bench->pool, &params, &buffer, err));
  return buffer;
}

static void check_contents(gm_buffer *buffer, char letter) {
  char bytes[100];
  uint64_t size = gm_buffer_bytes(buffer);
  pool_bench_ok(gm_buffer_read(buffer, 0, bytes, sizeof bytes, NULL, err));
  for (size_t i = 0; i < sizeof bytes; i++) assert_int_equal(bytes[i], letter);
  pool_bench_ok(gm_buffer_read(buffer, size - 100, bytes, sizeof bytes, NULL, err));
  for (size_t i = 0; i < sizeof bytes; i++) assert_int_equal(bytes[i], letter);
}

static void fill_contents(gm_buffer *buffer, char letter) {
  char bytes[4096];
  memset(bytes, letter, sizeof bytes);
  for (uint64_t at = 0; at < gm_buffer_bytes(buffer); at += sizeof bytes) {
    pool_bench_ok(gm_buffer_write(buffer, at, bytes, sizeof bytes, NULL, err));
  }
}

static void test_a_buffer_on_the_device(void **state) {
  (void)state;
  pool_bench bench;
  open_card(&bench, 64 * MIB, 0);
  gm_buffer *buffer = make(&bench, MIB, GM_FALLBACK_HOST), *other = make(&bench, MIB, GM_FALLBACK_HOST);
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_DEVICE);
  assert_true(gm_buffer_id(buffer) != 0 && gm_buffer_id(other) != gm_buffer_id(buffer));
  gm_block block;
  pool_bench_ok(gm_buffer_block(buffer, &block, err));
  assert_int_equal(block.bytes, MIB);
  fill_contents(buffer, 'd');
  check_contents(buffer, 'd');
  pool_bench_ok(gm_buffer_promote(buffer, NULL, err)); /* it is there */
  gm_track_entry entry;
  assert_int_equal(gm_tracker_find_old(gm_pool_tracker(bench.pool), 0, &entry, 1), 2);
  assert_int_equal(entry.elements, MIB / 4);
  gm_buffer_retain(buffer);
  gm_buffer_release(buffer, NULL);
  check_contents(buffer, 'd');
  gm_buffer_release(buffer, NULL);
  gm_buffer_release(other, NULL);
  gm_buffer_release(NULL, NULL);
  assert_int_equal(pool_bench_stats(&bench).active, 0);
  assert_int_equal(pool_bench_stats(&bench).fallbacks, 0);
  assert_int_equal(atomic_load(&bench.host.lines), 0);
  pool_bench_close(&bench);
}

/* The CPU's pages are memory that gm wraps. They are the device's own all the same. */
static void test_a_buffer_on_mapped_pages_is_on_the_device(void **state) {
  (void)state;
  for (int no_vmm = 0; no_vmm < 2; no_vmm++) {
    gm_context *ctx = NULL;
    pool_bench bench = {.pool = NULL};
    const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = no_vmm};
    pool_bench_ok(gm_context_create(NULL, &ctx, err));
    pool_bench_ok(gm_device_open_index(ctx, "cpu", 0, &bench.device, err));
    pool_bench_ok(gm_pool_create(bench.device, &params, &bench.pool, err));
    gm_buffer *buffer = make(&bench, MIB, GM_FALLBACK_REFUSE);
    assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_DEVICE);
    gm_buffer_release(buffer, NULL);
    pool_bench_ok(gm_pool_destroy(bench.pool, err));
    pool_bench_ok(gm_device_close(bench.device, err));
    pool_bench_ok(gm_context_destroy(ctx, err));
  }
}

static void test_a_full_device_falls_back_to_pinned_then_to_host(void **state) {
  (void)state;
  pool_bench bench;
  open_card(&bench, MIB, 2 * MIB);
  gm_buffer *local = make(&bench, MIB, GM_FALLBACK_HOST), *pinned = make(&bench, 2 * MIB, GM_FALLBACK_HOST);
  assert_int_equal(gm_buffer_location(local), GM_LOCATION_DEVICE);
  assert_int_equal(gm_buffer_location(pinned), GM_LOCATION_PINNED);
  assert_int_equal(bench.host.last_level, GM_LOG_WARN);
  assert_non_null(strstr(bench.host.last_line, "pinned"));
  gm_buffer *host = make(&bench, MIB, GM_FALLBACK_HOST);
  assert_int_equal(gm_buffer_location(host), GM_LOCATION_HOST);
  assert_non_null(strstr(bench.host.last_line, "host memory"));
  gm_block block;
  gm_error failure;
  assert_int_equal(gm_buffer_block(host, &block, &failure), GM_ERR_NOT_SUPPORTED);
  pool_bench_ok(gm_buffer_block(pinned, &block, err));
  gm_cpu_memory native = {.head = {sizeof native, GM_API_CPU}};
  assert_int_equal(gm_buffer_object(host, &native.head, &failure), GM_ERR_NOT_SUPPORTED);
  assert_string_equal(failure.op, "gm_buffer_object");
  assert_int_equal(gm_buffer_object(NULL, &native.head, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_buffer_object(pinned, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_buffer_object(pinned, &native.head, err));
  assert_int_equal((uintptr_t)native.pointer, block.address);
  assert_int_equal(native.bytes, block.bytes);
  gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(stats.fallbacks, 2);
  assert_int_equal(stats.fallback_bytes, 3 * MIB);
  assert_int_equal(gm_tracker_count(gm_pool_tracker(bench.pool)), 3);
  gm_tracker_report(gm_pool_tracker(bench.pool), NULL, 0);
  fill_contents(host, 'h');
  fill_contents(pinned, 'p');
  check_contents(host, 'h');
  check_contents(pinned, 'p');
  assert_int_equal(gm_pool_destroy(bench.pool, &failure), GM_ERR_BUSY);
  gm_buffer_release(local, NULL);
  gm_buffer_release(pinned, NULL);
  assert_int_equal(gm_pool_destroy(bench.pool, &failure), GM_ERR_BUSY); /* the one in host memory */
  gm_buffer_release(host, NULL);
  stats = pool_bench_stats(&bench);
  assert_int_equal(stats.fallback_bytes, 0);
  assert_int_equal(stats.fallbacks, 2);
  pool_bench_close(&bench);
}

static void test_policies_refuse(void **state) {
  (void)state;
  pool_bench bench;
  open_card(&bench, 0, 0);
  gm_error failure, first;
  gm_buffer *buffer = NULL;
  gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = MIB}, .fallback = GM_FALLBACK_REFUSE};
  assert_int_equal(gm_buffer_create(bench.pool, &params, &buffer, &first), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_non_null(strstr(first.message, "last refused 1 MiB: gm_alloc: "));
  params.fallback = GM_FALLBACK_PINNED;
  assert_int_equal(gm_buffer_create(bench.pool, &params, &buffer, &failure), GM_ERR_OUT_OF_DEVICE_MEMORY);
  char *figures = strstr(first.message, " Now it has"); /* they differ from moment to moment */
  assert_non_null(figures);
  assert_memory_equal(failure.message, first.message,
                      (size_t)(figures - first.message)); /* not the next best place's */
  pool_bench_ok(gm_config_set(bench.ctx, "cpu_fallback", "false", err));
  params.fallback = GM_FALLBACK_CONFIG;
  assert_int_equal(gm_buffer_create(bench.pool, &params, &buffer, &failure), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_null(buffer);
  pool_bench_ok(gm_config_set(bench.ctx, "cpu_fallback", "true", err));
  pool_bench_ok(gm_buffer_create(bench.pool, &params, &buffer, err));
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_HOST);
  gm_buffer_release(buffer, NULL);
  assert_int_equal(pool_bench_stats(&bench).fallbacks, 1);
  pool_bench_close(&bench);
}

static void test_wrong_requests_never_fall_back(void **state) {
  (void)state;
  pool_bench bench;
  open_card(&bench, 0, 0);
  gm_error failure;
  gm_buffer *buffer = NULL;
  gm_buffer_params params = {.struct_size = sizeof params, .fallback = GM_FALLBACK_HOST};
  assert_int_equal(gm_buffer_create(bench.pool, &params, &buffer, &failure), GM_ERR_INVALID_ARGUMENT);
  params.request = (gm_request){.bytes = 64, .reserved = {1}};
  assert_int_equal(gm_buffer_create(bench.pool, &params, &buffer, &failure), GM_ERR_NOT_SUPPORTED);
  params.request = (gm_request){.bytes = UINT64_MAX};
  assert_int_equal(gm_buffer_create(bench.pool, &params, &buffer, &failure), GM_ERR_OUT_OF_HOST_MEMORY);
  params.request.bytes = UINT64_C(1) << 60; /* more than any host has: never granted in the hope that it is not used */
  assert_int_equal(gm_buffer_create(bench.pool, &params, &buffer, &failure), GM_ERR_OUT_OF_HOST_MEMORY);
  params = (gm_buffer_params){.struct_size = sizeof params, .request = {.bytes = 64}, .fallback = (gm_fallback)9};
  assert_int_equal(gm_buffer_create(bench.pool, &params, &buffer, &failure), GM_ERR_INVALID_ARGUMENT);
  params.struct_size = 8;
  assert_int_equal(gm_buffer_create(bench.pool, &params, &buffer, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_buffer_create(bench.pool, NULL, &buffer, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_buffer_create(NULL, &params, &buffer, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_null(buffer);
  pool_bench_close(&bench);
}

/* All that the host has free is granted, and no byte more. */
static void test_the_last_byte_of_the_host(void **state) {
  (void)state;
  static const char meminfo[] = "MemTotal: 8192 kB\nMemAvailable: 4096 kB\n";
  pool_bench bench;
  temp_folder folder;
  gm_error failure;
  gm_buffer *buffer = NULL;
  open_card(&bench, 0, 0);
  char *root = bench.ctx->host_root;
  temp_folder_make(&folder);
  temp_folder_dir(&folder, "proc");
  temp_folder_write(&folder, "proc/meminfo", meminfo, sizeof meminfo - 1);
  bench.ctx->host_root = folder.path;
  const gm_buffer_params params = {
      .struct_size = sizeof params, .request = {.bytes = 4 * MIB + 1}, .fallback = GM_FALLBACK_HOST};
  assert_int_equal(gm_buffer_create(bench.pool, &params, &buffer, &failure), GM_ERR_OUT_OF_HOST_MEMORY);
  buffer = make(&bench, 4 * MIB, GM_FALLBACK_HOST);
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_HOST);
  gm_buffer_release(buffer, NULL);
  bench.ctx->host_root = root;
  temp_folder_remove(&folder);
  pool_bench_close(&bench);
}

static void test_promotion_keeps_the_contents(void **state) {
  (void)state;
  pool_bench bench;
  open_card(&bench, MIB, 2 * MIB);
  gm_stream *stream;
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  gm_buffer *local = make(&bench, MIB, GM_FALLBACK_HOST);
  gm_buffer *pinned = make(&bench, 2 * MIB, GM_FALLBACK_HOST), *host = make(&bench, 2 * MIB, GM_FALLBACK_HOST);
  fill_contents(pinned, 'p');
  fill_contents(host, 'h');
  gm_error failure;
  assert_int_equal(gm_buffer_promote(host, stream, &failure), GM_ERR_OUT_OF_DEVICE_MEMORY);
  gm_buffer_release(local, NULL);
  card.local_left += 8 * MIB;
  card.break_copies = true;
  assert_int_equal(gm_buffer_promote(host, stream, &failure), GM_ERR_DRIVER);
  assert_int_equal(gm_buffer_promote(pinned, stream, &failure), GM_ERR_DRIVER);
  card.break_copies = false;
  assert_int_equal(gm_buffer_location(host), GM_LOCATION_HOST);
  check_contents(host, 'h');
  pool_bench_ok(gm_buffer_promote(host, stream, err));
  pool_bench_ok(gm_buffer_promote(pinned, NULL, err));
  assert_int_equal(gm_buffer_location(host), GM_LOCATION_DEVICE);
  assert_int_equal(gm_buffer_location(pinned), GM_LOCATION_DEVICE);
  check_contents(host, 'h');
  check_contents(pinned, 'p');
  assert_int_equal(pool_bench_stats(&bench).fallback_bytes, 0);
  assert_int_equal(pool_bench_stats(&bench).active, 2);
  assert_int_equal(gm_tracker_count(gm_pool_tracker(bench.pool)), 2);
  gm_buffer_release(host, stream);
  gm_buffer_release(pinned, stream);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

static void test_ranges_are_checked_wherever_it_lives(void **state) {
  (void)state;
  pool_bench bench;
  open_card(&bench, MIB, 0);
  gm_buffer *buffers[] = {make(&bench, 1000, GM_FALLBACK_HOST), NULL};
  card.local_left = 0;
  buffers[1] = make(&bench, 4000, GM_FALLBACK_HOST);
  assert_int_equal(gm_buffer_location(buffers[1]), GM_LOCATION_HOST);
  gm_error failure;
  char byte = 0;
  for (int i = 0; i < 2; i++) {
    uint64_t size = gm_buffer_bytes(buffers[i]);
    assert_int_equal(gm_buffer_write(buffers[i], size, &byte, 1, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_buffer_read(buffers[i], 1, &byte, UINT64_MAX, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_buffer_write(buffers[i], 0, NULL, 1, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_buffer_read(buffers[i], 0, NULL, 1, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
    pool_bench_ok(gm_buffer_write(buffers[i], size - 1, "x", 1, NULL, err));
  }
  assert_int_equal(gm_buffer_write(NULL, 0, &byte, 1, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_buffer_promote(NULL, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  gm_buffer_release(buffers[0], NULL);
  gm_buffer_release(buffers[1], NULL);
  pool_bench_close(&bench);
}

static void test_a_closed_stream_is_host_order(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  gm_stream *stream = NULL;
  gm_buffer *buffer = NULL;
  gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = 100}};
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  pool_bench_ok(gm_buffer_create(bench.pool, &params, &buffer, err));
  pool_bench_ok(gm_stream_close(stream, err));
#ifndef NDEBUG /* in release builds naming a closed stream is the caller's bug */
  gm_buffer_release(buffer, stream);
#else
  gm_buffer_release(buffer, NULL);
#endif
  pool_bench_close(&bench); /* the pool has its block back */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_buffer_on_the_device),
      cmocka_unit_test(test_a_buffer_on_mapped_pages_is_on_the_device),
      cmocka_unit_test(test_a_full_device_falls_back_to_pinned_then_to_host),
      cmocka_unit_test(test_policies_refuse),
      cmocka_unit_test(test_wrong_requests_never_fall_back),
      cmocka_unit_test(test_the_last_byte_of_the_host),
      cmocka_unit_test(test_promotion_keeps_the_contents),
      cmocka_unit_test(test_ranges_are_checked_wherever_it_lives),
      cmocka_unit_test(test_a_closed_stream_is_host_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
