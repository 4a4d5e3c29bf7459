/* Drivers whose virtual memory lies or fails where nothing should. They give addresses that are none, or memory that
 * is not that of its range. Some pages can be neither opened nor unmapped. There is no host memory when pages are
 * given up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "core/arena/arena.h"
#include "core/pool/pool.h"
#include "support/pool_blocks.h"

#define MIB (UINT64_C(1) << 20)

/* The null backend, which keeps books of what is mapped; what it is to say otherwise. */
static struct {
  uint64_t reserves, unreserves, creates, destroys;
  bool lies;        /* about addresses */
  uint64_t address; /* what it says then */
  bool memory_lies; /* about what stands for a range */
  gm_memory memory; /* added to the true words */
  uint64_t memories, frees;
  bool fail_access, fail_unmap;
  uint64_t refused_unmaps, refused_highest;
  uint64_t fail_unmap_from; /* an address: those from here on are refused, too; 0: none */
} script;

static gm_status script_fail(gm_error *err) {
  if (err) *err = (gm_error){.status = GM_ERR_DRIVER, .message = "as it was told"};
  return GM_ERR_DRIVER;
}

static gm_status script_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out, gm_error *err) {
  script.reserves++;
  if (!script.lies) return gm__null_backend.vmm_reserve(device, bytes, align, out, err);
  *out = script.address;
  return GM_OK;
}

static gm_status script_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  script.unreserves++;
  if (script.lies) return GM_OK;
  return gm__null_backend.vmm_unreserve(device, address, bytes, mode, err);
}

static gm_status script_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out, gm_error *err) {
  const gm_status status = gm__null_backend.vmm_create(device, props, bytes, out, err);
  script.creates += status == GM_OK;
  return status;
}

static gm_status script_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  const gm_status status = gm__null_backend.vmm_destroy(device, handle, bytes, mode, err);
  assert_int_equal(status, GM_OK);
  script.destroys++;
  return status;
}

/* A mapping over a mapping is refused by the null backend. */
static gm_status script_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                            gm_error *err) {
  const gm_status status = gm__null_backend.vmm_map(device, address, bytes, handle, offset, err);
  assert_int_equal(status, GM_OK);
  return status;
}

static gm_status script_access(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  return script.fail_access ? script_fail(err) : gm__null_backend.vmm_access(device, address, bytes, err);
}

static gm_status script_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  if (!script.fail_unmap && (!script.fail_unmap_from || address < script.fail_unmap_from)) {
    return gm__null_backend.vmm_unmap(device, address, bytes, err);
  }
  script.refused_unmaps++;
  if (address > script.refused_highest) script.refused_highest = address;
  return script_fail(err);
}

static gm_status script_memory(void *device, uint64_t address, uint64_t bytes, uint32_t type, gm_memory *out,
                               gm_error *err) {
  (void)device, (void)err;
  const gm_memory *lie = &script.memory;
  *out = (gm_memory){.handle = 77 + lie->handle,
                     .address = address + lie->address,
                     .bytes = bytes + lie->bytes,
                     .host = lie->host,
                     .type = type + lie->type};
  script.memories++;
  return GM_OK;
}

static gm_status script_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  script.frees++;
  if (memory->handle <= 77) return GM_OK;
  return gm__null_backend.memory_free(device, memory, mode, err);
}

static void bench_open(pool_bench *bench, bool describes) {
  memset(&script, 0, sizeof script);
  gm_backend_ops ops = gm__null_backend;
  ops.name = "script";
  ops.api = GM_API_OTHER;
  ops.vmm_reserve = script_reserve;
  ops.vmm_unreserve = script_unreserve;
  ops.vmm_create = script_create;
  ops.vmm_destroy = script_destroy;
  ops.vmm_map = script_map;
  ops.vmm_access = script_access;
  ops.vmm_unmap = script_unmap;
  if (describes) {
    ops.vmm_memory = script_memory;
    ops.memory_free = script_free;
  }
  counted_services_init(&bench->host);
  gm_context_params context = {.struct_size = sizeof context,
                               .services = &bench->host.services,
                               .backend_options = "script:capacity=64M",
                               .ignore_environment = true};
  gm_pool_params params = {.struct_size = sizeof params, .name = "pages"};
  pool_bench_ok(gm_context_create(&context, &bench->ctx, err));
  pool_bench_ok(gm_backend_register(bench->ctx, &ops, err));
  pool_bench_ok(gm_config_set(bench->ctx, "memory_fraction", "1", err));
  pool_bench_ok(gm_config_set(bench->ctx, "min_free_bytes", "0", err));
  pool_bench_ok(gm_config_set(bench->ctx, "track_allocations", "false", err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "script", 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, &params, &bench->pool, err));
}

/* ---- addresses that are none ---- */

/* The pool does without ranges then. */
static void test_reserved_addresses_are_checked(void **state) {
  (void)state;
  static const uint64_t lies[] = {0, 1, 4096, 2 * MIB + 256, UINT64_MAX, UINT64_MAX - 2 * MIB + 1, UINT64_C(1) << 63};
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    pool_bench bench;
    bench_open(&bench, false);
    script.lies = lies[i] != UINT64_C(1) << 63; /* that one could be */
    script.address = lies[i];
    gm_block block = take(&bench, 3 * MIB, NULL, GM_ACQUIRE_FRESH);
    assert_true(block.address != 0 && block.address % 256 == 0);
    assert_true(!script.lies || (script.reserves > 0 && script.reserves == script.unreserves && !script.creates));
    give(&bench, &block, NULL);
    check_trim_to_nothing(&bench);
    pool_bench_close(&bench);
  }
}

/* The handle that stands for a range is of that range. */
static void test_memory_of_a_range_is_checked(void **state) {
  (void)state;
  static const gm_memory lies[] = {{.handle = (uint64_t)-77}, {.address = 256}, {.address = UINT64_MAX},
                                   {.bytes = UINT64_MAX},     {.type = 1},      {.host = &script}};
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    pool_bench bench;
    bench_open(&bench, true);
    script.memory = lies[i];
    gm_block block = take(&bench, 3 * MIB, NULL, GM_ACQUIRE_FRESH);
    assert_int_equal(script.creates, 0);
    assert_true(script.memories > 0);
    assert_int_equal(script.frees, i == 0 ? 0 : script.memories);
    assert_int_equal(script.reserves, script.unreserves);
    give(&bench, &block, NULL);
    check_trim_to_nothing(&bench);
    pool_bench_close(&bench);
  }
}

/* ---- pages that can be opened as little as unmapped ---- */

/* Their memory stays where it is, and counted; the place is nobody's until the driver unmaps them, and others serve. */
static void test_pages_that_cannot_be_unmapped(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, false);
  gm_block first = take(&bench, MIB, NULL, GM_ACQUIRE_FRESH);
  const uint64_t reserved = pool_bench_stats(&bench).reserved_bytes;
  script.fail_access = script.fail_unmap = true;
  take(&bench, 8 * MIB, NULL, GM_ACQUIRE_FAILED);
  assert_true(script.refused_unmaps > 0);
  assert_true(pool_bench_stats(&bench).reserved_bytes > reserved);
  const uint64_t destroyed = script.destroys; /* those that had no place yet */
  script.fail_access = false;
  gm_block second = take(&bench, 8 * MIB, NULL, GM_ACQUIRE_FRESH); /* elsewhere */
  assert_int_equal(script.destroys, destroyed);
  script.fail_unmap = false;
  give(&bench, &first, NULL);
  give(&bench, &second, NULL);
  check_trim_to_nothing(&bench);
  assert_int_equal(script.creates, script.destroys);
  gm_block third = take(&bench, 40 * MIB, NULL, GM_ACQUIRE_FRESH); /* nothing is lost of the device or of the range */
  give(&bench, &third, NULL);
  pool_bench_close(&bench);
  assert_int_equal(script.creates, script.destroys);
}

/* The next that grows unmaps them, too. */
static void test_pages_are_unmapped_when_the_pool_grows(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, false);
  script.fail_access = script.fail_unmap = true;
  take(&bench, 8 * MIB, NULL, GM_ACQUIRE_FAILED);
  script.fail_access = script.fail_unmap = false;
  gm_block all = take(&bench, 60 * MIB, NULL, GM_ACQUIRE_FRESH);
  assert_true(pool_bench_stats(&bench).reserved_bytes <= 64 * MIB);
  give(&bench, &all, NULL);
  check_trim_to_nothing(&bench);
  assert_int_equal(script.creates, script.destroys);
  pool_bench_close(&bench);
}

/* Two such places side by side: a try again at the first asks for none of the second. */
static void test_each_place_is_tried_alone(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, false);
  script.fail_access = script.fail_unmap = true;
  take(&bench, 8 * MIB, NULL, GM_ACQUIRE_FAILED);
  const uint64_t first = script.refused_highest;
  take(&bench, 8 * MIB, NULL, GM_ACQUIRE_FAILED);
  assert_true(script.refused_highest > first);
  script.fail_access = script.fail_unmap = false;
  script.fail_unmap_from = first + 1;
  script.refused_unmaps = 0;
  gm_pool_trim(bench.pool, 0);
  assert_int_equal(script.refused_unmaps, 1);
  script.fail_unmap_from = 0;
  check_trim_to_nothing(&bench);
  assert_int_equal(script.creates, script.destroys);
  pool_bench_close(&bench);
}

/* A pool that ends with them gives them back all the same. */
static void test_a_pool_ends_with_pages_that_were_not_unmapped(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, false);
  script.fail_access = script.fail_unmap = true;
  take(&bench, 8 * MIB, NULL, GM_ACQUIRE_FAILED);
  gm_pool_trim(bench.pool, 0);
  script.fail_unmap = false;
  pool_bench_close(&bench);
  assert_int_equal(script.creates, script.destroys);
}

/* ---- no host memory ---- */

static const gm__chunks *chunks_of(const pool_bench *bench) {
  return &gm__arena_at(&bench->pool->heap.arenas, 0)->chunks;
}

/* When pages are given up and those beside them are not, there is no host memory to cut the free chunk. The next trim
 * tells what cannot be told as free and unmapped chunks at once. */
static void test_a_hole_that_could_not_be_cut(void **state) {
  (void)state;
  enum { COUNT = 20000 };
  static gm_block small[COUNT];
  int count = 0;
  pool_bench bench;
  bench_open(&bench, false);
  gm_block large = take(&bench, 7 * MIB + 256, NULL, GM_ACQUIRE_FRESH);
  while (count < COUNT && (!count || chunks_of(&bench)->unused_count ||
                           chunks_of(&bench)->capacity - chunks_of(&bench)->count >= GM__CHUNKS_STEP)) {
    const gm_request request = {.bytes = 300};
    assert_true(gm_alloc(bench.pool, &request, &small[count++]) <= GM_ACQUIRE_FRESH);
  }
  assert_true(count < COUNT);
  give(&bench, &large, NULL);
  bench.host.fail_at = 1;
  assert_true(gm_pool_trim(bench.pool, 0) >= 4 * MIB);
  bench.host.fail_at = 0;
  while (count) give(&bench, &small[--count], NULL);
  check_trim_to_nothing(&bench);
  assert_int_equal(script.creates, script.destroys);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reserved_addresses_are_checked),
      cmocka_unit_test(test_memory_of_a_range_is_checked),
      cmocka_unit_test(test_pages_that_cannot_be_unmapped),
      cmocka_unit_test(test_pages_are_unmapped_when_the_pool_grows),
      cmocka_unit_test(test_each_place_is_tried_alone),
      cmocka_unit_test(test_a_pool_ends_with_pages_that_were_not_unmapped),
      cmocka_unit_test(test_a_hole_that_could_not_be_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
