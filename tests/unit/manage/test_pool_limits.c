/* The engine's plan is the engine's: which limits hold on adopted devices, and what each pool can set for itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/cleanup.h"
#include "gm/copy.h"
#include "gm/pressure.h"
#include "support/lender_backend.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1) << 20)

static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

/* A device of 64 MiB, adopted or gm's own. Nobody has set a key. */
static void open_plain(pool_bench *bench, bool adopted) {
  const gm_backend_ops ops = lender_ops("lender");
  const lender_device native = lender_native(0);
  counted_services_init(&bench->host);
  const gm_context_params params = {.struct_size = sizeof params,
                                    .services = &bench->host.services,
                                    .backend_options = "lender:capacity=64M,latency=1000",
                                    .ignore_environment = true};
  bench->pool = NULL;
  pool_bench_ok(gm_context_create(&params, &bench->ctx, err));
  pool_bench_ok(gm_backend_register(bench->ctx, &ops, err));
  if (adopted) {
    pool_bench_ok(gm_device_adopt(bench->ctx, &native.head, &bench->device, err));
  } else {
    pool_bench_ok(gm_device_open_index(bench->ctx, "lender", 0, &bench->device, err));
  }
}

static void make_pool(pool_bench *bench, const gm_pool_params *params) {
  gm_pool_params own = *params;
  own.struct_size = sizeof own;
  if (bench->pool) pool_bench_ok(gm_pool_destroy(bench->pool, err));
  pool_bench_ok(gm_pool_create(bench->device, &own, &bench->pool, err));
}

/* The answer of a pool with these parameters to a request. All goes back. */
static gm_acquire answer_to(pool_bench *bench, const gm_pool_params *params, uint64_t bytes) {
  gm_block block;
  make_pool(bench, params);
  const gm_request request = {.bytes = bytes};
  const gm_acquire answer = gm_alloc(bench->pool, &request, &block);
  if (gm_acquired(answer)) assert_int_equal(gm_free(bench->pool, &block, NULL), GM_OK);
  gm_pool_trim(bench->pool, 0);
  return answer;
}

static void test_defaults_hold_on_own_devices_only(void **state) {
  (void)state;
  for (int adopted = 0; adopted < 2; adopted++) {
    pool_bench bench;
    gm_memory_info memory = {.struct_size = sizeof memory};
    const gm_pool_params plain = {.no_vmm = true};
    open_plain(&bench, adopted);
    assert_int_equal(answer_to(&bench, &plain, 57 * MIB), GM_ACQUIRE_FRESH);
    assert_int_equal(answer_to(&bench, &plain, 62 * MIB), adopted ? GM_ACQUIRE_FRESH : GM_ACQUIRE_OVER_LIMIT);
    assert_int_equal(answer_to(&bench, &plain, 65 * MIB), adopted ? GM_ACQUIRE_EXHAUSTED : GM_ACQUIRE_OVER_LIMIT);
    pool_bench_ok(gm_device_memory_info(bench.device, &memory, err));
    assert_int_equal(memory.margin_bytes, adopted ? 0 : 64 * MIB / 20);
    pool_bench_close(&bench);
  }
}

static void test_keys_that_somebody_set_hold_on_adopted_devices(void **state) {
  (void)state;
  const gm_pool_params plain = {.no_vmm = true};
  pool_bench bench;
  open_plain(&bench, true);
  pool_bench_ok(gm_config_set(bench.ctx, "memory_fraction", "0.5", err));
  assert_int_equal(answer_to(&bench, &plain, 33 * MIB), GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(answer_to(&bench, &plain, 31 * MIB), GM_ACQUIRE_FRESH);
  pool_bench_ok(gm_config_set(bench.ctx, "memory_fraction", "1", err));
  pool_bench_ok(gm_config_set(bench.ctx, "min_free_bytes", "auto", err)); /* set, to what the default is */
  gm_memory_info memory = {.struct_size = sizeof memory};
  pool_bench_ok(gm_device_memory_info(bench.device, &memory, err));
  assert_int_equal(memory.margin_bytes, 64 * MIB / 20);
  assert_int_equal(answer_to(&bench, &plain, 62 * MIB), GM_ACQUIRE_OVER_LIMIT);
  pool_bench_close(&bench);
}

static void test_a_preset_is_set_by_somebody(void **state) {
  (void)state;
  const gm_pool_params plain = {.no_vmm = true};
  pool_bench bench;
  open_plain(&bench, true);
  pool_bench_ok(gm_config_preset(bench.ctx, "constrained", err)); /* memory_fraction 0.7 */
  assert_int_equal(answer_to(&bench, &plain, 46 * MIB), GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(answer_to(&bench, &plain, 42 * MIB), GM_ACQUIRE_FRESH);
  pool_bench_close(&bench);
}

static void test_each_pool_has_its_own_limits(void **state) {
  (void)state;
  static const struct {
    gm_pool_params params;
    uint64_t most;
  } cases[] = {
      {{.no_vmm = true, .memory_fraction = 0.25}, 16 * MIB},
      {{.no_vmm = true, .memory_fraction = 1, .min_free_bytes = 24 * MIB}, 40 * MIB},
      {{.no_vmm = true, .memory_fraction = 0.5, .min_free_bytes = GM_NO_LIMIT}, 32 * MIB},
      {{.no_vmm = true, .max_bytes = 8 * MIB, .memory_fraction = 1, .min_free_bytes = GM_NO_BYTES}, 8 * MIB},
      {{.no_vmm = true, .max_bytes = GM_NO_LIMIT, .memory_fraction = 1, .min_free_bytes = GM_NO_BYTES}, 64 * MIB},
  };
  for (int adopted = 0; adopted < 2; adopted++) {
    pool_bench bench;
    open_plain(&bench, adopted);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      assert_int_equal(answer_to(&bench, &cases[i].params, cases[i].most), GM_ACQUIRE_FRESH);
      assert_int_equal(answer_to(&bench, &cases[i].params, cases[i].most + MIB), GM_ACQUIRE_OVER_LIMIT);
    }
    const gm_pool_params none = {.no_vmm = true, .memory_fraction = 1, .min_free_bytes = GM_NO_LIMIT};
    assert_int_equal(answer_to(&bench, &none, 65 * MIB), GM_ACQUIRE_EXHAUSTED); /* the driver refuses, not gm */
    pool_bench_ok(gm_config_set(bench.ctx, "max_pool_bytes", "4M", err));
    assert_int_equal(answer_to(&bench, &none, 5 * MIB), GM_ACQUIRE_OVER_LIMIT);
    pool_bench_ok(gm_pool_set_max_bytes(bench.pool, GM_NO_LIMIT, err));
    const gm_request request = {.bytes = 5 * MIB};
    gm_block block;
    assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    pool_bench_ok(gm_pool_set_max_bytes(bench.pool, GM_NO_BYTES, err));
    gm_pool_trim(bench.pool, 0);
    assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_OVER_LIMIT);
    pool_bench_close(&bench);
  }
}

static void test_wrong_limits_are_refused(void **state) {
  (void)state;
  const double zero = 0;
  gm_pool_params wrong[] = {{.memory_fraction = 1.5},
                            {.memory_fraction = -0.1},
                            {.memory_fraction = 0.0 / zero},
                            {.flags = 4},
                            {.flags = UINT64_C(1) << 63},
                            {.flags = GM_POOL_NO_TRIM, .keep_bytes = GM_NO_BYTES},
                            {.flags = GM_POOL_NO_TRIM, .keep_bytes = 1}};
  pool_bench bench;
  open_plain(&bench, true);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    gm_pool *pool = NULL;
    wrong[i].struct_size = sizeof wrong[i];
    assert_int_equal(gm_pool_create(bench.device, &wrong[i], &pool, NULL), GM_ERR_INVALID_ARGUMENT);
    assert_null(pool);
  }
  const gm_pool_params fine = {.flags = GM_POOL_NO_TRIM, .keep_bytes = GM_NO_LIMIT, .red_zone_bytes = GM_NO_BYTES};
  make_pool(&bench, &fine);
  pool_bench_close(&bench);
}

static void test_pressure_is_known_without_limits(void **state) {
  (void)state;
  const gm_pool_params plain = {.no_vmm = true};
  const gm_request request = {.bytes = 48 * MIB};
  gm_pressure pressure = {.struct_size = sizeof pressure};
  gm_block block;
  pool_bench bench;
  open_plain(&bench, true);
  make_pool(&bench, &plain);
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  pool_bench_ok(gm_pool_pressure(bench.pool, &pressure, err));
  assert_int_equal(pressure.total_bytes, 64 * MIB);
  assert_int_equal(pressure.level, GM_PRESSURE_MEDIUM);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* ---- what a pool keeps ---- */

static gm_block take(pool_bench *bench, uint64_t bytes, gm_stream *stream) {
  const gm_request request = {.bytes = bytes, .stream = stream, .flags = GM_INSERT_WAIT};
  gm_block block;
  assert_true(gm_acquired(gm_alloc(bench->pool, &request, &block)));
  return block;
}

static void test_a_pool_that_keeps_nothing_gives_back_in_the_free(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    open_plain(&bench, true);
    make_pool(&bench, &(gm_pool_params){.strategy = strategies[s], .keep_bytes = GM_NO_BYTES});
    gm_block large = take(&bench, 16 * MIB, NULL), small = take(&bench, 1000, NULL);
    assert_int_equal(gm_free(bench.pool, &large, NULL), GM_OK);
    assert_in_range(pool_bench_stats(&bench).reserved_bytes, 1000, 3 * MIB);
    assert_int_equal(gm_free(bench.pool, &small, NULL), GM_OK);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
    void *pointer = gm_malloc(bench.pool, 5 * MIB, NULL);
    assert_non_null(pointer);
    assert_int_equal(gm_free_ptr(bench.pool, pointer, 0, NULL), GM_OK);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
    pool_bench_close(&bench);
  }
}

static void test_memory_with_work_left_goes_back_at_a_later_call(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_stream *stream = NULL;
    open_plain(&bench, true);
    make_pool(&bench, &(gm_pool_params){.strategy = strategies[s], .keep_bytes = GM_NO_BYTES});
    pool_bench_ok(gm_stream_create(bench.device, &stream, err));
    gm_block block = take(&bench, 16 * MIB, stream);
    pool_bench_ok(gm_stream_barrier(stream, err));
    gm_point point = {0};
    pool_bench_ok(gm_block_fill(bench.pool, &block, 0, block.bytes, "", 1, stream, &point, err)); /* 1000 ns */
    gm_point_release(bench.device, &point);
    assert_int_equal(gm_free(bench.pool, &block, stream), GM_OK);
    assert_in_range(pool_bench_stats(&bench).reserved_bytes, 16 * MIB, 32 * MIB);
    pool_bench_ok(gm_stream_sync(stream, err));
    block = take(&bench, 20 * MIB, NULL); /* which it does not serve */
    assert_in_range(pool_bench_stats(&bench).reserved_bytes, 20 * MIB, 32 * MIB);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
    pool_bench_ok(gm_stream_close(stream, err));
    pool_bench_close(&bench);
  }
}

static void test_a_pool_keeps_as_much_as_it_may(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    gm_block blocks[6];
    pool_bench bench;
    open_plain(&bench, true);
    make_pool(&bench, &(gm_pool_params){.strategy = strategies[s], .keep_bytes = 8 * MIB});
    for (size_t i = 0; i < 6; i++) blocks[i] = take(&bench, 4 * MIB, NULL);
    for (size_t i = 0; i < 6; i++) assert_int_equal(gm_free(bench.pool, &blocks[i], NULL), GM_OK);
    assert_in_range(pool_bench_stats(&bench).pooled_bytes, 4 * MIB, 8 * MIB);
    const uint64_t calls = pool_bench_stats(&bench).driver_allocs;
    blocks[0] = take(&bench, 4 * MIB, NULL); /* what was kept serves */
    assert_int_equal(pool_bench_stats(&bench).driver_allocs, calls);
    assert_int_equal(gm_free(bench.pool, &blocks[0], NULL), GM_OK);
    pool_bench_close(&bench);
  }
}

/* ---- a pool that is never trimmed ---- */

static void test_no_shortage_takes_memory_from_a_pool_that_is_never_trimmed(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    for (int holds = 0; holds < 2; holds++) {
      pool_bench bench;
      gm_pool *needy = NULL;
      gm_memory_info memory = {.struct_size = sizeof memory};
      open_plain(&bench, true);
      make_pool(&bench, &(gm_pool_params){.strategy = strategies[s], .flags = holds ? GM_POOL_NO_TRIM : 0});
      gm_block block = take(&bench, 40 * MIB, NULL);
      assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
      pool_bench_stats(&bench); /* looks at what is idle */
      pool_bench_ok(gm_device_memory_info(bench.device, &memory, err));
      assert_true(holds ? memory.reclaimable_bytes == 0 : memory.reclaimable_bytes >= 40 * MIB);
      pool_bench_ok(gm_pool_create(bench.device, NULL, &needy, err));
      const gm_request request = {.bytes = 40 * MIB};
      const gm_acquire answer = gm_alloc(needy, &request, &block);
      assert_int_equal(answer, holds ? GM_ACQUIRE_EXHAUSTED : GM_ACQUIRE_FRESH);
      if (gm_acquired(answer)) assert_int_equal(gm_free(needy, &block, NULL), GM_OK);
      pool_bench_ok(gm_pool_destroy(needy, err));
      if (holds) assert_true(pool_bench_stats(&bench).reserved_bytes >= 40 * MIB);
      if (holds) assert_true(gm_pool_trim(bench.pool, 0) >= 40 * MIB); /* the engine's own word */
      pool_bench_close(&bench);
    }
  }
}

/* Neither a full bucket, nor growth, nor its own shortage gives anything back. */
static void test_a_pool_that_is_never_trimmed_frees_nothing_by_itself(void **state) {
  (void)state;
  enum { MANY = 16 };
  for (size_t s = 0; s < 2; s++) {
    gm_block blocks[MANY];
    pool_bench bench;
    open_plain(&bench, true);
    pool_bench_ok(gm_config_set(bench.ctx, "max_pooled_per_bucket", "1", err));
    pool_bench_ok(gm_config_set(bench.ctx, "cache.max_bytes", "1", err));
    pool_bench_ok(gm_config_set(bench.ctx, "cache.max_age", "0", err));
    make_pool(&bench, &(gm_pool_params){.strategy = strategies[s], .flags = GM_POOL_NO_TRIM});
    for (int turn = 0; turn < 3; turn++) {
      for (size_t i = 0; i < MANY; i++) blocks[i] = take(&bench, MIB << (turn > 0), NULL);
      for (size_t i = 0; i < MANY; i++) assert_int_equal(gm_free(bench.pool, &blocks[i], NULL), GM_OK);
    }
    const gm_request request = {.bytes = 60 * MIB};
    assert_int_equal(gm_alloc(bench.pool, &request, &blocks[0]), GM_ACQUIRE_EXHAUSTED);
    assert_int_equal(pool_bench_stats(&bench).driver_frees, 0);
    assert_true(gm_pool_clear(bench.pool) > 0);
    pool_bench_close(&bench);
  }
}

/* ---- a private pool for captures ---- */

/* Every call that gives idle memory back, and every figure that says how much that would be. */
static void gives_nothing(pool_bench *bench) {
  gm_memory_info memory = {.struct_size = sizeof memory};
  gm_stats of_device = {.struct_size = sizeof of_device}, of_all = {.struct_size = sizeof of_all};
  uint64_t given = 1;
  assert_true(pool_bench_stats(bench).pooled_bytes >= 4 * MIB);
  assert_int_equal(pool_bench_stats(bench).reclaimable_bytes, 0);
  pool_bench_ok(gm_device_stats(bench->device, &of_device, err));
  assert_int_equal(of_device.reclaimable_bytes, 0);
  pool_bench_ok(gm_context_stats(bench->ctx, &of_all, err));
  assert_int_equal(of_all.reclaimable_bytes, 0);
  pool_bench_ok(gm_device_memory_info(bench->device, &memory, err));
  assert_int_equal(memory.reclaimable_bytes, 0);
  assert_int_equal(gm_pool_collect(bench->pool), 0);
  assert_int_equal(gm_pool_coalesce(bench->pool, false), 0);
  assert_int_equal(gm_pool_coalesce(bench->pool, true), 0);
  assert_int_equal(gm_pool_trim(bench->pool, 0), 0);
  assert_int_equal(gm_pool_clear(bench->pool), 0);
  assert_int_equal(gm_pool_shrink(bench->pool, 0), 0);
  pool_bench_ok(gm_pool_cleanup(bench->pool, 0, true, &given, err));
  assert_int_equal(given, 0);
  assert_int_equal(pool_bench_stats(bench).driver_frees, 0);
}

static void test_a_pool_for_captures_gives_nothing_back_and_says_so(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    for (int dedicated = 0; dedicated < 2; dedicated++) {
      pool_bench bench;
      gm_block block;
      open_plain(&bench, true);
      make_pool(&bench, &(gm_pool_params){.strategy = strategies[s], .flags = GM_POOL_CAPTURES});
      const gm_request request = {.bytes = 4 * MIB, .flags = dedicated ? GM_DEDICATED : 0};
      assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
      assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
      gives_nothing(&bench);
      pool_bench_close(&bench);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_defaults_hold_on_own_devices_only),
      cmocka_unit_test(test_keys_that_somebody_set_hold_on_adopted_devices),
      cmocka_unit_test(test_a_preset_is_set_by_somebody),
      cmocka_unit_test(test_each_pool_has_its_own_limits),
      cmocka_unit_test(test_wrong_limits_are_refused),
      cmocka_unit_test(test_pressure_is_known_without_limits),
      cmocka_unit_test(test_a_pool_that_keeps_nothing_gives_back_in_the_free),
      cmocka_unit_test(test_memory_with_work_left_goes_back_at_a_later_call),
      cmocka_unit_test(test_a_pool_keeps_as_much_as_it_may),
      cmocka_unit_test(test_no_shortage_takes_memory_from_a_pool_that_is_never_trimmed),
      cmocka_unit_test(test_a_pool_that_is_never_trimmed_frees_nothing_by_itself),
      cmocka_unit_test(test_a_pool_for_captures_gives_nothing_back_and_says_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
