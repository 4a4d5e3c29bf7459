/* The null backend alone has these: options, capacity, virtual time, and a strict table of mappings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "core/base/alloc.h"

#define MIB (UINT64_C(1) << 20)

typedef struct fixture {
  gm_backend_host host;
  void *driver, *device;
} fixture;

static const gm_backend_ops *const ops = &gm__null_backend;

static fixture open_with(const char *options) {
  fixture f = {.host = {.struct_size = sizeof f.host, .services = gm__default_services(), .options = options}};
  assert_int_equal(ops->init(&f.host, &f.driver, NULL), GM_OK);
  assert_int_equal(ops->device_open(f.driver, 0, &f.device, NULL), GM_OK);
  return f;
}

static void close_all(fixture *f) {
  ops->device_close(f->device, GM_CLOSE_NORMAL);
  ops->fini(f->driver, GM_CLOSE_NORMAL);
}

static gm_status take(const fixture *f, uint64_t bytes, gm_memory *out) {
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = bytes};
  return ops->memory_alloc(f->device, &params, out, NULL);
}

static void test_wrong_options_are_named(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"colour=red", "colour"},         {"capacity=", "capacity"}, {"capacity=0", "capacity"},
      {"capacity=2048T", "capacity"},   {"devices=17", "devices"}, {"alignment=3", "alignment"},
      {"align_granule=128", "align_g"}, {"devices=2,,", "``"},     {"latency=1,latency=x", "latency"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const gm_backend_host host = {.services = gm__default_services(), .options = cases[i][0]};
    void *driver = NULL;
    gm_driver_info info;
    gm_error err;
    assert_int_equal(ops->init(&host, &driver, &err), GM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, cases[i][1]));
    assert_int_equal(ops->probe(&host, GM_PROBE_PASSIVE, &info, NULL), GM_ERR_INVALID_ARGUMENT);
  }
}

static void test_capacity_is_exact_and_shared_by_devices_opened_twice(void **state) {
  (void)state;
  fixture f = open_with("capacity=1M,alignment=256");
  void *twin;
  assert_int_equal(ops->device_open(f.driver, 0, &twin, NULL), GM_OK);
  gm_memory a, b, c;
  assert_int_equal(take(&f, MIB - 256, &a), GM_OK);
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 1};
  assert_int_equal(ops->memory_alloc(twin, &params, &b, NULL), GM_OK);
  assert_int_equal(b.bytes, 256);
  assert_int_equal(take(&f, 1, &c), GM_ERR_OUT_OF_DEVICE_MEMORY);
  gm_raw_figures figures;
  assert_int_equal(ops->figures(f.driver, 0, NULL, &figures, NULL), GM_OK);
  assert_int_equal(figures.driver.total_bytes, MIB);
  assert_int_equal(figures.driver.free_bytes, 0);
  ops->memory_free(f.device, &a, GM_CLOSE_NORMAL, NULL);
  ops->memory_free(twin, &b, GM_CLOSE_NORMAL, NULL);
  assert_int_equal(ops->figures(f.driver, 0, f.device, &figures, NULL), GM_OK);
  assert_int_equal(figures.driver.free_bytes, MIB);
  ops->device_close(twin, GM_CLOSE_NORMAL);
  close_all(&f);
}

static int compare_addresses(const void *a, const void *b) {
  const gm_memory *x = a, *y = b;
  return (x->address > y->address) - (x->address < y->address);
}

static void test_many_live_blocks_never_overlap(void **state) {
  (void)state;
  enum { BLOCKS = 100000 };
  fixture f = open_with("capacity=1T");
  gm_memory *blocks = malloc(BLOCKS * sizeof *blocks);
  assert_non_null(blocks);
  for (size_t i = 0; i < BLOCKS; i++) {
    assert_int_equal(take(&f, 1 + (i * 2654435761u) % (8 * MIB), &blocks[i]), GM_OK);
    if (i % 3) continue;
    ops->memory_free(f.device, &blocks[i / 2], GM_CLOSE_NORMAL, NULL);
    assert_int_equal(take(&f, 1 + i, &blocks[i / 2]), GM_OK);
  }
  qsort(blocks, BLOCKS, sizeof *blocks, compare_addresses);
  for (size_t i = 1; i < BLOCKS; i++) assert_true(blocks[i - 1].address + blocks[i - 1].bytes <= blocks[i].address);
  for (size_t i = 0; i < BLOCKS; i++) ops->memory_free(f.device, &blocks[i], GM_CLOSE_NORMAL, NULL);
  free(blocks);
  close_all(&f);
}

static void test_addresses_do_not_run_out_by_churn(void **state) {
  (void)state;
  fixture f = open_with("");
  for (int i = 0; i < 100000; i++) {
    gm_memory memory;
    assert_int_equal(take(&f, UINT64_C(60) << 30, &memory), GM_OK);
    ops->memory_free(f.device, &memory, GM_CLOSE_NORMAL, NULL);
  }
  close_all(&f);
}

static bool passed(const fixture *f, const gm_backend_point *point) {
  bool done = false;
  assert_int_equal(ops->point_done(f->device, point, &done, NULL), GM_OK);
  return done;
}

static void test_time_passes_when_told_and_when_somebody_waits(void **state) {
  (void)state;
  fixture f = open_with("latency=100");
  gm_memory memory;
  void *a, *b;
  gm_stream_kind kind;
  gm_backend_point first, second, third;
  assert_int_equal(take(&f, 4096, &memory), GM_OK);
  assert_int_equal(ops->stream_create(f.device, &a, &kind, NULL), GM_OK);
  assert_int_equal(ops->stream_create(f.device, &b, &kind, NULL), GM_OK);
  assert_int_equal(ops->fill(f.device, a, &memory, 0, 4096, "", 1, &first, NULL), GM_OK);
  assert_int_equal(ops->fill(f.device, a, &memory, 0, 4096, "", 1, &second, NULL), GM_OK);
  assert_false(passed(&f, &first));
  gm__null_advance(f.device, 100);
  assert_true(passed(&f, &first));
  assert_false(passed(&f, &second));
  assert_int_equal(ops->point_wait_on(f.device, b, &second, NULL), GM_OK);
  assert_int_equal(ops->fill(f.device, b, &memory, 0, 4096, "", 1, &third, NULL), GM_OK);
  assert_int_equal(ops->point_wait(f.device, &third, 199, NULL), GM_ERR_TIMEOUT);
  assert_true(passed(&f, &second));
  assert_int_equal(ops->point_wait(f.device, &third, 1, NULL), GM_OK);
  assert_true(passed(&f, &third));
  ops->stream_close(f.device, a, GM_CLOSE_NORMAL);
  ops->stream_close(f.device, b, GM_CLOSE_NORMAL);
  ops->memory_free(f.device, &memory, GM_CLOSE_NORMAL, NULL);
  close_all(&f);
}

static void test_mappings_are_held_to_account(void **state) {
  (void)state;
  fixture f = open_with("capacity=8M");
  void *d = f.device;
  const gm_vmm_props props = {0};
  uint64_t address, handle, more;
  assert_int_equal(ops->vmm_reserve(d, 64 * MIB, 0, &address, NULL), GM_OK);
  assert_int_equal(ops->vmm_create(d, &props, 4 * MIB, &handle, NULL), GM_OK);
  assert_int_equal(ops->vmm_create(d, &props, 6 * MIB, &more, NULL), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(ops->vmm_create(d, &props, MIB, &more, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_map(d, address + 2 * MIB, 4 * MIB, handle, 0, NULL), GM_OK);
  assert_int_equal(ops->vmm_map(d, address + 4 * MIB, 2 * MIB, handle, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_map(d, address + 64 * MIB, 2 * MIB, handle, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_map(d, address + 8 * MIB, 4 * MIB, handle, 2 * MIB, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_access(d, address, 4 * MIB, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_access(d, address + 2 * MIB, 4 * MIB, NULL), GM_OK);
  assert_int_equal(ops->vmm_unreserve(d, address, 64 * MIB, GM_CLOSE_NORMAL, NULL), GM_ERR_BUSY);
  assert_int_equal(ops->vmm_destroy(d, handle, 4 * MIB, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(ops->vmm_create(d, &props, 6 * MIB, &more, NULL), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(ops->vmm_unmap(d, address + 2 * MIB, 4 * MIB, NULL), GM_OK);
  assert_int_equal(ops->vmm_unmap(d, address + 2 * MIB, 4 * MIB, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_create(d, &props, 8 * MIB, &more, NULL), GM_OK);
  assert_int_equal(ops->vmm_destroy(d, more, 8 * MIB, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(ops->vmm_unreserve(d, address + 2 * MIB, 2 * MIB, GM_CLOSE_NORMAL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->vmm_unreserve(d, address, 64 * MIB, GM_CLOSE_NORMAL, NULL), GM_OK);
  close_all(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_wrong_options_are_named),
      cmocka_unit_test(test_capacity_is_exact_and_shared_by_devices_opened_twice),
      cmocka_unit_test(test_many_live_blocks_never_overlap),
      cmocka_unit_test(test_addresses_do_not_run_out_by_churn),
      cmocka_unit_test(test_time_passes_when_told_and_when_somebody_waits),
      cmocka_unit_test(test_mappings_are_held_to_account),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
