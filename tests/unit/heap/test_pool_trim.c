/* Others change a pool between two steps of a trim: the driver's call that gives a page up uses the pool itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "support/pool_blocks.h"
#include "support/random.h"

#define MIB (UINT64_C(1) << 20)

enum { COUNT = 256 };

/* Blocks of seven pages between blocks of one; what the driver's call does with them. */
static struct {
  gm_pool *pool; /* NULL: nothing */
  gm_block blocks[COUNT];
  uint64_t random, unmaps;
} guest;

static void guest_acts(void) {
  gm_block *block = &guest.blocks[test_random(&guest.random) % COUNT];
  const gm_request request = {.bytes = (1 + test_random(&guest.random) % 14) * MIB, .flags = GM_POOLED_ONLY};
  if (block->bytes) {
    assert_int_equal(gm_free(guest.pool, block, NULL), GM_OK);
    block->bytes = 0;
  } else if (gm_alloc(guest.pool, &request, block) > GM_ACQUIRE_FRESH) {
    block->bytes = 0;
  }
}

static gm_status guest_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  guest.unmaps++;
  if (guest.pool) guest_acts();
  return gm__null_backend.vmm_unmap(device, address, bytes, err);
}

static void bench_open(pool_bench *bench) {
  gm_backend_ops ops = gm__null_backend;
  ops.name = "guest";
  ops.api = GM_API_OTHER;
  ops.vmm_unmap = guest_unmap;
  counted_services_init(&bench->host);
  gm_context_params context = {
      .struct_size = sizeof context, .services = &bench->host.services, .ignore_environment = true};
  gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 2080 * MIB}; /* near it handles are small */
  pool_bench_ok(gm_context_create(&context, &bench->ctx, err));
  pool_bench_ok(gm_backend_register(bench->ctx, &ops, err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "guest", 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, &params, &bench->pool, err));
}

static void check_apart(void) {
  for (int i = 0; i < COUNT; i++) {
    for (int k = 0; k < i; k++) {
      const gm_block *one = &guest.blocks[i], *other = &guest.blocks[k];
      if (!one->bytes || !other->bytes) continue;
      assert_true(one->address + one->bytes <= other->address || other->address + other->bytes <= one->address);
    }
  }
}

static void check_trim(uint64_t random) {
  pool_bench bench;
  memset(&guest, 0, sizeof guest);
  guest.random = random;
  bench_open(&bench);
  for (int i = 0; i < COUNT; i++) {
    const gm_request request = {.bytes = (i % 2 ? 14 : 2) * MIB};
    assert_true(gm_alloc(bench.pool, &request, &guest.blocks[i]) <= GM_ACQUIRE_FRESH);
  }
  for (int i = 1; i < COUNT; i += 2) {
    give(&bench, &guest.blocks[i], NULL);
    guest.blocks[i].bytes = 0;
  }
  guest.pool = bench.pool;
  assert_true(gm_pool_trim(bench.pool, 0) > 0);
  guest.pool = NULL;
  assert_true(guest.unmaps > 16);
  check_apart();
  gm_pool_trim(bench.pool, 0);
  assert_int_equal(pool_bench_stats(&bench).reclaimable_bytes, 0);
  for (int i = 0; i < COUNT; i++) {
    if (guest.blocks[i].bytes) give(&bench, &guest.blocks[i], NULL);
  }
  check_trim_to_nothing(&bench);
  pool_bench_close(&bench);
}

static void test_holes_come_and_go_meanwhile(void **state) {
  (void)state;
  for (uint64_t random = 1; random <= 20; random++) check_trim(random);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_holes_come_and_go_meanwhile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
