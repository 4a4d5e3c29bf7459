/* Memory for host and device: one memory where the device's is the host's, else copies; nothing behind null. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include <unistd.h>

#include "core/block/access.h"
#include "gm/managed.h"
#include "transfer/transfer_world.h"

enum { UNIT = 64 << 10, BYTES = 5 * UNIT + 77 };

static gm_managed *managed_make(const world_end *end, uint64_t bytes, bool zero) {
  gm_managed *managed = NULL;
  const gm_managed_params params = {.struct_size = sizeof params, .bytes = bytes, .zero = zero};
  world_ok(gm_managed_create(end->pool, &params, &managed, err));
  return managed;
}

static gm_managed_info managed_look(gm_managed *managed) {
  gm_managed_info info = {.struct_size = sizeof info};
  world_ok(gm_managed_get_info(managed, &info, err));
  return info;
}

static void managed_to(gm_managed *managed, gm_managed_place place, uint64_t offset, uint64_t bytes,
                       gm_stream *stream) {
  world_ok(gm_managed_prefetch(managed, place, offset, bytes, stream, NULL, err));
}

static const char *const backends[] = {"cpu", "opencl", "vulkan"};

/* A portable program does this: host, device, host. */
static void check_turns(const world_end *end) {
  gm_managed *managed = managed_make(end, BYTES, true);
  unsigned char *host = gm_managed_host(managed);
  const gm_block *block = gm_managed_block(managed);
  gm_point point = {0, 0, 0};
  for (unsigned i = 0; i < BYTES; i++) assert_int_equal(host[i], 0);
  for (unsigned i = 0; i < BYTES; i++) host[i] = (unsigned char)(i * 5);
  world_ok(gm_managed_prefetch(managed, GM_MANAGED_ON_DEVICE, 0, BYTES, end->stream, &point, err));
  world_ok(gm_block_fill(end->pool, block, UNIT - 9, 20, "k", 1, end->stream, NULL, err)); /* the kernel */
  world_ok(gm_point_wait(end->device, &point, UINT64_MAX, err));
  gm_point_release(end->device, &point);
  managed_to(managed, GM_MANAGED_ON_DEVICE, 0, BYTES, end->stream); /* undoes nothing */
  world_ok(gm_managed_prefetch(managed, GM_MANAGED_ON_HOST, 0, BYTES, end->stream, &point, err));
  world_ok(gm_point_wait(end->device, &point, UINT64_MAX, err));
  gm_point_release(end->device, &point);
  for (unsigned i = 0; i < BYTES; i++) {
    const bool kernel = i >= UNIT - 9 && i < UNIT + 11;
    assert_int_equal(host[i], kernel ? 'k' : (unsigned char)(i * 5));
  }
  world_ok(gm_managed_advise(managed, GM_ADVICE_READ_MOSTLY, GM_MANAGED_ON_DEVICE, 0, BYTES, true, err));
  assert_false(managed_look(managed).advice);
  assert_false(gm_managed_is_native(managed));
  world_ok(gm_managed_destroy(managed, end->stream, err));
}

static void test_host_and_device_take_turns(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
    transfer_world w;
    world_begin(&w);
    if (world_add(&w, backends[i], 0)) {
      check_turns(&w.ends[0]);
      assert_int_equal(world_stats(&w.ends[0]).active, 1); /* the world's own */
    }
    world_finish(&w);
  }
}

static void test_the_cpu_has_one_memory(void **state) {
  (void)state;
  transfer_world w;
  world_begin(&w);
  assert_true(world_add(&w, "cpu", 0));
  gm_managed *managed = managed_make(&w.ends[0], BYTES, false);
  gm_managed_info info = managed_look(managed);
  assert_int_equal(info.kind, GM_MANAGED_UNIFIED);
  assert_int_equal(info.bytes, BYTES);
  assert_int_equal(info.unit_bytes, 0);
  memset(gm_managed_host(managed), 'h', BYTES);
  unsigned char byte = 0;
  world_ok(gm_block_read(w.ends[0].pool, gm_managed_block(managed), BYTES - 1, &byte, 1, NULL, NULL, err));
  assert_int_equal(byte, 'h');
  managed_to(managed, GM_MANAGED_ON_HOST, 0, BYTES, w.ends[0].stream);
  world_ok(gm_managed_destroy(managed, NULL, err));
  world_finish(&w);
}

/* Memory that another had before is zeroed for who asks for it. */
static void test_used_memory_is_zeroed(void **state) {
  (void)state;
  transfer_world w;
  world_begin(&w);
  assert_true(world_add(&w, "cpu", 0));
  gm_managed *managed = managed_make(&w.ends[0], BYTES, false);
  const void *used = gm_managed_host(managed);
  memset(gm_managed_host(managed), 'u', BYTES);
  world_ok(gm_managed_destroy(managed, NULL, err));
  managed = managed_make(&w.ends[0], BYTES, true);
  const unsigned char *host = gm_managed_host(managed);
  assert_ptr_equal(host, used); /* it is that memory */
  for (unsigned i = 0; i < BYTES; i++) assert_int_equal(host[i], 0);
  world_ok(gm_managed_destroy(managed, NULL, err));
  world_finish(&w);
}

/* The holder of each unit is known; a range is widened to whole units, and no byte is lost by it. */
static void check_units(const world_end *end) {
  gm_managed *managed = managed_make(end, BYTES, true);
  unsigned char *host = gm_managed_host(managed);
  assert_int_equal(managed_look(managed).kind, GM_MANAGED_COPIED);
  assert_int_equal(managed_look(managed).unit_bytes, UNIT);
  assert_int_equal(managed_look(managed).device_bytes, 0);
  memset(host, 'h', BYTES);
  managed_to(managed, GM_MANAGED_ON_DEVICE, UNIT + 5, UNIT, end->stream); /* units 1 and 2 */
  assert_int_equal(managed_look(managed).device_bytes, 2 * UNIT);
  managed_to(managed, GM_MANAGED_ON_DEVICE, BYTES - 1, 1, NULL); /* the last, which is short */
  assert_int_equal(managed_look(managed).device_bytes, 2 * UNIT + 77);
  managed_to(managed, GM_MANAGED_ON_DEVICE, 3, 0, NULL);
  assert_int_equal(managed_look(managed).device_bytes, 2 * UNIT + 77);
  world_ok(gm_block_fill(end->pool, gm_managed_block(managed), UNIT, 2 * UNIT, "d", 1, end->stream, NULL, err));
  memset(host + UNIT, 'x', 2 * UNIT); /* against the contract: lost */
  managed_to(managed, GM_MANAGED_ON_DEVICE, 0, BYTES, end->stream);
  assert_int_equal(managed_look(managed).device_bytes, BYTES);
  managed_to(managed, GM_MANAGED_ON_HOST, 0, BYTES, NULL);
  assert_int_equal(managed_look(managed).device_bytes, 0);
  for (unsigned i = 0; i < BYTES; i++) assert_int_equal(host[i], i >= UNIT && i < 3 * UNIT ? 'd' : 'h');
  world_ok(gm_managed_destroy(managed, NULL, err));
}

static unsigned copies; /* between a managed memory's two ends */

gm_status __real_gm__access_write(const gm__access *access, const void *src, gm_stream *stream, gm_point *out,
                                  const char *op, gm_error *err);
gm_status __wrap_gm__access_write(const gm__access *access, const void *src, gm_stream *stream, gm_point *out,
                                  const char *op, gm_error *err);
gm_status __wrap_gm__access_write(const gm__access *access, const void *src, gm_stream *stream, gm_point *out,
                                  const char *op, gm_error *err) {
  copies++;
  return __real_gm__access_write(access, src, stream, out, op, err);
}

gm_status __real_gm__access_read(const gm__access *access, void *dst, gm_stream *stream, gm_point *out, const char *op,
                                 gm_error *err);
gm_status __wrap_gm__access_read(const gm__access *access, void *dst, gm_stream *stream, gm_point *out, const char *op,
                                 gm_error *err);
gm_status __wrap_gm__access_read(const gm__access *access, void *dst, gm_stream *stream, gm_point *out, const char *op,
                                 gm_error *err) {
  copies++;
  return __real_gm__access_read(access, dst, stream, out, op, err);
}

#ifndef GM_TEST_SANITIZED
#define CAN_WEIGH 1 /* a sanitizer takes memory of its own for each byte */
#else
#define CAN_WEIGH 0
#endif

enum { BIG = 64 << 20, BIG_MOST = 96 << 20 };

/* Memory of the process in RAM. */
static uint64_t resident(void) {
  unsigned long all = 0, pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%lu %lu", &all, &pages), 2);
  fclose(file);
  return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* 64 MiB that both sides write and read: no copy, no second memory of gm's, and no second memory of the driver's. */
static void check_one_memory(const transfer_world *w) {
  const world_end *end = &w->ends[0];
  const uint64_t before = resident();
  const size_t own = atomic_load(&w->host.live_bytes);
  gm_managed *managed = managed_make(end, BIG, false);
  unsigned char *host = gm_managed_host(managed), last = 0;
  assert_int_equal(managed_look(managed).kind, GM_MANAGED_UNIFIED);
  copies = 0;
  memset(host, 'h', BIG);
  managed_to(managed, GM_MANAGED_ON_DEVICE, 0, BIG, end->stream);
  world_ok(gm_block_fill(end->pool, gm_managed_block(managed), 0, BIG / 2, "d", 1, end->stream, NULL, err));
  managed_to(managed, GM_MANAGED_ON_HOST, 0, BIG, end->stream);
  assert_int_equal(copies, 0);
  assert_true(host[0] == 'd' && host[BIG / 2 - 1] == 'd' && host[BIG / 2] == 'h' && host[BIG - 1] == 'h');
  assert_true(atomic_load(&w->host.live_bytes) - own < 1 << 20);
  if (CAN_WEIGH) assert_in_range(resident() - before, 0, BIG_MOST);
  world_ok(gm_block_read(end->pool, gm_managed_block(managed), BIG - 1, &last, 1, NULL, NULL, err));
  assert_int_equal(last, 'h');
  world_ok(gm_managed_destroy(managed, end->stream, err));
}

/* May host and device use some ordinary memory at once? */
static bool maps_for_life(gm_device *device) {
  uint32_t count = 0;
  world_ok(gm_device_memory_type_count(device, &count, err));
  for (uint32_t i = 0; i < count; i++) {
    gm_memory_type type = {.struct_size = sizeof type};
    world_ok(gm_device_memory_type(device, i, &type, err));
    if (type.flags & GM_MEMORY_PERSISTENT_MAP && !(type.flags & GM_MEMORY_APART)) return true;
  }
  return false;
}

/* PoCL must have it, of OpenCL's drivers. Others may have SVM of coarse grain alone. */
static bool has_one_memory(const char *backend, const world_end *end) {
  const gm_device_info *info = gm_device_get_info(end->device);
  const bool may_lack = strcmp(backend, "opencl") == 0 && strcmp(info->driver, "pocl") != 0;
  return info->unified && (!may_lack || maps_for_life(end->device));
}

static void test_one_memory_is_not_copied(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
    transfer_world w;
    world_begin(&w);
    if (world_add(&w, backends[i], 0) && has_one_memory(backends[i], &w.ends[0])) check_one_memory(&w);
    world_finish(&w);
  }
}

/* Type 0 of OpenCL can be mapped by a queue alone: a pool of it has copies on every device. */
static void check_units_of_type_0(const world_end *world) {
  world_end end = *world;
  const gm_pool_params params = {.struct_size = sizeof params, .memory_types = 1};
  world_ok(gm_pool_create(end.device, &params, &end.pool, err));
  check_units(&end);
  world_ok(gm_pool_destroy(end.pool, err));
}

static void test_units_have_one_holder(void **state) {
  (void)state;
  for (size_t i = 1; i < sizeof backends / sizeof backends[0]; i++) {
    transfer_world w;
    world_begin(&w);
    if (world_add(&w, backends[i], 0)) {
      if (strcmp(backends[i], "opencl") == 0) check_units_of_type_0(&w.ends[0]);
      if (!has_one_memory(backends[i], &w.ends[0])) check_units(&w.ends[0]);
    }
    world_finish(&w);
  }
}

static void test_arguments_are_checked(void **state) {
  (void)state;
  transfer_world w;
  gm_error failure;
  gm_managed *managed = NULL;
  gm_managed_params params = {.struct_size = sizeof params, .bytes = 100};
  gm_managed_info info = {.struct_size = 5};
  world_begin(&w);
  assert_true(world_add(&w, "cpu", 0) && world_add(&w, "null", 0));
  gm_pool *pool = w.ends[0].pool;
#define REFUSED(call) assert_int_equal((call), GM_ERR_INVALID_ARGUMENT)
  REFUSED(gm_managed_create(NULL, &params, &managed, &failure));
  REFUSED(gm_managed_create(pool, NULL, &managed, &failure));
  REFUSED(gm_managed_create(pool, &params, NULL, &failure));
  params.struct_size = 1;
  REFUSED(gm_managed_create(pool, &params, &managed, &failure));
  params = (gm_managed_params){.struct_size = sizeof params};
  REFUSED(gm_managed_create(pool, &params, &managed, &failure));
  params.bytes = UINT64_MAX;
  assert_int_equal(gm_managed_create(pool, &params, &managed, &failure), GM_ERR_ALLOCATION_TOO_LARGE);
  params = (gm_managed_params){.struct_size = sizeof params, .bytes = 100, .align = 3};
  REFUSED(gm_managed_create(pool, &params, &managed, &failure));
  params.align = 0;
  world_ok(gm_managed_create(pool, &params, &managed, err));
  REFUSED(gm_managed_prefetch(managed, GM_MANAGED_ON_HOST, 99, 2, NULL, NULL, &failure));
  REFUSED(gm_managed_prefetch(managed, GM_MANAGED_ON_HOST, UINT64_MAX, 2, NULL, NULL, &failure));
  REFUSED(gm_managed_prefetch(managed, (gm_managed_place)7, 0, 2, NULL, NULL, &failure));
  REFUSED(gm_managed_prefetch(managed, GM_MANAGED_ON_HOST, 0, 2, w.ends[1].stream, NULL, &failure));
  REFUSED(gm_managed_prefetch(NULL, GM_MANAGED_ON_HOST, 0, 2, NULL, NULL, &failure));
  REFUSED(gm_managed_advise(managed, (gm_managed_advice)9, GM_MANAGED_ON_HOST, 0, 2, true, &failure));
  REFUSED(gm_managed_advise(managed, GM_ADVICE_STAY_ON, GM_MANAGED_ON_HOST, 0, 200, true, &failure));
  REFUSED(gm_managed_get_info(managed, &info, &failure));
  REFUSED(gm_managed_destroy(managed, w.ends[1].stream, &failure)); /* it stays */
  assert_non_null(gm_managed_host(managed));
  assert_null(gm_managed_host(NULL));
  assert_null(gm_managed_block(NULL));
  world_ok(gm_managed_destroy(managed, NULL, err));
  world_ok(gm_managed_destroy(NULL, NULL, err));
  world_finish(&w);
}

static void test_null_and_limits(void **state) {
  (void)state;
  transfer_world w;
  gm_error failure;
  gm_managed *refused = NULL;
  world_begin(&w);
  assert_true(world_add(&w, "null", 0));
  gm_managed *managed = managed_make(&w.ends[0], BYTES, true);
  managed_to(managed, GM_MANAGED_ON_DEVICE, 0, BYTES, NULL);
  assert_int_equal(gm_managed_prefetch(managed, GM_MANAGED_ON_HOST, 0, BYTES, NULL, NULL, &failure),
                   GM_ERR_NOT_SUPPORTED);
  assert_int_equal(managed_look(managed).device_bytes, BYTES); /* as it was */
  world_ok(gm_pool_set_max_bytes(w.ends[0].pool, 1 << 20, err));
  const gm_managed_params params = {.struct_size = sizeof params, .bytes = 1 << 20};
  assert_int_equal(gm_managed_create(w.ends[0].pool, &params, &refused, &failure), GM_ERR_OVER_LIMIT);
  assert_true(failure.message[0] != 0);
  world_ok(gm_managed_destroy(managed, w.ends[0].stream, err));
  world_finish(&w);
}

static void test_without_host_memory(void **state) {
  (void)state;
  for (size_t n = 1; n < 50; n++) {
    transfer_world w;
    gm_error failure;
    gm_managed *managed = NULL;
    const gm_managed_params params = {.struct_size = sizeof params, .bytes = BYTES};
    world_begin(&w);
    assert_true(world_add(&w, "null", 0));
    w.host.fail_at = atomic_load(&w.host.calls) + n;
    const gm_status status = gm_managed_create(w.ends[0].pool, &params, &managed, &failure);
    const bool reached = atomic_load(&w.host.calls) >= w.host.fail_at;
    w.host.fail_at = 0;
    assert_int_equal(status == GM_OK, managed != NULL);
    assert_int_equal(world_stats(&w.ends[0]).active, managed ? 2 : 1);
    world_ok(gm_managed_destroy(managed, NULL, err));
    world_finish(&w);
    if (!reached) return;
  }
  fail_msg("it never ends");
}

/* Where nothing migrates the figures are the same question. */
static void test_figures_of_managed_memory(void **state) {
  (void)state;
  transfer_world w;
  gm_error failure;
  gm_memory_info plain = {.struct_size = sizeof plain}, managed = plain;
  world_begin(&w);
  assert_true(world_add(&w, "null", 0));
  world_ok(gm_device_memory_info(w.ends[0].device, &plain, err));
  world_ok(gm_device_managed_memory_info(w.ends[0].device, &managed, err));
  assert_int_equal(plain.total_bytes, managed.total_bytes);
  assert_int_equal(plain.free_bytes, managed.free_bytes);
  assert_int_equal(gm_device_managed_memory_info(w.ends[0].device, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_managed_memory_info(NULL, &managed, &failure), GM_ERR_INVALID_ARGUMENT);
  world_finish(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_host_and_device_take_turns),
      cmocka_unit_test(test_the_cpu_has_one_memory),
      cmocka_unit_test(test_used_memory_is_zeroed),
      cmocka_unit_test(test_one_memory_is_not_copied),
      cmocka_unit_test(test_units_have_one_holder),
      cmocka_unit_test(test_arguments_are_checked),
      cmocka_unit_test(test_null_and_limits),
      cmocka_unit_test(test_without_host_memory),
      cmocka_unit_test(test_figures_of_managed_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
