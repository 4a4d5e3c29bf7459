/* Two pools of one device: what one keeps and does not use serves the other where the device has no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/device/device.h"
#include "gm/copy.h"
#include "support/explained.h"
#include "support/host_upstream.h"
#include "support/pool_blocks.h"

#define MIB (UINT64_C(1) << 20)

static const gm_pool_params kinds[] = {
    {.struct_size = sizeof(gm_pool_params), .name = "pages"},
    {.struct_size = sizeof(gm_pool_params), .name = "segments", .no_vmm = true},
    {.struct_size = sizeof(gm_pool_params), .name = "buckets", .strategy = GM_STRATEGY_BUCKET},
};
enum { KINDS = sizeof kinds / sizeof *kinds, COUNT = 6 };

/* The bench's pool is the one that is asked; it comes with an idle one, which keeps 48 MiB of 64. */
typedef struct bench {
  pool_bench base;
  gm_pool *idle;
} bench;

static void fill(gm_pool *pool, gm_block *blocks) {
  const gm_request request = {.bytes = 8 * MIB};
  for (int i = 0; i < COUNT; i++) assert_true(gm_alloc(pool, &request, &blocks[i]) <= GM_ACQUIRE_FRESH);
}

static void empty(gm_pool *pool, const gm_block *blocks, int from, gm_stream *stream) {
  for (int i = from; i < COUNT; i++) assert_int_equal(gm_free(pool, &blocks[i], stream), GM_OK);
}

static uint64_t reserved(gm_pool *pool) {
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(pool, &stats);
  return stats.reserved_bytes;
}

static void bench_open(bench *self, const gm_pool_params *idle, const gm_pool_params *asked, const char *options) {
  gm_pool_params capped = *idle;
  capped.max_bytes = 48 * MIB;
  pool_bench_open(&self->base, "null", options, asked);
  pool_bench_ok(gm_pool_create(self->base.device, &capped, &self->idle, err));
}

static void bench_close(bench *self) {
  pool_bench_ok(gm_pool_destroy(self->idle, err));
  pool_bench_close(&self->base);
}

static gm_acquire ask(bench *self, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes};
  return explained_alloc(self->base.pool, &request, out);
}

static void check_idle_serves(const gm_pool_params *idle, const gm_pool_params *asked) {
  bench self;
  gm_block blocks[COUNT], block;
  bench_open(&self, idle, asked, "null:capacity=64M");
  fill(self.idle, blocks);
  assert_int_equal(ask(&self, 24 * MIB, &block), GM_ACQUIRE_OVER_LIMIT);
  empty(self.idle, blocks, 0, NULL);
  assert_int_equal(ask(&self, 24 * MIB, &block), GM_ACQUIRE_FRESH);
  assert_true(reserved(self.idle) > 0); /* no more than was needed */
  give(&self.base, &block, NULL);
  bench_close(&self);
}

static void test_idle_memory_of_another_pool_serves(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    for (int k = 0; k < KINDS; k++) check_idle_serves(&kinds[i], &kinds[k]);
  }
}

/* Its own idle memory goes first, and then what it lacks. */
static void test_own_memory_goes_first(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    bench self;
    gm_block blocks[COUNT], block;
    bench_open(&self, &kinds[0], &kinds[i], "null:capacity=64M");
    fill(self.idle, blocks);
    empty(self.idle, blocks, 0, NULL);
    assert_int_equal(ask(&self, 8 * MIB, &block), GM_ACQUIRE_FRESH);
    give(&self.base, &block, NULL);
    assert_int_equal(ask(&self, 16 * MIB, &block), GM_ACQUIRE_FRESH);
    assert_int_equal(reserved(self.idle), 48 * MIB);
    give(&self.base, &block, NULL);
    assert_int_equal(ask(&self, 60 * MIB, &block), GM_ACQUIRE_FRESH);
    give(&self.base, &block, NULL);
    bench_close(&self);
  }
}

/* A request that could not be served with all of it takes nothing from anybody. */
static void test_what_would_not_help_stays(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    bench self;
    gm_block blocks[COUNT], block;
    bench_open(&self, &kinds[i], &kinds[i], "null:capacity=64M");
    fill(self.idle, blocks);
    empty(self.idle, blocks, 1, NULL);
    assert_int_equal(ask(&self, 58 * MIB, &block), GM_ACQUIRE_OVER_LIMIT);
    assert_int_equal(reserved(self.idle), 48 * MIB);
    pool_bench_ok(gm_pool_set_max_bytes(self.base.pool, 20 * MIB, err));
    assert_int_equal(ask(&self, 24 * MIB, &block), GM_ACQUIRE_OVER_LIMIT); /* its own cap */
    assert_int_equal(reserved(self.idle), 48 * MIB);
    assert_int_equal(gm_free(self.idle, &blocks[0], NULL), GM_OK);
    bench_close(&self);
  }
}

/* Memory that a stream may still use is no idle memory, and then the pool keeps its own, too. */
static void test_busy_memory_stays(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    bench self;
    gm_block blocks[COUNT], block;
    gm_stream *stream;
    gm_point point;
    bench_open(&self, &kinds[i], &kinds[0], "null:capacity=64M,latency=1000000000");
    pool_bench_ok(gm_stream_create(self.base.device, &stream, err));
    fill(self.idle, blocks);
    pool_bench_ok(gm_block_fill(self.idle, &blocks[0], 0, 1, "", 1, stream, &point, err));
    gm_point_release(self.base.device, &point);
    empty(self.idle, blocks, 0, stream);
    assert_int_equal(ask(&self, 8 * MIB, &block), GM_ACQUIRE_FRESH);
    give(&self.base, &block, NULL);
    const uint64_t kept = reserved(self.base.pool);
    assert_int_equal(ask(&self, 24 * MIB, &block), GM_ACQUIRE_OVER_LIMIT);
    assert_int_equal(reserved(self.base.pool), kept);
    assert_int_equal(reserved(self.idle), 48 * MIB);
    pool_bench_ok(gm_stream_sync(stream, err));
    assert_int_equal(ask(&self, 24 * MIB, &block), GM_ACQUIRE_FRESH);
    give(&self.base, &block, NULL);
    pool_bench_ok(gm_stream_close(stream, err));
    bench_close(&self);
  }
}

/* The memory of somebody else is left alone. */
static void test_an_upstream_is_left_alone(void **state) {
  (void)state;
  const gm_pool_params over = {.struct_size = sizeof over, .upstream = &host_upstream};
  const gm_request request = {.bytes = MIB};
  bench self;
  gm_block blocks[2], block;
  pool_bench_open(&self.base, "cpu", NULL, &kinds[0]);
  pool_bench_ok(gm_pool_create(self.base.device, &over, &self.idle, err));
  for (int i = 0; i < 2; i++) assert_true(gm_alloc(self.idle, &request, &blocks[i]) <= GM_ACQUIRE_FRESH);
  for (int i = 0; i < 2; i++) assert_int_equal(gm_free(self.idle, &blocks[i], NULL), GM_OK);
  const uint64_t kept = reserved(self.idle);
  pool_bench_ok(gm_config_set(self.base.ctx, "memory_fraction", "0", err));
  assert_int_equal(ask(&self, MIB, &block), GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(reserved(self.idle), kept);
  bench_close(&self);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_idle_memory_of_another_pool_serves), cmocka_unit_test(test_own_memory_goes_first),
      cmocka_unit_test(test_what_would_not_help_stays),          cmocka_unit_test(test_busy_memory_stays),
      cmocka_unit_test(test_an_upstream_is_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
