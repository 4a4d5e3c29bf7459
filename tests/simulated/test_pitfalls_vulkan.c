/* Known pitfalls of Vulkan's drivers, each played by the simulated driver and met through gm's public interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gm/copy.h"
#include "gm/device.h"
#include "gm/native_vulkan.h"
#include "simulated/shim/pitfall.h"

static const pitfall_driver vulkan = {"vulkan", "SIMVK", "vulkan=" SIM_LIBRARY, NULL};

static void test_every_output_says_simulated(void **state) {
  (void)state;
  pool_bench bench;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  gm_backend_info backends[16] = {{.struct_size = sizeof *backends}};
  size_t count = 0;
  pitfall_context(&bench, &vulkan, "");
  assert_int_equal(pitfall_discover(&bench, entries), 1);
  assert_non_null(strstr(entries[0].info.name, "(simulated)"));
  for (size_t i = 0; i < 16; i++) backends[i].struct_size = sizeof backends[i];
  pool_bench_ok(gm_discover_backends(bench.ctx, GM_PROBE_ACTIVE, backends, 16, &count, err));
  for (size_t i = 0; i < count && i < 16; i++) {
    if (strcmp(backends[i].name, "vulkan") == 0) assert_true(backends[i].simulated);
  }
  pitfall_close(&bench);
}

/* ---- budget ---- */

static gm_memory_info budget_of(const char *script, uint64_t held) {
  pool_bench bench;
  pitfall_open(&bench, &vulkan, script);
  gm_block block;
  if (held) block = pitfall_block(&bench, held, 0, GM_DEVICE_LOCAL);
  const gm_memory_info memory = pitfall_figures(&bench);
  if (held) pitfall_free(&bench, &block);
  pitfall_close(&bench);
  return memory;
}

static void test_budget_of_sixteen_exbibytes(void **state) {
  (void)state;
  const gm_memory_info memory = budget_of("heaps=hidden,type=discrete,budget=wrapped", 0);
  assert_int_equal(memory.total_bytes, GIB);
  assert_int_equal(memory.free_bytes, 0); /* a negative number that wrapped */
}

static void test_budget_of_zero(void **state) {
  (void)state;
  const gm_memory_info memory = budget_of("heaps=hidden,type=discrete,budget=zero", 0);
  assert_true(memory.free_bytes > GIB / 10 * 7 && memory.free_bytes < GIB / 10 * 9); /* four fifths */
}

static void test_budget_above_the_heap(void **state) {
  (void)state;
  assert_int_equal(budget_of("heaps=hidden,type=discrete,budget=over", 0).free_bytes, GIB);
}

static void test_budget_is_less_than_the_heap(void **state) {
  (void)state;
  const gm_memory_info memory = budget_of("heaps=hidden,type=discrete,budget=half", 64 * MIB);
  assert_int_equal(memory.free_bytes, GIB / 2 - 64 * MIB);
  assert_int_not_equal(memory.free_state, GM_FIGURE_KNOWN); /* rough by its own definition */
}

static void test_usage_of_zero_while_gm_holds_memory(void **state) {
  (void)state;
  const gm_memory_info memory = budget_of("heaps=hidden,type=discrete,budget=over,usage=zero", 256 * MIB);
  assert_int_equal(memory.free_bytes, GIB - 256 * MIB);
}

static void test_usage_above_the_budget(void **state) {
  (void)state;
  assert_int_equal(budget_of("heaps=hidden,type=discrete,budget=half,usage=over", 0).free_bytes, 0);
  assert_int_equal(budget_of("heaps=hidden,type=discrete,budget=half,usage=wrapped", 0).free_bytes, 0);
}

static void test_card_fuller_than_its_heap_says(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  pitfall_open(&bench, &vulkan, "heaps=hidden,type=discrete,others=768M");
  assert_int_equal(pitfall_take(&bench, 512 * MIB, 0, GM_DEVICE_LOCAL, &block), GM_ACQUIRE_EXHAUSTED);
  const gm_error why = pitfall_why(&bench, 512 * MIB);
  assert_int_equal(why.status, GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_string_equal(why.op, "vkAllocateMemory");
  block = pitfall_block(&bench, 256 * MIB, 0, GM_DEVICE_LOCAL);
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

/* ---- heaps and types ---- */

static void test_tiny_device_local_heap_falls_through(void **state) {
  (void)state;
  pool_bench bench;
  pitfall_open(&bench, &vulkan, "heaps=tiny,type=integrated");
  gm_block small = pitfall_block(&bench, MIB, 0, GM_DEVICE_LOCAL);
  gm_block large = pitfall_block(&bench, 64 * MIB, 0, GM_DEVICE_LOCAL); /* unified: any it has */
  assert_int_equal(pitfall_type(&bench, &small).heap_bytes, 16 * MIB);
  assert_int_equal(pitfall_type(&bench, &large).heap_bytes, 2 * GIB);
  assert_true(pitfall_figures(&bench).total_bytes > 16 * MIB);
  pitfall_free(&bench, &small);
  pitfall_free(&bench, &large);
  pitfall_close(&bench);
}

static void test_tiny_heap_that_is_full_falls_through(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[24];
  pitfall_open(&bench, &vulkan, "heaps=tiny,type=integrated");
  for (int i = 0; i < 24; i++) blocks[i] = pitfall_block(&bench, MIB, 0, GM_DEVICE_LOCAL);
  assert_int_equal(pitfall_type(&bench, &blocks[0]).heap_bytes, 16 * MIB);
  assert_int_equal(pitfall_type(&bench, &blocks[23]).heap_bytes, 2 * GIB);
  for (int i = 0; i < 24; i++) pitfall_free(&bench, &blocks[i]);
  pitfall_close(&bench);
}

static void test_without_rebar_only_a_window_is_visible(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  pitfall_open(&bench, &vulkan, "heaps=discrete,type=discrete,budget=real");
  gm_block hidden = pitfall_block(&bench, 512 * MIB, 0, GM_DEVICE_LOCAL);
  assert_false(pitfall_type(&bench, &hidden).flags & GM_MEMORY_HOST_VISIBLE);
  assert_int_equal(pitfall_take(&bench, 512 * MIB, GM_HOST_VISIBLE, GM_DEVICE_LOCAL, &block), GM_ACQUIRE_EXHAUSTED);
  assert_int_equal(pitfall_why(&bench, 512 * MIB).status, GM_ERR_ALLOCATION_TOO_LARGE);
  gm_block window = pitfall_block(&bench, 64 * MIB, GM_HOST_VISIBLE, GM_DEVICE_LOCAL);
  assert_int_equal(pitfall_type(&bench, &window).heap_bytes, 256 * MIB);
  gm_block host = pitfall_block(&bench, 512 * MIB, GM_HOST_VISIBLE, GM_DEVICE_ACCESSIBLE);
  assert_int_equal(pitfall_type(&bench, &host).heap_bytes, 2 * GIB);
  pitfall_free(&bench, &host);
  pitfall_free(&bench, &window);
  pitfall_free(&bench, &hidden);
  pitfall_close(&bench);
}

static void test_readback_takes_cached_memory(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  pitfall_open(&bench, &vulkan, "heaps=discrete,type=discrete");
  const gm_request request = {.bytes = MIB,
                              .flags = GM_HOST_VISIBLE,
                              .must_be = GM_DEVICE_ACCESSIBLE,
                              .usage = GM_USAGE_TRANSFER | GM_USAGE_READBACK};
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
  assert_true(pitfall_type(&bench, &block).flags & GM_MEMORY_HOST_CACHED);
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

static void test_allocation_larger_than_its_heap_is_never_asked_for(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  pitfall_open(&bench, &vulkan,
               "heaps=hidden,type=discrete,local=32M,host=64M,budget=real"); /* the driver would end the process */
  assert_int_not_equal(pitfall_take(&bench, 33 * MIB, 0, GM_DEVICE_LOCAL, &block), GM_ACQUIRE_FRESH);
  assert_int_not_equal(pitfall_take(&bench, 4096 * MIB, 0, GM_ANYWHERE, &block), GM_ACQUIRE_FRESH);
  block = pitfall_block(&bench, 32 * MIB, 0, GM_DEVICE_LOCAL);
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

/* ---- limits ---- */

static void test_max_memory_allocation_count(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[8], more;
  pitfall_open(&bench, &vulkan, "count=8");
  assert_int_equal(gm_device_get_info(bench.device)->max_allocation_count, 8);
  for (int i = 0; i < 8; i++) blocks[i] = pitfall_block(&bench, MIB, 0, GM_DEVICE_LOCAL);
  assert_int_equal(pitfall_take(&bench, MIB, 0, GM_DEVICE_LOCAL, &more), GM_ACQUIRE_EXHAUSTED);
  assert_non_null(strstr(pitfall_why(&bench, MIB).message, "maxMemoryAllocationCount"));
  assert_int_equal(gm_free(bench.pool, &blocks[0], NULL), GM_OK);
  blocks[0] = pitfall_block(&bench, 64 * 1024, 0, GM_DEVICE_LOCAL); /* the pooled one makes room */
  for (int i = 0; i < 8; i++) pitfall_free(&bench, &blocks[i]);
  pitfall_close(&bench);
}

static void test_count_holds_for_dedicated_allocations(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[4], more;
  pitfall_open(&bench, &vulkan, "count=4,dedicated");
  for (int i = 0; i < 4; i++) blocks[i] = pitfall_block(&bench, MIB, 0, GM_DEVICE_LOCAL);
  assert_int_equal(pitfall_take(&bench, MIB, 0, GM_DEVICE_LOCAL, &more), GM_ACQUIRE_EXHAUSTED);
  for (int i = 0; i < 4; i++) pitfall_free(&bench, &blocks[i]);
  pitfall_close(&bench);
}

static void test_largest_allocation_and_largest_buffer(void **state) {
  (void)state;
  static const char *const scripts[] = {"maxalloc=64M", "maxbuffer=64M", "maxalloc=64M,maxbuffer=128M"};
  for (size_t i = 0; i < 3; i++) {
    pool_bench bench;
    gm_block block;
    pitfall_open(&bench, &vulkan, scripts[i]);
    assert_int_equal(gm_device_get_info(bench.device)->max_alloc_bytes, 64 * MIB);
    assert_int_equal(pitfall_take(&bench, 64 * MIB + 1, 0, GM_DEVICE_LOCAL, &block), GM_ACQUIRE_EXHAUSTED);
    assert_int_equal(pitfall_why(&bench, 64 * MIB + 1).status, GM_ERR_ALLOCATION_TOO_LARGE);
    block = pitfall_block(&bench, 64 * MIB, 0, GM_DEVICE_LOCAL);
    pitfall_free(&bench, &block);
    pitfall_in_several(&bench, 150 * MIB, 3);
    pitfall_close(&bench);
  }
}

static void test_device_fails_below_its_own_limit(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  pitfall_open(&bench, &vulkan, "fails_above=32M");
  assert_int_equal(pitfall_take(&bench, 48 * MIB, 0, GM_DEVICE_LOCAL, &block), GM_ACQUIRE_EXHAUSTED);
  assert_int_equal(pitfall_why(&bench, 48 * MIB).status, GM_ERR_OUT_OF_DEVICE_MEMORY);
  block = pitfall_block(&bench, 20 * MIB, 0, GM_DEVICE_LOCAL); /* exact, where the bucket of 32 MiB is too much */
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

/* ---- memory that is not coherent ---- */

static const char coherent_not[] = "noncoherent,atom=256";

static void check_bytes(const pool_bench *bench, const gm_block *block, const unsigned char *want, uint64_t bytes) {
  unsigned char got[4096];
  pool_bench_ok(gm_block_read(bench->pool, block, 0, got, bytes, NULL, NULL, err));
  assert_memory_equal(got, want, bytes);
}

/* The rest of an atom is the device's: a flush of the part that the host wrote must not bring back what was there. */
static void test_flush_of_part_of_an_atom(void **state) {
  (void)state;
  pool_bench bench;
  unsigned char want[4096];
  void *host = NULL;
  pitfall_open(&bench, &vulkan, coherent_not);
  gm_block block = pitfall_block(&bench, sizeof want, GM_HOST_VISIBLE, GM_DEVICE_LOCAL);
  memset(want, 0x11, sizeof want);
  pool_bench_ok(gm_block_fill(bench.pool, &block, 0, sizeof want, want, 1, NULL, NULL, err));
  memset(want + 301, 0x22, 5);
  pool_bench_ok(gm_block_write(bench.pool, &block, 301, want + 301, 5, NULL, NULL, err));
  memset(want + 1030, 0x33, 700);
  pool_bench_ok(gm_block_fill(bench.pool, &block, 1030, 700, want + 1030, 1, NULL, NULL, err));
  memset(want + 2500, 0x44, 3);
  pool_bench_ok(gm_block_map(bench.pool, &block, 2500, 3, GM_MAP_WRITE, NULL, &host, err));
  memset(host, 0x44, 3);
  pool_bench_ok(gm_block_unmap(bench.pool, &block, host, NULL, err));
  memset(want + 3001, 0x55, 9);
  pool_bench_ok(gm_block_map(bench.pool, &block, 3001, 9, GM_MAP_DISCARD, NULL, &host, err));
  memset(host, 0x55, 9);
  pool_bench_ok(gm_block_unmap(bench.pool, &block, host, NULL, err));
  check_bytes(&bench, &block, want, sizeof want);
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

static void test_invalidate_before_the_host_reads(void **state) {
  (void)state;
  pool_bench bench;
  unsigned char want[1000];
  void *host = NULL;
  pitfall_open(&bench, &vulkan, coherent_not);
  gm_block a = pitfall_block(&bench, sizeof want, GM_HOST_VISIBLE, GM_DEVICE_LOCAL);
  gm_block b = pitfall_block(&bench, sizeof want, GM_HOST_VISIBLE, GM_DEVICE_LOCAL);
  for (int round = 0; round < 3; round++) {
    memset(want, 0x40 + round, sizeof want);
    pool_bench_ok(gm_block_write(bench.pool, &a, 0, want, sizeof want, NULL, NULL, err));
    pool_bench_ok(gm_block_copy(bench.pool, &b, 0, bench.pool, &a, 0, sizeof want, NULL, NULL, err));
    pool_bench_ok(gm_block_map(bench.pool, &b, 100, 600, GM_MAP_READ, NULL, &host, err));
    assert_memory_equal(host, want + 100, 600);
    pool_bench_ok(gm_block_unmap(bench.pool, &b, host, NULL, err));
  }
  pitfall_free(&bench, &a);
  pitfall_free(&bench, &b);
  pitfall_close(&bench);
}

static void test_zeroed_memory_is_zero_for_both(void **state) {
  (void)state;
  static const unsigned char zero[777];
  pool_bench bench;
  void *host = NULL;
  pitfall_open(&bench, &vulkan, coherent_not);
  gm_block block = pitfall_block(&bench, sizeof zero, GM_HOST_VISIBLE | GM_ZERO, GM_DEVICE_LOCAL);
  check_bytes(&bench, &block, zero, sizeof zero);
  pool_bench_ok(gm_block_map(bench.pool, &block, 0, sizeof zero, GM_MAP_READ, NULL, &host, err));
  assert_memory_equal(host, zero, sizeof zero);
  pool_bench_ok(gm_block_unmap(bench.pool, &block, host, NULL, err));
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_output_says_simulated),
      cmocka_unit_test(test_budget_of_sixteen_exbibytes),
      cmocka_unit_test(test_budget_of_zero),
      cmocka_unit_test(test_budget_above_the_heap),
      cmocka_unit_test(test_budget_is_less_than_the_heap),
      cmocka_unit_test(test_usage_of_zero_while_gm_holds_memory),
      cmocka_unit_test(test_usage_above_the_budget),
      cmocka_unit_test(test_card_fuller_than_its_heap_says),
      cmocka_unit_test(test_tiny_device_local_heap_falls_through),
      cmocka_unit_test(test_tiny_heap_that_is_full_falls_through),
      cmocka_unit_test(test_without_rebar_only_a_window_is_visible),
      cmocka_unit_test(test_readback_takes_cached_memory),
      cmocka_unit_test(test_allocation_larger_than_its_heap_is_never_asked_for),
      cmocka_unit_test(test_max_memory_allocation_count),
      cmocka_unit_test(test_count_holds_for_dedicated_allocations),
      cmocka_unit_test(test_largest_allocation_and_largest_buffer),
      cmocka_unit_test(test_device_fails_below_its_own_limit),
      cmocka_unit_test(test_flush_of_part_of_an_atom),
      cmocka_unit_test(test_invalidate_before_the_host_reads),
      cmocka_unit_test(test_zeroed_memory_is_zero_for_both),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
