/* A ring on Vulkan: the driver's own host memory, mapped for as long as it lives. Copies between its slots and the
 * device need no staging beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "support/vulkan_fixture.h"
/* after the fixture */
#include "backends/vulkan/vulkan_device.h"
#include "core/device/device.h"
#include "core/staging/ring.h"
#include "gm/copy.h"
#include "support/pool_bench.h"

enum { SLOT = 65536, SLOTS = 3 };

/* A device whose memory the host does not see, on an engine's terms: without memory of the caller's. */
static void begin(pool_bench *bench) {
  vulkan_fixture fixture;
  vulkan_fixture_init(&fixture, ""); /* skips the test where there is no driver */
  vulkan_fixture_close(&fixture);
  pool_bench_open(bench, "vulkan", "vulkan:no_host_visible", NULL);
  ((gm__vulkan_device *)bench->device->handle)->host_types = 0;
}

static bool has_staging(const pool_bench *bench) {
  return ((const gm__vulkan_device *)bench->device->handle)->staging.slots != NULL;
}

/* Up from each slot at once, and down again, with points. */
static void move_all(pool_bench *bench, gm__ring_slot *slots[], const gm_block *block, gm_stream *stream) {
  gm_point points[SLOTS];
  for (int i = 0; i < SLOTS; i++) {
    memset(slots[i]->host, i + 1, SLOT);
    pool_bench_ok(
        gm_block_write(bench->pool, block, (uint64_t)i * SLOT, slots[i]->host, SLOT, stream, &points[i], err));
  }
  for (int i = 0; i < SLOTS; i++) {
    pool_bench_ok(gm_point_wait(bench->device, &points[i], UINT64_MAX, err));
    gm_point_release(bench->device, &points[i]);
    memset(slots[i]->host, 0, SLOT);
    pool_bench_ok(gm_block_read(bench->pool, block, (uint64_t)i * SLOT, slots[i]->host, SLOT, stream, &points[i], err));
  }
  for (int i = 0; i < SLOTS; i++) {
    pool_bench_ok(gm_point_wait(bench->device, &points[i], UINT64_MAX, err));
    gm_point_release(bench->device, &points[i]);
    for (int at = 0; at < SLOT; at++) assert_int_equal(slots[i]->host[at], i + 1);
  }
}

static void test_slots_need_no_staging(void **state) {
  (void)state;
  gm__ring *ring;
  gm__ring_slot *slots[SLOTS];
  gm__ring_info info;
  gm_block block;
  gm_stream *stream;
  pool_bench bench;
  begin(&bench);
  const gm_request request = {.bytes = (uint64_t)SLOTS * SLOT};
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  pool_bench_ok(gm__ring_create(bench.device, SLOTS, SLOT, &ring, err));
  for (int i = 0; i < SLOTS; i++) {
    pool_bench_ok(gm__ring_take(ring, 0, &slots[i], err));
    assert_true(slots[i]->pinned);
    assert_int_equal((uintptr_t)slots[i]->host % 4096, 0);
  }
  gm__ring_figures(ring, &info);
  assert_int_equal(info.pinned, SLOTS);
  assert_string_equal(info.why, "");
  move_all(&bench, slots, &block, stream);
  assert_false(has_staging(&bench));
  for (int i = 0; i < SLOTS; i++) gm__ring_give(ring, slots[i], NULL);
  pool_bench_ok(gm__ring_destroy(ring, err));
  pool_bench_ok(gm_stream_close(stream, err));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* The driver allows no further allocation: the slots are pageable, and the ring says why. */
static void test_a_driver_that_refuses(void **state) {
  (void)state;
  gm__ring *ring;
  gm__ring_slot *slot;
  gm__ring_info info;
  pool_bench bench;
  begin(&bench);
  gm__vulkan_device *vulkan = bench.device->handle;
  const uint32_t limit = vulkan->physical.props.limits.maxMemoryAllocationCount;
  vulkan->physical.props.limits.maxMemoryAllocationCount = vulkan->live;
  pool_bench_ok(gm__ring_create(bench.device, SLOTS, SLOT, &ring, err));
  pool_bench_ok(gm__ring_take(ring, 0, &slot, err));
  assert_false(slot->pinned);
  gm__ring_figures(ring, &info);
  assert_non_null(strstr(info.why, "maxMemoryAllocationCount"));
  gm__ring_give(ring, slot, NULL);
  pool_bench_ok(gm__ring_destroy(ring, err));
  vulkan->physical.props.limits.maxMemoryAllocationCount = limit;
  pool_bench_close(&bench);
}

/* A forked child gives back host memory alone. The parent's slot is as it was. */
static void test_a_child_leaves_the_memory_to_its_parent(void **state) {
  (void)state;
  gm__ring *ring;
  gm__ring_slot *slot;
  pool_bench bench;
  int result = -1;
  begin(&bench);
  pool_bench_ok(gm__ring_create(bench.device, SLOTS, SLOT, &ring, err));
  pool_bench_ok(gm__ring_take(ring, 0, &slot, err));
  memset(slot->host, 7, SLOT);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    gm__ring_give(ring, slot, NULL);
    const bool ended = gm__ring_destroy(ring, NULL) == GM_OK && gm_pool_destroy(bench.pool, NULL) == GM_OK &&
                       gm_device_close(bench.device, NULL) == GM_OK;
    _exit(ended ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  for (int at = 0; at < SLOT; at++) assert_int_equal(slot->host[at], 7);
  gm__ring_give(ring, slot, NULL);
  pool_bench_ok(gm__ring_destroy(ring, err));
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_slots_need_no_staging),
      cmocka_unit_test(test_a_driver_that_refuses),
      cmocka_unit_test(test_a_child_leaves_the_memory_to_its_parent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
