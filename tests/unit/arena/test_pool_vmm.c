/* Pools on mapped pages: blocks that lie in a range of addresses behind which memory comes and goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "core/base/thread.h"
#include "core/device/device.h"
#include "gm/copy.h"
#include "support/pool_blocks.h"
#include "support/random.h"

#define MIB (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)

/* The null backend with a script: which of its calls fails, and how often each was made. */
static struct {
  uint64_t reserves, creates, destroys, maps, unmaps, fail_map, fail_access, fail_unmap;
  bool without_ranges;
} script;

static gm_status script_fail(gm_error *err) {
  if (err) *err = (gm_error){.status = GM_ERR_DRIVER, .message = "as it was told"};
  return GM_ERR_DRIVER;
}

static gm_status script_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out, gm_error *err) {
  script.reserves++;
  return script.without_ranges ? script_fail(err) : gm__null_backend.vmm_reserve(device, bytes, align, out, err);
}

static gm_status script_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out, gm_error *err) {
  const gm_status status = gm__null_backend.vmm_create(device, props, bytes, out, err);
  script.creates += status == GM_OK;
  return status;
}

static gm_status script_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  script.destroys++;
  return gm__null_backend.vmm_destroy(device, handle, bytes, mode, err);
}

static gm_status script_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                            gm_error *err) {
  if (++script.maps == script.fail_map) return script_fail(err);
  return gm__null_backend.vmm_map(device, address, bytes, handle, offset, err);
}

static gm_status script_access(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  if (script.maps == script.fail_access) return script_fail(err);
  return gm__null_backend.vmm_access(device, address, bytes, err);
}

static gm_status script_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  if (++script.unmaps == script.fail_unmap) return script_fail(err);
  return gm__null_backend.vmm_unmap(device, address, bytes, err);
}

static void bench_open(pool_bench *bench, const char *options, uint64_t max_bytes) {
  memset(&script, 0, sizeof script);
  gm_backend_ops ops = gm__null_backend;
  ops.name = "script";
  ops.api = GM_API_OTHER;
  ops.vmm_reserve = script_reserve;
  ops.vmm_create = script_create;
  ops.vmm_destroy = script_destroy;
  ops.vmm_map = script_map;
  ops.vmm_access = script_access;
  ops.vmm_unmap = script_unmap;
  counted_services_init(&bench->host);
  gm_context_params context = {.struct_size = sizeof context,
                               .services = &bench->host.services,
                               .backend_options = options,
                               .ignore_environment = true};
  gm_pool_params params = {.struct_size = sizeof params, .name = "pages", .max_bytes = max_bytes};
  pool_bench_ok(gm_context_create(&context, &bench->ctx, err));
  pool_bench_ok(gm_backend_register(bench->ctx, &ops, err));
  pool_bench_ok(gm_config_set(bench->ctx, "memory_fraction", "1", err));
  pool_bench_ok(gm_config_set(bench->ctx, "min_free_bytes", "0", err));
  pool_bench_ok(gm_config_set(bench->ctx, "track_allocations", "false", err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "script", 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, &params, &bench->pool, err));
}

/* Nothing is out: a trim gives every byte back, and every page. */
static void check_empty(pool_bench *bench) {
  check_trim_to_nothing(bench);
  assert_int_equal(script.creates, script.destroys);
}

static void test_blocks_lie_in_one_range(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "script:capacity=256M", 0);
  gm_block first = take(&bench, MIB, NULL, GM_ACQUIRE_FRESH), second = take(&bench, 3 * MIB, NULL, GM_ACQUIRE_FRESH);
  assert_int_equal(first.memory, second.memory);
  gm_memory memory;
  uint64_t offset;
  assert_int_equal(gm_block_memory(bench.pool, &second, &memory, &offset), GM_OK);
  assert_int_equal(memory.address + offset, second.address);
  assert_int_equal(pool_bench_stats(&bench).driver_allocs, script.creates);
  gm_block found;
  assert_int_equal(gm_block_of(bench.pool, (void *)(uintptr_t)(second.address + 2 * MIB), &found), GM_OK);
  assert_int_equal(found.address, second.address);
  give(&bench, &first, NULL);
  give(&bench, &second, NULL);
  assert_int_equal(pool_bench_stats(&bench).reclaimable_bytes, pool_bench_stats(&bench).reserved_bytes);
  check_empty(&bench);
  pool_bench_close(&bench);
}

/* Holes that are too small one by one give their pages up, and the device has no more than what is in use. */
static void test_a_full_device_moves_pages_together(void **state) {
  (void)state;
  enum { COUNT = 32 };
  pool_bench bench;
  gm_block blocks[COUNT];
  bench_open(&bench, "script:capacity=64M", 0);
  for (int i = 0; i < COUNT; i++) {
    gm_request request = {.bytes = 2 * MIB};
    assert_true(gm_alloc(bench.pool, &request, &blocks[i]) <= GM_ACQUIRE_FRESH);
  }
  take(&bench, 1, NULL, GM_ACQUIRE_OVER_LIMIT);
  for (int i = 0; i < COUNT; i += 2) give(&bench, &blocks[i], NULL);
  gm_block large = take(&bench, 32 * MIB, NULL, GM_ACQUIRE_FRESH);
  gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(stats.reserved_bytes, 64 * MIB);
  assert_int_equal(stats.peak_reserved_bytes, 64 * MIB);
  for (int i = 1; i < COUNT; i += 2) {
    assert_true(large.address + large.bytes <= blocks[i].address || blocks[i].address + 2 * MIB <= large.address);
    give(&bench, &blocks[i], NULL);
  }
  give(&bench, &large, NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

/* Memory that a stream may still use is not unmapped. */
static void test_pages_of_a_busy_stream_stay(void **state) {
  (void)state;
  pool_bench bench;
  gm_stream *stream, *other;
  gm_point point;
  bench_open(&bench, "script:capacity=16M,latency=1000000000", 0);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  pool_bench_ok(gm_stream_create(bench.device, &other, err));
  gm_block block = take(&bench, 10 * MIB, stream, GM_ACQUIRE_FRESH);
  pool_bench_ok(gm_block_fill(bench.pool, &block, 0, block.bytes, "w", 1, stream, &point, err));
  gm_point_release(bench.device, &point);
  give(&bench, &block, stream);
  assert_true(gm_pool_trim(bench.pool, 0) <= 6 * MIB);
  take(&bench, 12 * MIB, other, GM_ACQUIRE_OVER_LIMIT);
  assert_true(pool_bench_stats(&bench).reserved_bytes >= 10 * MIB);
  gm__null_advance(bench.device->handle, 10 * SECOND);
  gm_block late = take(&bench, 12 * MIB, other, GM_ACQUIRE_FRESH); /* 2 MiB more */
  give(&bench, &late, NULL);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_ok(gm_stream_close(other, err));
  check_empty(&bench);
  pool_bench_close(&bench);
}

static void test_without_ranges_it_takes_driver_allocations(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "script:capacity=64M", 0);
  script.without_ranges = true;
  gm_request request = {.bytes = 1000};
  gm_block block;
  assert_true(gm_alloc(bench.pool, &request, &block) <= GM_ACQUIRE_FRESH);
  assert_int_equal(script.creates, 0);
  give(&bench, &block, NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

/* It would fit in no range, however many there were. */
static void test_a_block_larger_than_any_range(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "script:capacity=4096G", 0);
  const gm_block small = take(&bench, MIB, NULL, GM_ACQUIRE_FRESH);
  assert_int_equal(script.reserves, 1);
  for (int i = 0; i < 3; i++) {
    const gm_block large = take(&bench, 700 * 1024 * MIB, NULL, GM_ACQUIRE_FRESH);
    give(&bench, &large, NULL);
    gm_pool_trim(bench.pool, 0);
  }
  assert_int_equal(script.reserves, 1);
  give(&bench, &small, NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

/* A cap smaller than a page leaves room for driver allocations. */
static void test_a_cap_below_a_page(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "script:capacity=64M", 100000);
  gm_block block = take(&bench, 90000, NULL, GM_ACQUIRE_FRESH);
  take(&bench, 20000, NULL, GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(script.creates, 0);
  give(&bench, &block, NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

/* A cap that is no whole number of pages can be used up all the same. */
static void test_a_cap_of_broken_pages(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "script:capacity=64M", 3 * MIB);
  gm_block block = take(&bench, 3 * MIB, NULL, GM_ACQUIRE_FRESH);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 3 * MIB);
  give(&bench, &block, NULL);
  block = take(&bench, MIB, NULL, GM_ACQUIRE_OK);
  give(&bench, &block, NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

/* A request that cannot be served takes nothing from the driver, and nothing that is kept goes back for it. */
static void test_a_refused_request_moves_nothing(void **state) {
  (void)state;
  const struct { uint64_t cap, bytes; } cases[] = {{0, 100 * MIB}, {16 * MIB, 27 * MIB}, {16 * MIB, UINT64_C(1) << 41}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pool_bench bench;
    bench_open(&bench, "script:capacity=64M", cases[i].cap);
    take(&bench, cases[i].bytes, NULL, GM_ACQUIRE_OVER_LIMIT);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
    gm_block block = take(&bench, 8 * MIB, NULL, GM_ACQUIRE_FRESH);
    give(&bench, &block, NULL);
    const uint64_t creates = script.creates;
    take(&bench, cases[i].bytes, NULL, GM_ACQUIRE_OVER_LIMIT);
    assert_int_equal(script.creates, creates);
    assert_int_equal(script.destroys, 0);
    check_empty(&bench);
    pool_bench_close(&bench);
  }
}

/* Pages that were mapped for a request which was then refused go back. */
static void test_a_failed_request_leaves_nothing(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, "script:capacity=64M", 0);
  gm_block block = take(&bench, MIB, NULL, GM_ACQUIRE_FRESH);
  const uint64_t reserved = pool_bench_stats(&bench).reserved_bytes;
  script.fail_map = script.maps + 3;
  take(&bench, 24 * MIB, NULL, GM_ACQUIRE_FAILED);
  assert_true(script.maps == script.fail_map);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, reserved);
  give(&bench, &block, NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

/* Grow, fragment, remap and trim while one call fails: all that was there is given back. */
static void check_fault(uint64_t *at, uint64_t n, bool *out_done) {
  enum { COUNT = 24 };
  pool_bench bench;
  gm_block blocks[COUNT + 1];
  int count = 0;
  bench_open(&bench, "script:capacity=48M", 0);
  if (at) {
    *at = n;
  } else {
    bench.host.fail_at = atomic_load(&bench.host.calls) + n;
    bench.host.fail_count = 1;
  }
  for (int i = 0; i < COUNT; i++) {
    gm_request request = {.bytes = 2 * MIB - 512 * (uint64_t)(i % 3)};
    if (gm_alloc(bench.pool, &request, &blocks[count]) <= GM_ACQUIRE_FRESH) count++;
  }
  int kept = 0;
  for (int i = 0; i < count; i++) {
    if (i % 2) {
      blocks[kept++] = blocks[i];
    } else {
      give(&bench, &blocks[i], NULL);
    }
  }
  gm_request request = {.bytes = 20 * MIB};
  if (gm_alloc(bench.pool, &request, &blocks[kept]) <= GM_ACQUIRE_FRESH) kept++;
  while (kept > 0) give(&bench, &blocks[--kept], NULL);
  gm_pool_trim(bench.pool, 0);
  const uint64_t calls = at == &script.fail_unmap ? script.unmaps : script.maps;
  *out_done = at ? calls < n : atomic_load(&bench.host.calls) < bench.host.fail_at;
  bench.host.fail_at = script.fail_map = script.fail_access = script.fail_unmap = 0;
  check_empty(&bench);
  pool_bench_close(&bench);
}

static void test_any_call_fails(void **state) {
  (void)state;
  uint64_t *const places[] = {&script.fail_map, &script.fail_access, &script.fail_unmap, NULL};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    bool done = false;
    for (uint64_t n = 1; !done; n++) check_fault(places[i], n, &done);
  }
}

/* Random blocks in three times the memory that is there at once: it is never exceeded, and nothing overlaps. */
static void test_random_pressure(void **state) {
  (void)state;
  enum { COUNT = 64 };
  pool_bench bench;
  gm_block blocks[COUNT] = {{0}};
  uint64_t random = 9, served = 0;
  bench_open(&bench, "script:capacity=64M", 0);
  for (int turn = 0; turn < 4000; turn++) {
    gm_block *block = &blocks[test_random(&random) % COUNT];
    if (block->bytes) {
      give(&bench, block, NULL);
      block->bytes = 0;
      continue;
    }
    gm_request request = {.bytes = test_log_uniform(&random, 12 * MIB)};
    if (gm_alloc(bench.pool, &request, block) > GM_ACQUIRE_FRESH) {
      block->bytes = 0;
      continue;
    }
    served++;
    for (int i = 0; i < COUNT; i++) {
      if (&blocks[i] == block || !blocks[i].bytes) continue;
      assert_true(block->address + block->bytes <= blocks[i].address ||
                  blocks[i].address + blocks[i].bytes <= block->address);
    }
  }
  gm_stats stats = pool_bench_stats(&bench);
  assert_true(stats.peak_reserved_bytes <= 64 * MIB);
  assert_true(served > 1500);
  for (int i = 0; i < COUNT; i++) {
    if (blocks[i].bytes) give(&bench, &blocks[i], NULL);
  }
  check_empty(&bench);
  pool_bench_close(&bench);
}

/* ---- threads ---- */

static void hoard(void *argument) {
  pool_bench *bench = argument;
  gm_block blocks[8];
  for (int i = 0; i < 8; i++) {
    gm_request request = {.bytes = 3 * MIB};
    assert_true(gm_alloc(bench->pool, &request, &blocks[i]) <= GM_ACQUIRE_FRESH);
  }
  for (int i = 0; i < 8; i++) give(bench, &blocks[i], NULL);
}

/* Memory that a thread leaves behind serves others. */
static void test_pages_of_a_thread_that_ended_serve_others(void **state) {
  (void)state;
  pool_bench bench;
  gm__thread thread;
  bench_open(&bench, "script:capacity=32M", 0);
  gm_block small = take(&bench, 256, NULL, GM_ACQUIRE_FRESH); /* this thread's arena is another one */
  pool_bench_ok(gm__thread_create(&thread, "hoard", hoard, &bench, err));
  gm__thread_join(&thread);
  gm_request request = {.bytes = 28 * MIB};
  gm_block large;
  assert_true(gm_alloc(bench.pool, &request, &large) <= GM_ACQUIRE_FRESH);
  assert_true(pool_bench_stats(&bench).peak_reserved_bytes <= 32 * MIB);
  give(&bench, &large, NULL);
  give(&bench, &small, NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

/* The cap goes below what is held: what another thread left idle serves all the same, because nothing is taken for it.
 */
static void test_a_lowered_cap_refuses_nothing_that_is_held(void **state) {
  (void)state;
  pool_bench bench;
  gm__thread thread;
  bench_open(&bench, "script:capacity=1G", 0);
  gm_block large = take(&bench, 64 * MIB, NULL, GM_ACQUIRE_FRESH);
  pool_bench_ok(gm__thread_create(&thread, "hoard", hoard, &bench, err));
  gm__thread_join(&thread);
  pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 66 * MIB, err));
  const uint64_t reserved = pool_bench_stats(&bench).reserved_bytes;
  gm_request request = {.bytes = 20 * MIB};
  gm_block block;
  assert_true(gm_alloc(bench.pool, &request, &block) <= GM_ACQUIRE_FRESH);
  assert_true(pool_bench_stats(&bench).reserved_bytes <= reserved);
  take(&bench, 64 * MIB, NULL, GM_ACQUIRE_OVER_LIMIT);
  give(&bench, &block, NULL);
  give(&bench, &large, NULL);
  check_empty(&bench);
  pool_bench_close(&bench);
}

typedef struct hoarder {
  pool_bench *bench;
  gm__mutex lock;
  gm__cond changed;
  bool done, may_end;
} hoarder;

static void hoard_and_stay(void *argument) {
  hoarder *self = argument;
  hoard(self->bench);
  gm__mutex_lock(&self->lock);
  self->done = true;
  gm__cond_broadcast(&self->changed);
  while (!self->may_end) gm__cond_wait(&self->changed, &self->lock);
  gm__mutex_unlock(&self->lock);
}

/* So does what a thread that goes on does not use, before more is taken. */
static void test_pages_of_a_thread_that_rests_serve_others(void **state) {
  (void)state;
  pool_bench bench;
  gm__thread thread;
  bench_open(&bench, "script:capacity=1G", 0);
  hoarder other = {.bench = &bench};
  gm__mutex_init(&other.lock, GM__RANK_LEAF);
  gm__cond_init(&other.changed);
  gm_block small = take(&bench, 256, NULL, GM_ACQUIRE_FRESH);
  pool_bench_ok(gm__thread_create(&thread, "hoard", hoard_and_stay, &other, err));
  gm__mutex_lock(&other.lock);
  while (!other.done) gm__cond_wait(&other.changed, &other.lock);
  gm__mutex_unlock(&other.lock);
  const uint64_t reserved = pool_bench_stats(&bench).reserved_bytes;
  gm_block block = take(&bench, 20 * MIB, NULL, GM_ACQUIRE_FRESH);
  assert_true(pool_bench_stats(&bench).reserved_bytes <= reserved + 2 * MIB); /* where its pieces leave a gap */
  gm__mutex_lock(&other.lock);
  other.may_end = true;
  gm__cond_broadcast(&other.changed);
  gm__mutex_unlock(&other.lock);
  gm__thread_join(&thread);
  give(&bench, &block, NULL);
  give(&bench, &small, NULL);
  check_empty(&bench);
  gm__cond_destroy(&other.changed);
  gm__mutex_destroy(&other.lock);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_blocks_lie_in_one_range),
      cmocka_unit_test(test_a_full_device_moves_pages_together),
      cmocka_unit_test(test_pages_of_a_busy_stream_stay),
      cmocka_unit_test(test_without_ranges_it_takes_driver_allocations),
      cmocka_unit_test(test_a_block_larger_than_any_range),
      cmocka_unit_test(test_a_cap_below_a_page),
      cmocka_unit_test(test_a_cap_of_broken_pages),
      cmocka_unit_test(test_a_refused_request_moves_nothing),
      cmocka_unit_test(test_a_failed_request_leaves_nothing),
      cmocka_unit_test(test_any_call_fails),
      cmocka_unit_test(test_random_pressure),
      cmocka_unit_test(test_pages_of_a_thread_that_ended_serve_others),
      cmocka_unit_test(test_pages_of_a_thread_that_rests_serve_others),
      cmocka_unit_test(test_a_lowered_cap_refuses_nothing_that_is_held),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
