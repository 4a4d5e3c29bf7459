/* Buffers that leave the device when memory is short, and come back: who goes, who comes, and how often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/pressure.h"
#include "support/host_upstream.h"
#include "support/pinned_card.h"
#include "support/relocation_bench.h"

static const uint64_t an_hour_ns = UINT64_C(3600) * 1000000000;

static void touch(gm_buffer *buffer, int times) {
  for (int i = 0; i < times; i++) {
    pool_bench_ok(gm_buffer_lock(buffer, NULL, err));
    pool_bench_ok(gm_buffer_unlock(buffer, NULL, err));
  }
}

static bool is_on_device(const gm_buffer *buffer) { return gm_buffer_location(buffer) == GM_LOCATION_DEVICE; }

static gm_promote_report promote(gm_pool *pool, uint64_t max_bytes, uint64_t wait_ns) {
  const gm_promote_params params = {.struct_size = sizeof params, .max_bytes = max_bytes, .wait_ns = wait_ns};
  gm_promote_report report = {.struct_size = sizeof report};
  pool_bench_ok(gm_pool_promote(pool, &params, &report, err));
  return report;
}

static void test_the_hottest_comes_back_first(void **state) {
  (void)state;
  pool_bench bench;
  gm_buffer *buffers[4];
  open_card(&bench, 0, 0);
  for (int i = 0; i < 4; i++) {
    const gm_buffer_params params = {
        .struct_size = sizeof params, .request = {.bytes = MIB}, .fallback = GM_FALLBACK_HOST};
    pool_bench_ok(gm_buffer_create(bench.pool, &params, &buffers[i], err));
    relocation_fill(buffers[i]);
  }
  touch(buffers[2], 50);
  touch(buffers[1], 25);
  card.local_left = 64 * MIB;
  assert_int_equal(promote(bench.pool, 2 * MIB, 0).moves, 2);
  assert_true(is_on_device(buffers[2]) && is_on_device(buffers[1]));
  assert_false(is_on_device(buffers[0]) || is_on_device(buffers[3]));
  pool_bench_ok(gm_buffer_lock(buffers[0], NULL, err));
  assert_int_equal(promote(bench.pool, 0, 0).moved_bytes, MIB);
  assert_false(is_on_device(buffers[0])); /* it is locked */
  pool_bench_ok(gm_buffer_unlock(buffers[0], NULL, err));
  pool_bench_ok(gm_buffer_move(buffers[3], GM_LOCATION_HOST, NULL, err)); /* by the caller: it stays there */
  assert_int_equal(promote(bench.pool, 0, 0).moves, 1);
  assert_false(is_on_device(buffers[3]));
  for (int i = 0; i < 4; i++) {
    relocation_check(buffers[i]);
    gm_buffer_release(buffers[i], NULL);
  }
  gm_error failure;
  const gm_promote_params wrong = {.struct_size = 2};
  assert_int_equal(gm_pool_promote(bench.pool, &wrong, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_promote(NULL, NULL, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  pool_bench_close(&bench);
}

/* A pool of 32 MiB with a cap, where 16 MiB are 8 evictable buffers. */
static void open_evictable(pool_bench *bench, gm_buffer **buffers) {
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 32 * MIB, .no_vmm = true};
  pool_bench_open(bench, "cpu", NULL, &params);
  for (int i = 0; i < 8; i++) {
    buffers[i] = relocation_make(bench->pool, 2 * MIB, GM_EVICTABLE);
    relocation_fill(buffers[i]);
  }
}

static void close_evictable(pool_bench *bench, gm_buffer **buffers) {
  for (int i = 0; i < 8; i++) {
    relocation_check(buffers[i]);
    gm_buffer_release(buffers[i], NULL);
  }
  pool_bench_close(bench);
}

static int on_device(gm_buffer **buffers) {
  int count = 0;
  for (int i = 0; i < 8; i++) count += is_on_device(buffers[i]);
  return count;
}

static void test_the_coldest_leave_and_persistent_ones_last(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  gm_buffer *buffers[8];
  gm_block block, other;
  open_evictable(&bench, buffers);
  pool_bench_ok(gm_buffer_set_persistent(buffers[0], true, err));
  assert_int_equal(gm_buffer_set_persistent(NULL, true, &failure), GM_ERR_INVALID_ARGUMENT);
  for (int i = 1; i < 8; i++) touch(buffers[i], 10 * i);
  assert_int_equal(gm_buffer_block(buffers[1], &block, &failure), GM_ERR_INVALID_ARGUMENT);
  const gm_request large = {.bytes = 20 * MIB};
  assert_true(gm_acquired(gm_alloc(bench.pool, &large, &block)));
  assert_true(is_on_device(buffers[0]) && is_on_device(buffers[7]));
  assert_false(is_on_device(buffers[1]));
  pool_bench_ok(gm_buffer_lock(buffers[7], NULL, err));
  const gm_request rest = {.bytes = 10 * MIB};
  assert_true(gm_acquired(gm_alloc(bench.pool, &rest, &other)));
  assert_true(is_on_device(buffers[7])); /* it is locked, so the persistent one had to go */
  assert_int_equal(on_device(buffers), 1);
  pool_bench_ok(gm_buffer_unlock(buffers[7], NULL, err));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &other, NULL), GM_OK);
  close_evictable(&bench, buffers);
}

static uint64_t come_back(pool_bench *bench, gm_buffer **buffers, bool polls, uint64_t wait_ns) {
  const int before = on_device(buffers);
  if (!polls) return promote(bench->pool, 0, wait_ns).moves;
  pool_bench_ok(gm_context_poll(bench->ctx, err));
  return (uint64_t)(on_device(buffers) - before);
}

/* A neighbour takes and gives back most of the memory, again and again. */
static uint64_t moves_beside_a_neighbour(uint64_t wait_ns, bool polls) {
  enum { TURNS = 40 };
  pool_bench bench;
  gm_buffer *buffers[8];
  gm_block block;
  uint64_t moves = 0;
  open_evictable(&bench, buffers);
  const gm_promote_params polled = {.struct_size = sizeof polled, .wait_ns = wait_ns};
  pool_bench_ok(gm_pool_promote_on_poll(bench.pool, polls ? &polled : NULL, err));
  for (int turn = 0; turn < TURNS; turn++) {
    const gm_request large = {.bytes = 24 * MIB};
    const int before = on_device(buffers);
    assert_true(gm_acquired(gm_alloc(bench.pool, &large, &block)));
    moves += (uint64_t)(before - on_device(buffers));
    moves += come_back(&bench, buffers, polls, wait_ns); /* the neighbour is there: the pressure is high */
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    moves += come_back(&bench, buffers, polls, wait_ns);
    for (int i = 0; i < 8; i++) touch(buffers[i], 1);
  }
  close_evictable(&bench, buffers);
  return moves;
}

static void test_a_noisy_neighbour_does_not_make_buffers_go_to_and_fro(void **state) {
  (void)state;
  for (int polls = 0; polls < 2; polls++) {
    const uint64_t without = moves_beside_a_neighbour(1, polls), with = moves_beside_a_neighbour(an_hour_ns, polls);
    printf("  40 turns of a neighbour%s: %llu moves, and %llu without the wait\n", polls ? ", by polls" : "",
           (unsigned long long)with, (unsigned long long)without);
    assert_true(with > 0);
    assert_true(with <= 8);
    assert_true(without > 4 * with);
  }
}

/* ---- by polls ---- */

static void test_a_poll_promotes_where_a_pool_asked_for_it(void **state) {
  (void)state;
  pool_bench bench;
  gm_buffer *buffers[8];
  gm_block block;
  gm_error failure;
  gm_promote_params params = {.struct_size = sizeof params, .max_bytes = 4 * MIB, .wait_ns = 1};
  const gm_request large = {.bytes = 30 * MIB};
  open_evictable(&bench, buffers);
  assert_true(gm_acquired(gm_alloc(bench.pool, &large, &block)));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  const int left = on_device(buffers);
  assert_true(left < 4);
  pool_bench_ok(gm_context_poll(bench.ctx, err));
  assert_int_equal(on_device(buffers), left); /* nobody asked */
  pool_bench_ok(gm_pool_promote_on_poll(bench.pool, &params, err));
  for (int i = 1; i <= 2; i++) {
    pool_bench_ok(gm_context_poll(bench.ctx, err));
    assert_int_equal(on_device(buffers), left + 2 * i);
  }
  pool_bench_ok(gm_pool_promote_on_poll(bench.pool, NULL, err));
  pool_bench_ok(gm_context_poll(bench.ctx, err));
  assert_int_equal(on_device(buffers), left + 4); /* no longer */
  gm_stream *stream = NULL;
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  params.stream = stream;
  assert_int_equal(gm_pool_promote_on_poll(bench.pool, &params, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_promote_on_poll(NULL, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  params.struct_size = 2;
  assert_int_equal(gm_pool_promote_on_poll(bench.pool, &params, &failure), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_stream_close(stream, err));
  close_evictable(&bench, buffers);
}

static void test_a_pool_with_an_upstream_is_not_polled(void **state) {
  (void)state;
  pool_bench bench;

  const gm_pool_params params = {.struct_size = sizeof params, .upstream = &host_upstream};
  const gm_promote_params asked = {.struct_size = sizeof asked};
  pool_bench_open(&bench, "cpu", NULL, &params);
  assert_int_equal(gm_pool_promote_on_poll(bench.pool, &asked, NULL), GM_ERR_NOT_SUPPORTED);
  pool_bench_ok(gm_pool_promote_on_poll(bench.pool, NULL, err));
  pool_bench_close(&bench);
}

/* ---- to pinned memory ---- */

/* A card whose 16 MiB are 8 evictable buffers, and a request for half of it. */
static void demote_on_card(gm_fallback fallback, gm_must_be must_be, uint64_t pinned, gm_location expected, int pins) {
  pool_bench bench;
  gm_buffer *buffers[8];
  gm_block block;
  int there = 0;
  open_card(&bench, 16 * MIB, pinned);
  for (int i = 0; i < 8; i++) {
    const gm_buffer_params params = {
        .struct_size = sizeof params,
        .request = {.bytes = 2 * MIB, .flags = GM_EVICTABLE | GM_DEDICATED, .must_be = must_be},
        .fallback = fallback};
    pool_bench_ok(gm_buffer_create(bench.pool, &params, &buffers[i], err));
    relocation_fill(buffers[i]);
  }
  const gm_request large = {.bytes = 8 * MIB, .flags = GM_DEDICATED};
  assert_true(gm_acquired(gm_alloc(bench.pool, &large, &block)));
  for (int i = 0; i < 8; i++) there += gm_buffer_location(buffers[i]) == expected;
  assert_int_equal(there, pins);
  assert_int_equal(on_device(buffers), 4);
  assert_int_equal(pool_bench_stats(&bench).fallback_bytes, 8 * MIB);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  gm_pool_trim(bench.pool, 0);
  assert_int_equal(promote(bench.pool, 0, 1).moves, 4); /* all come back from there */
  close_evictable(&bench, buffers);
}

static void test_pinned_memory_comes_before_host_memory(void **state) {
  (void)state;
  demote_on_card(GM_FALLBACK_HOST, GM_DEVICE_LOCAL, 64 * MIB, GM_LOCATION_PINNED, 4);
  demote_on_card(GM_FALLBACK_PINNED, GM_DEVICE_LOCAL, 64 * MIB, GM_LOCATION_PINNED, 4);
  demote_on_card(GM_FALLBACK_HOST, GM_DEVICE_LOCAL, 5 * MIB, GM_LOCATION_PINNED, 2); /* the system's limit */
  demote_on_card(GM_FALLBACK_PINNED, GM_DEVICE_LOCAL, 0, GM_LOCATION_HOST, 4);
  demote_on_card(GM_FALLBACK_REFUSE, GM_DEVICE_LOCAL, 64 * MIB, GM_LOCATION_HOST, 4);    /* the buffer's policy */
  demote_on_card(GM_FALLBACK_HOST, GM_DEVICE_ACCESSIBLE, 64 * MIB, GM_LOCATION_HOST, 4); /* pinned is as good to it */
}

/* Pinned memory counts against the pool's cap. So it does not help where the cap is short. */
static void test_a_cap_that_is_short_needs_host_memory(void **state) {
  (void)state;
  pool_bench bench;
  gm_buffer *buffers[8];
  gm_block block;
  open_card(&bench, 64 * MIB, 64 * MIB);
  pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 32 * MIB, err));
  for (int i = 0; i < 8; i++) {
    const gm_buffer_params params = {.struct_size = sizeof params,
                                     .request = {.bytes = 2 * MIB, .flags = GM_EVICTABLE | GM_DEDICATED},
                                     .fallback = GM_FALLBACK_HOST};
    pool_bench_ok(gm_buffer_create(bench.pool, &params, &buffers[i], err));
    relocation_fill(buffers[i]);
  }
  const gm_request large = {.bytes = 20 * MIB, .flags = GM_DEDICATED};
  assert_true(gm_acquired(gm_alloc(bench.pool, &large, &block)));
  for (int i = 0; i < 8; i++) assert_int_not_equal(gm_buffer_location(buffers[i]), GM_LOCATION_PINNED);
  assert_int_equal(on_device(buffers), 6);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  close_evictable(&bench, buffers);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_hottest_comes_back_first),
      cmocka_unit_test(test_the_coldest_leave_and_persistent_ones_last),
      cmocka_unit_test(test_a_noisy_neighbour_does_not_make_buffers_go_to_and_fro),
      cmocka_unit_test(test_a_poll_promotes_where_a_pool_asked_for_it),
      cmocka_unit_test(test_a_pool_with_an_upstream_is_not_polled),
      cmocka_unit_test(test_pinned_memory_comes_before_host_memory),
      cmocka_unit_test(test_a_cap_that_is_short_needs_host_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
