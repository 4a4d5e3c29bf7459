/* Managed memory of the driver, on the simulated CUDA and HIP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "gm/buffer.h"
#include "gm/managed.h"
#include "transfer/played_driver.h"

enum { BYTES = 300000 };

static gm_status managed_make(const world_end *end, uint64_t bytes, gm_managed **out, gm_error *err) {
  const gm_managed_params params = {.struct_size = sizeof params, .bytes = bytes, .zero = true};
  return gm_managed_create(end->pool, &params, out, err);
}

static void check_turns(const world_end *end, bool native) {
  gm_managed *managed = NULL;
  gm_point point = {0, 0, 0};
  world_ok(managed_make(end, BYTES, &managed, err));
  assert_int_equal(gm_managed_is_native(managed), native);
  unsigned char *host = gm_managed_host(managed);
  for (unsigned i = 0; i < BYTES; i++) assert_int_equal(host[i], 0);
  memset(host, 'h', BYTES);
  world_ok(gm_managed_advise(managed, GM_ADVICE_STAY_ON, GM_MANAGED_ON_DEVICE, 0, BYTES, true, err));
  world_ok(gm_managed_prefetch(managed, GM_MANAGED_ON_DEVICE, 0, BYTES, end->stream, &point, err));
  world_ok(gm_block_fill(end->pool, gm_managed_block(managed), 10, 100, "d", 1, end->stream, NULL, err));
  gm_point_release(end->device, &point);
  world_ok(gm_managed_prefetch(managed, GM_MANAGED_ON_HOST, 0, BYTES, end->stream, NULL, err));
  for (unsigned i = 0; i < BYTES; i++) assert_int_equal(host[i], i >= 10 && i < 110 ? 'd' : 'h');
  world_ok(gm_managed_advise(managed, GM_ADVICE_STAY_ON, GM_MANAGED_ON_DEVICE, 0, BYTES, false, err));
  gm_managed_info info = {.struct_size = sizeof info};
  world_ok(gm_managed_get_info(managed, &info, err));
  assert_int_equal(info.advice, native);
  world_ok(gm_managed_destroy(managed, end->stream, err));
}

static void test_the_driver_migrates(void **state) {
  (void)state;
  transfer_world w;
  played_begin(&w, 1);
  check_turns(&w.ends[0], true);
  assert_int_equal(played_number("calls cuMemAllocManaged"), 1);
  assert_int_equal(played_number("calls cuMemPrefetchAsync"), 2);
  assert_int_equal(played_number("calls cuMemAdvise"), 2);
  played_end(&w);
}

static void test_without_managed_memory_gm_copies(void **state) {
  (void)state;
  transfer_world w;
  played_say("reload");
  played_say("set NO managed");
  played_say("set LATENCY_US 0");
  world_begin(&w);
  assert_true(world_add(&w, played_backend, 0));
  check_turns(&w.ends[0], false);
  assert_int_equal(played_number("calls cuMemAllocManaged"), 0);
  played_end(&w);
}

/* Counted as every block is, and given back at once: nothing of it is pooled. */
static void test_it_is_counted_and_not_pooled(void **state) {
  (void)state;
  transfer_world w;
  gm_managed *managed = NULL, *refused = NULL;
  gm_error failure;
  played_begin(&w, 1);
  const world_end *end = &w.ends[0];
  const gm_stats before = world_stats(end);
  world_ok(managed_make(end, 1 << 20, &managed, err));
  gm_stats with = world_stats(end);
  assert_int_equal(with.requested_bytes - before.requested_bytes, 1 << 20);
  assert_int_equal(with.in_use_bytes - before.in_use_bytes, 1 << 20);
  assert_int_equal(with.reserved_bytes - before.reserved_bytes, 1 << 20);
  assert_int_equal(with.active, before.active + 1);
  world_ok(gm_pool_set_max_bytes(end->pool, with.reserved_bytes + (1 << 20) - 1, err));
  assert_int_equal(managed_make(end, 1 << 20, &refused, &failure), GM_ERR_OVER_LIMIT);
  assert_int_equal(world_stats(end).over_limit, before.over_limit + 1);
  world_ok(gm_pool_set_max_bytes(end->pool, 0, err));
  played_say("fail cuMemAllocManaged:1:2");
  assert_int_equal(managed_make(end, 1 << 20, &refused, &failure), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(world_stats(end).failures, before.failures + 1);
  world_ok(gm_managed_destroy(managed, NULL, err));
  assert_int_equal(world_stats(end).reserved_bytes, before.reserved_bytes);
  assert_int_equal(world_stats(end).pooled_bytes, before.pooled_bytes);
  assert_int_equal(played_number("get managed"), 0);
  played_end(&w);
}

/* A limit of gm on the device bounds it by the figures for managed memory. */
static void test_the_device_bounds_it(void **state) {
  (void)state;
  transfer_world w;
  gm_managed *refused = NULL;
  gm_error failure;
  gm_memory_info figures = {.struct_size = sizeof figures};
  played_begin(&w, 1);
  world_ok(gm_device_managed_memory_info(w.ends[0].device, &figures, err));
  assert_int_not_equal(figures.free_bytes, GM_UNKNOWN_BYTES);
  assert_int_equal(managed_make(&w.ends[0], figures.free_bytes + (1 << 20), &refused, &failure), GM_ERR_OVER_LIMIT);
  assert_int_equal(played_number("calls cuMemAllocManaged"), 0);
  played_end(&w);
}

/* Nobody gets memory that migrates who did not ask for it. */
static void test_plain_requests_do_not_get_it(void **state) {
  (void)state;
  transfer_world w;
  gm_block block;
  played_begin(&w, 1);
  played_say("set PINNED 1"); /* no page-locked memory */
  const gm_request request = {.bytes = 1 << 20, .flags = GM_HOST_VISIBLE, .must_be = GM_DEVICE_ACCESSIBLE};
  assert_int_equal(gm_alloc(w.ends[0].pool, &request, &block), GM_ACQUIRE_EXHAUSTED);
  assert_int_equal(played_number("calls cuMemAllocManaged"), 0);
  played_end(&w);
}

/* A buffer in the card's pinned memory, and one that fell to plain host memory: the host computes on both. */
static void test_the_host_computes_on_buffers(void **state) {
  (void)state;
  transfer_world w;
  played_begin(&w, 1);
  const world_end *end = &w.ends[0];
  for (int pinned = 0; pinned < 2; pinned++) {
    gm_buffer *buffer = NULL;
    void *host = NULL;
    unsigned char byte = 0;
    gm_buffer_params params = {
        .struct_size = sizeof params, .request = {.bytes = 1 << 20}, .fallback = GM_FALLBACK_HOST};
    if (pinned) params.request.must_be = GM_DEVICE_ACCESSIBLE;
    if (pinned) params.request.require = GM_MEMORY_PINNED;
    world_ok(gm_buffer_create(end->pool, &params, &buffer, err));
    world_ok(gm_buffer_move(buffer, pinned ? GM_LOCATION_PINNED : GM_LOCATION_HOST, NULL, err));
    world_ok(gm_buffer_lock(buffer, NULL, err));
    world_ok(gm_buffer_host(buffer, &host, err));
    memset(host, 'k', 1 << 20);
    world_ok(gm_buffer_unlock(buffer, end->stream, err));
    world_ok(gm_buffer_move(buffer, GM_LOCATION_DEVICE, NULL, err));
    world_ok(gm_buffer_read(buffer, (1 << 20) - 1, &byte, 1, NULL, err));
    assert_int_equal(byte, 'k');
    gm_buffer_release(buffer, NULL);
  }
  played_end(&w);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_driver_migrates),          cmocka_unit_test(test_without_managed_memory_gm_copies),
      cmocka_unit_test(test_it_is_counted_and_not_pooled), cmocka_unit_test(test_the_device_bounds_it),
      cmocka_unit_test(test_plain_requests_do_not_get_it), cmocka_unit_test(test_the_host_computes_on_buffers),
  };
  const int skipped = played_load(argc, argv);
  return skipped ? skipped : cmocka_run_group_tests(tests, NULL, NULL);
}
