/* Reservations: what is promised to one is refused to all others, and comes back when the reservation ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/device/device.h"
#include "gm/fit.h"
#include "gm/reserve.h"
#include "gm/warm_up.h"
#include "support/fake_backend.h"
#include "support/host_upstream.h"
#include "support/shared_card.h"

enum { CAPACITY = 64 }; /* MiB */

static gm_status hold(gm_device *device, uint64_t bytes, gm_reservation **out, gm_error *err) {
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = bytes, .name = "test"};
  return gm_reserve(device, &params, out, err);
}

static gm_reservation_info read_of(const gm_reservation *reservation) {
  gm_reservation_info info = {.struct_size = sizeof info};
  pool_bench_ok(gm_reservation_read(reservation, &info, err));
  return info;
}

static gm_memory_info memory_of(const pool_bench *bench) {
  gm_memory_info memory = {.struct_size = sizeof memory};
  pool_bench_ok(gm_device_memory_info(bench->device, &memory, err));
  return memory;
}

/* In buckets each allocation takes exactly what is asked for. */
static const gm_pool_params exact = {.struct_size = sizeof exact, .strategy = GM_STRATEGY_BUCKET, .name = "exact"};

static bool take(gm_pool *pool, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes};
  return gm_alloc(pool, &request, out) <= GM_ACQUIRE_FRESH;
}

static void give(gm_pool *pool, gm_block *block) {
  assert_int_equal(gm_free(pool, block, NULL), GM_OK);
  gm_pool_trim(pool, 0);
}

static void test_what_is_promised_is_refused_to_others(void **state) {
  (void)state;
  pool_bench bench;
  gm_reservation *held = NULL;
  gm_block block;
  gm_explanation why = {.struct_size = sizeof why};
  shared_card_reset(CAPACITY * MIB);
  shared_card_open(&bench, &exact);
  pool_bench_ok(hold(bench.device, 40 * MIB, &held, err));
  assert_int_equal(read_of(held).left_bytes, 40 * MIB);
  assert_string_equal(read_of(held).name, "test");
  assert_string_equal(read_of(held).pool, "");
  assert_false(take(bench.pool, 32 * MIB, &block));
  pool_bench_ok(gm_explain(bench.pool, NULL, &why, err));
  assert_int_equal(why.last_failure.status, GM_ERR_OVER_LIMIT);
  assert_non_null(strstr(why.last_failure.message, "reservations hold"));
  assert_true(take(bench.pool, 16 * MIB, &block)); /* the rest is for all */
  give(bench.pool, &block);
  gm_reservation_cancel(held);
  assert_true(take(bench.pool, 32 * MIB, &block));
  give(bench.pool, &block);
  pool_bench_close(&bench);
}

static void test_a_promise_bounds_a_pool_without_limits(void **state) {
  (void)state;
  pool_bench bench;
  gm_reservation *held = NULL;
  gm_block block;
  gm_pool_params params = exact;
  params.min_free_bytes = GM_NO_LIMIT;
  params.memory_fraction = 1;
  shared_card_reset(CAPACITY * MIB);
  shared_card_open(&bench, &params);
  pool_bench_ok(hold(bench.device, 40 * MIB, &held, err));
  assert_false(take(bench.pool, 32 * MIB, &block));
  assert_true(take(bench.pool, 16 * MIB, &block));
  give(bench.pool, &block);
  gm_reservation_cancel(held);
  pool_bench_close(&bench);
}

static void test_a_pool_takes_its_own_promise_first(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool *other = NULL;
  gm_reservation *first = NULL, *second = NULL;
  gm_block block, more;
  shared_card_reset(CAPACITY * MIB);
  shared_card_open(&bench, &exact);
  pool_bench_ok(gm_pool_create(bench.device, &exact, &other, err));
  pool_bench_ok(gm_pool_reserve(bench.pool, 16 * MIB, &first, err));
  pool_bench_ok(hold(bench.device, 32 * MIB, &second, err));
  pool_bench_ok(gm_reservation_commit(second, bench.pool, err));
  assert_string_equal(read_of(first).pool, "exact");
  assert_false(take(other, 32 * MIB, &block));
  assert_true(take(bench.pool, 32 * MIB, &block));
  assert_int_equal(read_of(first).taken_bytes, 16 * MIB);
  assert_int_equal(read_of(second).taken_bytes, 16 * MIB);
  assert_int_equal(memory_of(&bench).promised_bytes, 16 * MIB);
  give(bench.pool, &block); /* the memory is for all now */
  assert_int_equal(read_of(second).left_bytes, 16 * MIB);
  assert_true(take(other, 32 * MIB, &more));
  assert_true(take(bench.pool, 16 * MIB, &block));
  assert_int_equal(read_of(second).left_bytes, 0);
  give(bench.pool, &block);
  give(other, &more);
  gm_reservation_cancel(first);
  gm_reservation_cancel(second);
  pool_bench_ok(gm_pool_destroy(other, err));
  pool_bench_close(&bench);
}

static void test_a_promise_stays_when_the_driver_refuses(void **state) {
  (void)state;
  const gm_pool_params kinds[] = {
      exact, {.struct_size = sizeof kinds[0]}, {.struct_size = sizeof kinds[0], .no_vmm = true}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    pool_bench bench;
    gm_reservation *held = NULL;
    gm_block block;
    shared_card_reset(CAPACITY * MIB);
    shared_card_open(&bench, &kinds[i]);
    pool_bench_ok(gm_pool_reserve(bench.pool, 48 * MIB, &held, err));
    atomic_store(&shared_card->refuse, 1000);
    assert_false(take(bench.pool, 32 * MIB, &block));
    atomic_store(&shared_card->refuse, 0);
    assert_int_equal(read_of(held).left_bytes, 48 * MIB);
    assert_int_equal(memory_of(&bench).promised_bytes, 48 * MIB);
    assert_true(take(bench.pool, 32 * MIB, &block));
    assert_true(read_of(held).taken_bytes >= 32 * MIB);
    give(bench.pool, &block);
    gm_reservation_cancel(held);
    assert_int_equal(memory_of(&bench).promised_bytes, 0);
    pool_bench_close(&bench);
  }
}

static void test_contexts_share_the_promises_of_a_card(void **state) {
  (void)state;
  pool_bench one, other;
  gm_reservation *held = NULL, *more = NULL;
  gm_block block;
  shared_card_reset(CAPACITY * MIB);
  shared_card_open(&one, &exact);
  shared_card_open(&other, &exact);
  pool_bench_ok(hold(one.device, 40 * MIB, &held, err));
  assert_int_equal(hold(other.device, 40 * MIB, &more, NULL), GM_ERR_OVER_LIMIT);
  assert_int_equal(memory_of(&other).promised_bytes, 40 * MIB);
  assert_false(take(other.pool, 32 * MIB, &block));
  assert_int_equal(gm_reservation_commit(held, other.pool, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_reservation_cancel(held);
  pool_bench_ok(hold(other.device, 40 * MIB, &more, err));
  gm_reservation_cancel(more);
  pool_bench_close(&one);
  pool_bench_close(&other);
}

static void test_what_must_stay_free_is_not_promised(void **state) {
  (void)state;
  pool_bench bench;
  gm_reservation *held = NULL;
  shared_card_reset(CAPACITY * MIB);
  shared_card_open_device(&bench, "1", "8M");
  assert_int_equal(hold(bench.device, 56 * MIB + 1, &held, NULL), GM_ERR_OVER_LIMIT);
  pool_bench_ok(hold(bench.device, 56 * MIB, &held, err));
  gm_reservation_cancel(held);
  pool_bench_ok(gm_config_set(bench.ctx, "memory_fraction", "0.5", err));
  assert_int_equal(hold(bench.device, 32 * MIB + 1, &held, NULL), GM_ERR_OVER_LIMIT);
  pool_bench_ok(hold(bench.device, 32 * MIB, &held, err));
  gm_reservation_cancel(held);
  pool_bench_close(&bench);
}

static void test_idle_memory_goes_back_for_a_reservation(void **state) {
  (void)state;
  pool_bench bench;
  gm_reservation *held = NULL;
  gm_block block;
  shared_card_reset(CAPACITY * MIB);
  shared_card_open(&bench, &exact);
  assert_true(take(bench.pool, 32 * MIB, &block));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 32 * MIB);
  pool_bench_ok(hold(bench.device, 60 * MIB, &held, err));
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
  gm_reservation_cancel(held);
  pool_bench_close(&bench);
}

static void test_nothing_ends_under_a_reservation(void **state) {
  (void)state;
  pool_bench bench;
  gm_reservation *held = NULL;
  gm_error told = {.status = GM_OK};
  shared_card_reset(CAPACITY * MIB);
  shared_card_open(&bench, &exact);
  pool_bench_ok(gm_pool_reserve(bench.pool, 8 * MIB, &held, err));
  assert_int_equal(gm_pool_destroy(bench.pool, &told), GM_ERR_BUSY);
  assert_non_null(strstr(told.message, "reservations"));
  pool_bench_ok(gm_pool_destroy_force(bench.pool, err)); /* the promise outlives its pool */
  assert_int_equal(read_of(held).left_bytes, 8 * MIB);
  assert_int_equal(gm_device_close(bench.device, &told), GM_ERR_BUSY);
  assert_non_null(strstr(told.message, "reservations"));
  assert_int_equal(memory_of(&bench).promised_bytes, 8 * MIB);
  gm_reservation_cancel(held);
  assert_int_equal(memory_of(&bench).promised_bytes, 0);
  bench.pool = NULL;
  pool_bench_close(&bench);
}

static void test_wrong_arguments_are_refused(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool *upstream_pool = NULL;
  gm_reservation *held = NULL;
  gm_reserve_params params = {.struct_size = sizeof params};
  gm_reservation_info info = {.struct_size = 4};
  shared_card_reset(CAPACITY * MIB);
  shared_card_open(&bench, &exact);
  const gm_pool_params over = {.struct_size = sizeof over, .upstream = &host_upstream};
  pool_bench_ok(gm_pool_create(bench.device, &over, &upstream_pool, err));
  assert_int_equal(gm_reserve(NULL, &params, &held, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_reserve(bench.device, NULL, &held, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_reserve(bench.device, &params, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_reserve(bench.device, &params, &held, NULL), GM_ERR_INVALID_ARGUMENT); /* of no bytes */
  params.bytes = UINT64_MAX;
  assert_int_equal(gm_reserve(bench.device, &params, &held, NULL), GM_ERR_OVER_LIMIT);
  params.flags = 1;
  assert_int_equal(gm_reserve(bench.device, &params, &held, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_reserve(NULL, 1, &held, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_reserve(bench.pool, 1, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_reserve(upstream_pool, 1, &held, NULL), GM_ERR_NOT_SUPPORTED);
  assert_null(held);
  pool_bench_ok(hold(bench.device, MIB, &held, err));
  assert_int_equal(gm_reservation_commit(NULL, bench.pool, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_reservation_commit(held, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_reservation_commit(held, upstream_pool, NULL), GM_ERR_NOT_SUPPORTED);
  pool_bench_ok(gm_reservation_commit(held, bench.pool, err));
  assert_int_equal(gm_reservation_commit(held, bench.pool, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_reservation_read(NULL, &info, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_reservation_read(held, &info, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_reservation_cancel(held);
  gm_reservation_cancel(NULL);
  pool_bench_ok(gm_pool_destroy(upstream_pool, err));
  pool_bench_close(&bench);
}

static void test_a_card_without_figures_promises_nothing(void **state) {
  (void)state;
  pool_bench bench;
  gm_reservation *held = NULL;
  fake_backend_reset();
  fake.total[0] = 0;
  fake.figures_status = GM_ERR_DRIVER;
  counted_services_init(&bench.host);
  const gm_context_params context = {
      .struct_size = sizeof context, .services = &bench.host.services, .ignore_environment = true};
  pool_bench_ok(gm_context_create(&context, &bench.ctx, err));
  pool_bench_ok(gm_config_set(bench.ctx, "reserve.share", "off", err));
  pool_bench_ok(gm_backend_register(bench.ctx, &fake_ops, err));
  pool_bench_ok(gm_device_open_index(bench.ctx, "fake", 0, &bench.device, err));
  pool_bench_ok(gm_pool_create(bench.device, &exact, &bench.pool, err));
  assert_int_equal(hold(bench.device, 1, &held, NULL), GM_ERR_NOT_FOUND);
  assert_null(held);
  pool_bench_close(&bench);
}

/* A look at other processes' promises may be old: they may have taken since what they promised then. */
static void test_an_old_look_takes_nothing_from_a_promise(void **state) {
  (void)state;
  pool_bench bench;
  gm_reservation *held = NULL;
  gm_block block;
  shared_card_reset(CAPACITY * MIB);
  shared_card_open(&bench, &exact);
  pool_bench_ok(gm_pool_reserve(bench.pool, 16 * MIB, &held, err));
  shared_card_take(48 * MIB);
  atomic_store(&bench.device->room.card->others, 48 * MIB);
  assert_false(take(bench.pool, 32 * MIB, &block));
  assert_true(take(bench.pool, 16 * MIB, &block));
  give(bench.pool, &block);
  assert_false(take(bench.pool, 16 * MIB, &block)); /* it is promised no more */
  atomic_store(&bench.device->room.card->others, 0);
  gm_reservation_cancel(held);
  pool_bench_close(&bench);
}

/* ---- fit ---- */

static void test_a_fit_is_held_on_all_devices_or_on_none(void **state) {
  (void)state;
  pool_bench bench;
  gm_device *devices[3] = {NULL};
  gm_reservation *held[3] = {NULL};
  gm_fit_part parts[3] = {{.bytes = 24 * MIB}, {.bytes = 0}, {.bytes = 24 * MIB}};
  gm_fit_device room = {.name = NULL};
  shared_card_reset(CAPACITY * MIB);
  shared_card_open(&bench, &exact);
  devices[0] = devices[1] = bench.device;
  pool_bench_ok(gm_device_open_index(bench.ctx, "shared", 1, &devices[2], err));
  pool_bench_ok(gm_fit_commit(devices, parts, 3, held, err));
  assert_null(held[1]);
  assert_string_equal(read_of(held[2]).name, "fit 2");
  pool_bench_ok(gm_fit_device_read(bench.device, &room, err));
  assert_int_equal(room.free_bytes, 40 * MIB);
  gm_reservation *more[3] = {held[0], held[0], held[0]};
  parts[2].bytes = 44 * MIB; /* the last one says no */
  assert_int_equal(gm_fit_commit(devices, parts, 3, more, NULL), GM_ERR_OVER_LIMIT);
  for (int i = 0; i < 3; i++) assert_null(more[i]);
  assert_int_equal(memory_of(&bench).promised_bytes, 24 * MIB);
  assert_int_equal(gm_fit_commit(NULL, parts, 3, more, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_fit_commit(devices, parts, GM_FIT_DEVICES_MAX + 1, more, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_fit_commit(devices, parts, 0, more, err));
  for (int i = 0; i < 3; i++) gm_reservation_cancel(held[i]);
  pool_bench_ok(gm_device_close(devices[2], err));
  pool_bench_close(&bench);
}

static void test_a_selection_leaves_promises_alone(void **state) {
  (void)state;
  pool_bench bench;
  gm_reservation *held = NULL;
  const gm_select_params params = {.struct_size = sizeof params, .prefer = "shared"};
  gm_selection selection = {.struct_size = sizeof selection};
  shared_card_reset(CAPACITY * MIB);
  shared_card_open(&bench, &exact);
  pool_bench_ok(hold(bench.device, 40 * MIB, &held, err));
  const uint32_t opened = gm_device_get_info(bench.device)->index;
  pool_bench_ok(gm_select_backend_for_bytes(bench.ctx, 32 * MIB, &params, &selection, err));
  gm_device *chosen = NULL;
  pool_bench_ok(gm_device_open(bench.ctx, &selection.id, &chosen, err));
  assert_int_not_equal(gm_device_get_info(chosen)->index, opened);
  pool_bench_ok(gm_device_close(chosen, err));
  gm_reservation_cancel(held);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_is_promised_is_refused_to_others),
      cmocka_unit_test(test_a_promise_bounds_a_pool_without_limits),
      cmocka_unit_test(test_a_pool_takes_its_own_promise_first),
      cmocka_unit_test(test_a_promise_stays_when_the_driver_refuses),
      cmocka_unit_test(test_contexts_share_the_promises_of_a_card),
      cmocka_unit_test(test_what_must_stay_free_is_not_promised),
      cmocka_unit_test(test_idle_memory_goes_back_for_a_reservation),
      cmocka_unit_test(test_nothing_ends_under_a_reservation),
      cmocka_unit_test(test_wrong_arguments_are_refused),
      cmocka_unit_test(test_a_card_without_figures_promises_nothing),
      cmocka_unit_test(test_an_old_look_takes_nothing_from_a_promise),
      cmocka_unit_test(test_a_fit_is_held_on_all_devices_or_on_none),
      cmocka_unit_test(test_a_selection_leaves_promises_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
