/* Copies, fills and mappings of blocks, on the CPU backend; what the null backend answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/cpu_backend.h"
#include "gm/copy.h"
#include "support/pool_bench.h"

static gm_block take(const pool_bench *bench, uint64_t bytes, uint32_t flags) {
  gm_request request = {.bytes = bytes, .flags = flags};
  gm_block block;
  gm_acquire answer = gm_alloc(bench->pool, &request, &block);
  assert_true(answer == GM_ACQUIRE_OK || answer == GM_ACQUIRE_FRESH);
  return block;
}

static void test_bytes_go_there_and_back(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  gm_stream *stream;
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  gm_block a = take(&bench, 1024, 0), b = take(&bench, 1024, 0);
  char in[100], out[100] = {0};
  for (int i = 0; i < 100; i++) in[i] = (char)i;
  gm_point point = {0};
  pool_bench_ok(gm_block_write(bench.pool, &a, 7, in, sizeof in, stream, NULL, err));
  pool_bench_ok(gm_block_copy(bench.pool, &b, 11, bench.pool, &a, 7, sizeof in, stream, &point, err));
  pool_bench_ok(gm_point_wait(bench.device, &point, UINT64_MAX, err));
  assert_int_equal(point.stream, gm_stream_id(stream));
  gm_point_release(bench.device, &point);
  pool_bench_ok(gm_block_read(bench.pool, &b, 11, out, sizeof out, NULL, &point, err)); /* no stream: it waits */
  assert_int_equal(point.stream, 0);
  assert_memory_equal(in, out, sizeof in);
  pool_bench_ok(gm_block_fill(bench.pool, &b, 1, 7, "abc", 1, stream, NULL, err));
  pool_bench_ok(gm_block_fill(bench.pool, &b, 8, 5, "wxyz", 4, NULL, NULL, err));
  pool_bench_ok(gm_block_read(bench.pool, &b, 1, out, 12, stream, NULL, err));
  assert_memory_equal(out, "aaaaaaawxyzw", 12);
  pool_bench_ok(gm_block_write(bench.pool, &b, 1024, in, 0, stream, NULL, err)); /* nothing to do */
  assert_int_equal(gm_free(bench.pool, &a, stream), GM_OK);
  assert_int_equal(gm_free(bench.pool, &b, stream), GM_OK);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

static void test_ranges_and_arguments_are_checked(void **state) {
  (void)state;
  pool_bench bench, other;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  pool_bench_open(&other, "null", "null:capacity=64M", NULL);
  gm_stream *foreign;
  pool_bench_ok(gm_stream_create(other.device, &foreign, err));
  gm_block block = take(&bench, 1024, 0), away = take(&other, 1024, 0), gone = block;
  gone.check += 2;
  char bytes[16] = {0};
  gm_error failure;
  gm_pool *pool = bench.pool;
#define REFUSED(call) assert_int_equal((call), GM_ERR_INVALID_ARGUMENT)
  REFUSED(gm_block_write(pool, &block, 1020, bytes, 5, NULL, NULL, &failure));
  REFUSED(gm_block_write(pool, &block, UINT64_MAX, bytes, 2, NULL, NULL, &failure));
  REFUSED(gm_block_write(pool, &block, 0, bytes, UINT64_MAX, NULL, NULL, &failure));
  REFUSED(gm_block_write(pool, &block, 0, NULL, 4, NULL, NULL, &failure));
  REFUSED(gm_block_write(pool, &block, 0, bytes, 4, foreign, NULL, &failure));
  REFUSED(gm_block_write(pool, &gone, 0, bytes, 4, NULL, NULL, &failure));
  REFUSED(gm_block_write(pool, NULL, 0, bytes, 4, NULL, NULL, &failure));
  REFUSED(gm_block_write(NULL, &block, 0, bytes, 4, NULL, NULL, &failure));
  REFUSED(gm_block_read(pool, &block, 0, NULL, 4, NULL, NULL, &failure));
  REFUSED(gm_block_read(pool, &block, 1024, bytes, 1, NULL, NULL, &failure));
  REFUSED(gm_block_copy(pool, &block, 0, pool, &block, 4, 8, NULL, NULL, &failure));
  REFUSED(gm_block_copy(pool, &block, 0, other.pool, &away, 0, 8, NULL, NULL, &failure));
  REFUSED(gm_block_fill(pool, &block, 0, 8, bytes, 3, NULL, NULL, &failure));
  REFUSED(gm_block_fill(pool, &block, 0, 8, bytes, 0, NULL, NULL, &failure));
  REFUSED(gm_block_fill(pool, &block, 0, 8, bytes, 32, NULL, NULL, &failure));
  REFUSED(gm_block_fill(pool, &block, 0, 8, NULL, 4, NULL, NULL, &failure));
  assert_non_null(strstr(failure.message, "`pattern`"));
  pool_bench_ok(gm_block_copy(pool, &block, 0, pool, &block, 8, 8, NULL, NULL, err)); /* side by side */
  assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
  assert_int_equal(gm_free(other.pool, &away, NULL), GM_OK);
  pool_bench_ok(gm_stream_close(foreign, err));
  pool_bench_close(&other);
  pool_bench_close(&bench);
}

static void test_a_mapping_shows_the_memory(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  gm_block block = take(&bench, 4096, GM_HOST_VISIBLE);
  gm_error failure;
  void *pointer = NULL, *second = NULL;
  pool_bench_ok(gm_block_map(bench.pool, &block, 100, 50, GM_MAP_WRITE, NULL, &pointer, err));
  memset(pointer, 'm', 50);
  pool_bench_ok(gm_block_map(bench.pool, &block, 0, 1, GM_MAP_READ, NULL, &second, err));
  pool_bench_ok(gm_block_unmap(bench.pool, &block, second, NULL, err));
  second = NULL;
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_ERR_BUSY);
  assert_int_equal(gm_block_unmap(bench.pool, &block, &failure, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_unmap(bench.pool, &block, NULL, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_block_unmap(bench.pool, &block, pointer, NULL, err));
  assert_int_equal(gm_block_unmap(bench.pool, &block, pointer, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  char byte = 0;
  pool_bench_ok(gm_block_read(bench.pool, &block, 149, &byte, 1, NULL, NULL, err));
  assert_int_equal(byte, 'm');
  REFUSED(gm_block_map(bench.pool, &block, 4090, 7, GM_MAP_READ, NULL, &second, &failure));
  REFUSED(gm_block_map(bench.pool, &block, 0, 0, GM_MAP_READ, NULL, &second, &failure));
  REFUSED(gm_block_map(bench.pool, &block, 0, 8, 0, NULL, &second, &failure));
  REFUSED(gm_block_map(bench.pool, &block, 0, 8, 64, NULL, &second, &failure));
  REFUSED(gm_block_map(bench.pool, &block, 0, 8, GM_MAP_READ, NULL, NULL, &failure));
  assert_null(second);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* The CPU backend in disguise: memory that must be flushed and invalidated in atoms of 64 bytes. */
static struct {
  uint64_t flush_at, flush_bytes, invalidate_at, invalidate_bytes, flushes, invalidates, unmaps;
  bool visible;
  gm_status invalidate_status;
} cold;

static gm_status cold_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  gm_status status = gm__cpu_backend.memory_type(device, type, out, err);
  out->flags = GM_MEMORY_DEVICE_LOCAL | (cold.visible ? GM_MEMORY_HOST_VISIBLE : 0);
  out->atom_bytes = 64;
  return status;
}

static gm_status cold_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  gm_status status = gm__cpu_backend.memory_alloc(device, params, out, err);
  out->host = NULL;
  return status;
}

static gm_status cold_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                          uint32_t mode, void **out, gm_error *err) {
  (void)device, (void)stream, (void)bytes, (void)mode, (void)err;
  *out = (char *)(uintptr_t)memory->address + offset;
  return GM_OK;
}

static gm_status cold_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err) {
  (void)device, (void)stream, (void)memory, (void)pointer, (void)err;
  cold.unmaps++;
  return GM_OK;
}

static gm_status cold_flush(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err) {
  (void)device, (void)memory, (void)err;
  cold.flush_at = offset;
  cold.flush_bytes = bytes;
  cold.flushes++;
  return GM_OK;
}

static gm_status cold_invalidate(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                 gm_error *err) {
  (void)device, (void)memory, (void)err;
  cold.invalidate_at = offset;
  cold.invalidate_bytes = bytes;
  cold.invalidates++;
  return cold.invalidate_status;
}

static gm_memory cold_warm(const gm_memory *memory) {
  gm_memory warm = *memory;
  warm.host = (void *)(uintptr_t)memory->address;
  return warm;
}

static gm_status cold_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                           const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  gm_memory warm = cold_warm(dst);
  return gm__cpu_backend.fill(device, stream, &warm, offset, bytes, pattern, pattern_bytes, out, err);
}

static gm_status cold_read(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst, uint64_t bytes,
                           gm_backend_point *out, gm_error *err) {
  gm_memory warm = cold_warm(src);
  return gm__cpu_backend.copy_to_host(device, stream, &warm, offset, dst, bytes, out, err);
}

static void open_cold(pool_bench *bench, bool visible) {
  memset(&cold, 0, sizeof cold);
  cold.visible = visible;
  gm_backend_ops ops = gm__cpu_backend;
  ops.name = "cold";
  ops.api = GM_API_OTHER;
  ops.memory_type = cold_type;
  ops.memory_alloc = cold_alloc;
  ops.map = cold_map;
  ops.unmap = cold_unmap;
  ops.flush = cold_flush;
  ops.invalidate = cold_invalidate;
  ops.fill = cold_fill;
  ops.copy_to_host = cold_read;
  const gm_pool_params pool = {.struct_size = sizeof pool, .no_vmm = true};
  counted_services_init(&bench->host);
  gm_context_params params = {
      .struct_size = sizeof params, .services = &bench->host.services, .ignore_environment = true};
  pool_bench_ok(gm_context_create(&params, &bench->ctx, err));
  pool_bench_ok(gm_backend_register(bench->ctx, &ops, err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "cold", 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, &pool, &bench->pool, err));
}

static void test_memory_that_is_not_coherent_is_flushed_in_atoms(void **state) {
  (void)state;
  pool_bench bench;
  open_cold(&bench, true);
  gm_block block = take(&bench, 4096, GM_HOST_VISIBLE);
  void *pointer = NULL;
  gm_error failure;
  pool_bench_ok(gm_block_map(bench.pool, &block, 100, 50, GM_MAP_READ | GM_MAP_WRITE, NULL, &pointer, err));
  assert_int_equal(cold.invalidate_at, 64);
  assert_int_equal(cold.invalidate_bytes, 128);
  pool_bench_ok(gm_block_unmap(bench.pool, &block, pointer, NULL, err));
  assert_int_equal(cold.flush_at, 64);
  assert_int_equal(cold.flush_bytes, 128);
  pool_bench_ok(gm_block_map(bench.pool, &block, 0, 64, GM_MAP_READ, NULL, &pointer, err));
  pool_bench_ok(gm_block_unmap(bench.pool, &block, pointer, NULL, err));
  assert_int_equal(cold.flushes, 1); /* nothing was written */
  pool_bench_ok(gm_block_map(bench.pool, &block, 4095, 1, GM_MAP_DISCARD, NULL, &pointer, err));
  assert_int_equal(cold.invalidates, 3); /* the flush writes the rest of the atom, too */
  pool_bench_ok(gm_block_unmap(bench.pool, &block, pointer, NULL, err));
  assert_int_equal(cold.flush_at + cold.flush_bytes, 4096);
  pool_bench_ok(gm_block_map(bench.pool, &block, 4032, 64, GM_MAP_DISCARD, NULL, &pointer, err));
  assert_int_equal(cold.invalidates, 3); /* nothing of whole atoms is read */
  pool_bench_ok(gm_block_unmap(bench.pool, &block, pointer, NULL, err));
  cold.invalidate_status = GM_ERR_DRIVER;
  uint64_t unmaps = cold.unmaps;
  assert_int_equal(gm_block_map(bench.pool, &block, 0, 1, GM_MAP_READ, NULL, &pointer, &failure), GM_ERR_DRIVER);
  assert_int_equal(cold.unmaps, unmaps + 1);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK); /* not mapped */
  pool_bench_close(&bench);
}

static void test_memory_that_the_host_cannot_see(void **state) {
  (void)state;
  pool_bench bench;
  open_cold(&bench, false);
  gm_block block = take(&bench, 4096, 0);
  void *pointer = NULL;
  gm_error failure;
  assert_int_equal(gm_block_map(bench.pool, &block, 0, 1, GM_MAP_READ, NULL, &pointer, &failure), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(failure.message, "GM_HOST_VISIBLE"));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  gm_request request = {.bytes = 4096, .flags = GM_HOST_VISIBLE};
  gm_acquire answer = gm_alloc(bench.pool, &request, &block); /* the pooled one does not serve */
  assert_int_equal(answer, GM_ACQUIRE_INVALID);
  request = (gm_request){.bytes = 4096, .flags = GM_ZERO}; /* by the device, then */
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_OK);
  char byte = 'k';
  pool_bench_ok(gm_block_read(bench.pool, &block, 4095, &byte, 1, NULL, NULL, err));
  assert_int_equal(byte, 0);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_without_memory_nothing_can_be_read(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  gm_block block = take(&bench, 4096, 0);
  gm_error failure;
  char byte = 'k';
  void *pointer = NULL;
  assert_int_equal(gm_block_read(bench.pool, &block, 0, &byte, 1, NULL, NULL, &failure), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_block_map(bench.pool, &block, 0, 1, GM_MAP_READ, NULL, &pointer, &failure), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(byte, 'k');
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bytes_go_there_and_back),
      cmocka_unit_test(test_ranges_and_arguments_are_checked),
      cmocka_unit_test(test_a_mapping_shows_the_memory),
      cmocka_unit_test(test_memory_that_is_not_coherent_is_flushed_in_atoms),
      cmocka_unit_test(test_memory_that_the_host_cannot_see),
      cmocka_unit_test(test_without_memory_nothing_can_be_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
