/* The bytes that gm may still take on a device: never memory that the driver has not got back yet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "core/device/device.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1) << 20)

/* The null backend, which looks at the room whenever memory is about to go back. */
static struct {
  gm_device *device;
  uint64_t frees, room; /* how often; what was seen the first time */
  bool read_now;
} look;

static uint64_t room_left_of(gm_device *device, bool read_now) {
  const gm__claim anybody = {.room = &device->room};
  return gm__room_left(&anybody, read_now);
}

static void look_at_room(void) {
  if (!look.device) return;
  if (!look.frees++) look.room = room_left_of(look.device, look.read_now);
}

static gm_status look_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  look_at_room();
  return gm__null_backend.memory_free(device, memory, mode, err);
}

static gm_status look_vmm_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  look_at_room();
  return gm__null_backend.vmm_destroy(device, handle, bytes, mode, err);
}

static void look_open(pool_bench *bench, const gm_pool_params *params) {
  gm_backend_ops ops = gm__null_backend;
  ops.name = "look";
  ops.api = GM_API_OTHER;
  ops.memory_free = look_memory_free;
  ops.vmm_destroy = look_vmm_destroy;
  memset(&look, 0, sizeof look);
  counted_services_init(&bench->host);
  const gm_context_params context = {.struct_size = sizeof context,
                                     .services = &bench->host.services,
                                     .backend_options = "look:capacity=64M",
                                     .ignore_environment = true};
  pool_bench_ok(gm_context_create(&context, &bench->ctx, err));
  pool_bench_ok(gm_backend_register(bench->ctx, &ops, err));
  pool_bench_ok(gm_config_set(bench->ctx, "min_free_bytes", "0", err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "look", 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, params, &bench->pool, err));
}

static void check_room(const gm_pool_params *params, bool read_now) {
  pool_bench bench;
  look_open(&bench, params);
  const gm_request request = {.bytes = 8 * MIB};
  gm_block block;
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
  const uint64_t before = room_left_of(bench.device, true);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  look.device = bench.device;
  look.read_now = read_now;
  assert_true(gm_pool_trim(bench.pool, 0) >= 8 * MIB);
  look.device = NULL;
  assert_true(look.frees > 0);
  assert_true(look.room <= before); /* the driver had nothing back yet */
  assert_true(room_left_of(bench.device, true) >= before + 8 * MIB);
  pool_bench_close(&bench);
}

static void test_what_goes_back_is_no_room_before_the_driver_has_it(void **state) {
  (void)state;
  const gm_pool_params kinds[] = {
      {.struct_size = sizeof kinds[0], .strategy = GM_STRATEGY_BUCKET},
      {.struct_size = sizeof kinds[0], .strategy = GM_STRATEGY_BEST_FIT, .no_vmm = true},
      {.struct_size = sizeof kinds[0], .strategy = GM_STRATEGY_BEST_FIT},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    check_room(&kinds[i], false);
    check_room(&kinds[i], true);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_goes_back_is_no_room_before_the_driver_has_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
