/* A pool on each of several devices, and what they hold together. */
#include "gm/pool_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/pool_bench.h"

#define MIB (UINT64_C(1024) * 1024)

typedef struct set_bench {
  pool_bench bench; /* a context, and the null device */
  gm_device *devices[2];
  gm_pool_set *set;
} set_bench;

static void open_devices(set_bench *s) {
  pool_bench_open_device(&s->bench, "null", "null:capacity=64M");
  s->devices[0] = s->bench.device;
  s->set = NULL;
  pool_bench_ok(gm_device_open_index(s->bench.ctx, "cpu", 0, &s->devices[1], err));
}

static void close_devices(set_bench *s) {
  pool_bench_ok(gm_pool_set_destroy(s->set, err));
  pool_bench_ok(gm_device_close(s->devices[1], err));
  pool_bench_close(&s->bench);
}

static void take(gm_pool *pool, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes};
  assert_in_range(gm_alloc(pool, &request, out), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
}

static void test_usage_of_each_and_of_all(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BUCKET, .name = "shard"};
  set_bench s;
  gm_block a, b;
  gm_memory_usage usage[2], total;
  gm_stats stats = {.struct_size = sizeof stats};
  open_devices(&s);
  pool_bench_ok(gm_pool_set_create(s.devices, 2, &params, &s.set, err));
  assert_int_equal(gm_pool_set_count(s.set), 2);
  assert_ptr_equal(gm_pool_device(gm_pool_set_pool(s.set, 1)), s.devices[1]);
  assert_string_equal(gm_pool_name(gm_pool_set_find(s.set, s.devices[0])), "shard");
  assert_null(gm_pool_set_pool(s.set, 2));
  assert_null(gm_pool_set_find(s.set, NULL));
  take(gm_pool_set_pool(s.set, 0), 2 * MIB, &a);
  take(gm_pool_set_pool(s.set, 1), MIB, &b);
  assert_int_equal(gm_free(gm_pool_set_pool(s.set, 0), &a, NULL), GM_OK);
  assert_int_equal(gm_pool_set_usage(s.set, usage, 1), 2);
  assert_int_equal(gm_pool_set_usage(s.set, usage, 2), 2);
  assert_ptr_equal(usage[0].device, s.devices[0]);
  assert_int_equal(usage[0].in_use_bytes, 0);
  assert_int_equal(usage[0].reserved_bytes, 2 * MIB);
  assert_int_equal(usage[0].peak_in_use_bytes, 2 * MIB);
  assert_int_equal(usage[1].in_use_bytes, MIB);
  pool_bench_ok(gm_total_memory_usage(s.set, &total, err));
  assert_null(total.device);
  assert_int_equal(total.in_use_bytes, MIB);
  assert_int_equal(total.reserved_bytes, 3 * MIB);
  assert_int_equal(total.peak_reserved_bytes, 3 * MIB);
  pool_bench_ok(gm_pool_set_stats(s.set, &stats, err));
  assert_int_equal(stats.allocs, 2);
  assert_int_equal(stats.active, 1);
  assert_int_equal(gm_pool_set_trim(s.set, 0), 2 * MIB);
  assert_int_equal(gm_pool_set_destroy(s.set, NULL), GM_ERR_BUSY); /* and nothing changed */
  assert_int_equal(gm_pool_set_count(s.set), 2);
  assert_int_equal(gm_free(gm_pool_set_pool(s.set, 1), &b, NULL), GM_OK);
  close_devices(&s);
}

/* Memory that a guard still holds back is nobody's any more. */
static void test_freed_blocks_that_are_held_back_do_not_keep_a_set(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .debug = GM_DEBUG_CHECK_FREED};
  set_bench s;
  gm_block block;
  open_devices(&s);
  pool_bench_ok(gm_pool_set_create(&s.devices[1], 1, &params, &s.set, err));
  take(gm_pool_set_pool(s.set, 0), MIB, &block);
  assert_int_equal(gm_pool_set_destroy(s.set, NULL), GM_ERR_BUSY);
  assert_int_equal(gm_free(gm_pool_set_pool(s.set, 0), &block, NULL), GM_OK);
  close_devices(&s);
}

/* The documents' older calls, which are marked. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void test_older_calls_get_and_return(void **state) {
  (void)state;
  set_bench s;
  gm_error failure;
  gm_block block;
  open_devices(&s);
  pool_bench_ok(gm_pool_set_create(s.devices, 2, NULL, &s.set, err));
  for (size_t device = 0; device < 2; device++) {
    pool_bench_ok(gm_pool_set_get(s.set, device, 1000, GM_DTYPE_F32, &block, err));
    assert_true(block.bytes >= 4000);
    assert_int_equal(gm_pool_set_return(s.set, 1 - device, &block, 1000, GM_DTYPE_F32, &failure),
                     GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_pool_set_return(s.set, device, &block, 100000, GM_DTYPE_F32, &failure),
                     GM_ERR_INVALID_ARGUMENT);
    pool_bench_ok(gm_pool_set_return(s.set, device, &block, 1000, GM_DTYPE_F32, err));
  }
  assert_int_equal(gm_pool_set_get(s.set, 2, 1000, GM_DTYPE_F32, &block, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_set_get(s.set, 0, 0, GM_DTYPE_F32, &block, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_set_get(s.set, 0, UINT64_MAX, GM_DTYPE_F32, &block, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_set_get(s.set, 0, 1, (gm_dtype)999, &block, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_set_get(s.set, 0, 1, GM_DTYPE_F32, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_set_get(NULL, 0, 1, GM_DTYPE_F32, &block, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_set_return(s.set, 0, NULL, 1, GM_DTYPE_F32, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_not_equal(gm_pool_set_get(s.set, 0, UINT64_C(1) << 58, GM_DTYPE_F32, &block, &failure), GM_OK);
  assert_string_equal(failure.op, "gm_pool_set_get");
  close_devices(&s);
}
#pragma GCC diagnostic pop

static void test_bad_arguments(void **state) {
  (void)state;
  set_bench s;
  gm_stats stats = {.struct_size = sizeof stats};
  gm_memory_usage total;
  gm_pool_params bad = {.struct_size = 4};
  open_devices(&s);
  gm_device *twice[] = {s.devices[0], s.devices[0]}, *none[] = {s.devices[0], NULL};
  assert_int_equal(gm_pool_set_create(NULL, 1, NULL, &s.set, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_set_create(s.devices, 0, NULL, &s.set, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_set_create(twice, 2, NULL, &s.set, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_set_create(none, 2, NULL, &s.set, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_set_create(s.devices, 2, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_set_create(s.devices, 2, &bad, &s.set, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_null(s.set);
  assert_int_equal(gm_pool_set_stats(NULL, &stats, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_total_memory_usage(NULL, &total, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_total_memory_usage(s.set, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_set_count(NULL) + gm_pool_set_usage(NULL, &total, 1) + gm_pool_set_trim(NULL, 0), 0);
  close_devices(&s);
}

static void test_every_lack_of_host_memory_makes_no_set(void **state) {
  (void)state;
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  for (size_t n = 1; status; n++) {
    set_bench s;
    open_devices(&s);
    s.bench.host.fail_at = atomic_load(&s.bench.host.calls) + n;
    s.bench.host.fail_count = 1;
    status = gm_pool_set_create(s.devices, 2, NULL, &s.set, NULL);
    s.bench.host.fail_at = 0;
    if (status) assert_null(s.set);
    close_devices(&s);
    assert_in_range(n, 1, 50);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_usage_of_each_and_of_all),
      cmocka_unit_test(test_freed_blocks_that_are_held_back_do_not_keep_a_set),
      cmocka_unit_test(test_older_calls_get_and_return),
      cmocka_unit_test(test_bad_arguments),
      cmocka_unit_test(test_every_lack_of_host_memory_makes_no_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
