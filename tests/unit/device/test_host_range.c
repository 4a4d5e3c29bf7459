/* Registered host memory: overlap, twice, foreign pointers, failures, closing with ranges left, and threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/cpu_backend.h"
#include "core/base/error.h"
#include "core/device/host_range.h"
#include "support/pool_bench.h"

/* The CPU backend, which counts, and refuses when it is told to. */
static struct {
  int registered;
  gm_status answer, release;
  void *host; /* the driver's own memory */
} pins;

static gm_status pins_alloc(void *device, uint64_t bytes, void **out, gm_error *err) {
  (void)device, (void)bytes;
  if (pins.answer != GM_OK) return gm__fail_native(err, pins.answer, 1, "host_alloc", "told to refuse");
  __atomic_fetch_add(&pins.registered, 1, __ATOMIC_SEQ_CST);
  *out = pins.host;
  return GM_OK;
}

static gm_status pins_register(void *device, void *pointer, uint64_t bytes, gm_error *err) {
  (void)device, (void)pointer, (void)bytes;
  if (pins.answer != GM_OK) return gm__fail_native(err, pins.answer, 1, "host_register", "told to refuse");
  __atomic_fetch_add(&pins.registered, 1, __ATOMIC_SEQ_CST);
  return GM_OK;
}

static gm_status pins_unregister(void *device, void *pointer, gm_close_mode mode, gm_error *err) {
  (void)device, (void)pointer, (void)mode;
  if (pins.release != GM_OK && pins.release != GM_ERR_DEVICE_LOST)
    return gm__fail_native(err, pins.release, 1, "host_unregister", "told to refuse");
  __atomic_fetch_sub(&pins.registered, 1, __ATOMIC_SEQ_CST);
  return pins.release;
}

static void open_pins(pool_bench *bench) {
  gm_backend_ops ops = gm__cpu_backend;
  ops.name = "pins";
  ops.api = GM_API_OTHER;
  ops.host_register = pins_register;
  ops.host_unregister = pins_unregister;
  ops.host_alloc = pins_alloc;
  memset(&pins, 0, sizeof pins);
  counted_services_init(&bench->host);
  const gm_context_params params = {
      .struct_size = sizeof params, .services = &bench->host.services, .ignore_environment = true};
  bench->pool = NULL;
  pool_bench_ok(gm_context_create(&params, &bench->ctx, err));
  pool_bench_ok(gm_backend_register(bench->ctx, &ops, err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "pins", 0, &bench->device, err));
}

static char memory[4096];

#define REFUSED(call) assert_int_equal((call), GM_ERR_INVALID_ARGUMENT)

static void test_ranges_that_cannot_be(void **state) {
  (void)state;
  pool_bench bench;
  open_pins(&bench);
  gm_device *device = bench.device;
  REFUSED(gm_host_register(NULL, memory, 16, NULL));
  REFUSED(gm_host_register(device, NULL, 16, NULL));
  REFUSED(gm_host_register(device, memory, 0, NULL));
  REFUSED(gm_host_register(device, memory, UINT64_MAX, NULL));
  REFUSED(gm_host_register(device, (void *)(UINTPTR_MAX - 15), 17, NULL));
  REFUSED(gm_host_unregister(NULL, memory, NULL));
  assert_int_equal(gm_host_unregister(device, memory, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_host_unregister(device, NULL, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(pins.registered, 0);
  pool_bench_close(&bench);
}

static void test_overlap_twice_and_foreign_pointers(void **state) {
  (void)state;
  gm_error why = {.status = GM_OK};
  pool_bench bench;
  open_pins(&bench);
  gm_device *device = bench.device;
  pool_bench_ok(gm_host_register(device, memory + 1000, 1000, err));
  REFUSED(gm_host_register(device, memory + 1000, 1000, &why));
  assert_non_null(strstr(why.message, "registered already"));
  REFUSED(gm_host_register(device, memory, 1001, NULL));
  REFUSED(gm_host_register(device, memory + 1999, 1, NULL));
  REFUSED(gm_host_register(device, memory, sizeof memory, NULL));
  REFUSED(gm_host_register(device, memory + 1500, 10, NULL));
  pool_bench_ok(gm_host_register(device, memory, 1000, err)); /* side by side, unaligned */
  pool_bench_ok(gm_host_register(device, memory + 2000, 1, err));
  assert_int_equal(gm_host_unregister(device, memory + 1, NULL), GM_ERR_NOT_FOUND); /* inside one */
  assert_int_equal(pins.registered, 3);
  pool_bench_ok(gm_host_unregister(device, memory + 1000, err));
  assert_int_equal(gm_host_unregister(device, memory + 1000, NULL), GM_ERR_NOT_FOUND);
  pool_bench_ok(gm_host_unregister(device, memory, err));
  pool_bench_ok(gm_host_unregister(device, memory + 2000, err));
  pool_bench_ok(gm_host_register(device, memory, sizeof memory, err));
  pool_bench_ok(gm_host_unregister(device, memory, err));
  assert_int_equal(pins.registered, 0);
  pool_bench_close(&bench);
}

static void test_a_device_with_ranges_does_not_close(void **state) {
  (void)state;
  gm_error why = {.status = GM_OK};
  pool_bench bench;
  open_pins(&bench);
  pool_bench_ok(gm_host_register(bench.device, memory, 16, err));
  assert_int_equal(gm_device_close(bench.device, &why), GM_ERR_BUSY);
  assert_non_null(strstr(why.message, "registered"));
  pool_bench_ok(gm_host_unregister(bench.device, memory, err));
  pool_bench_close(&bench);
}

static void test_what_the_driver_refuses(void **state) {
  (void)state;
  gm_error why = {.status = GM_OK};
  pool_bench bench;
  open_pins(&bench);
  gm_device *device = bench.device;
  pins.answer = GM_ERR_PINNED_LIMIT;
  assert_int_equal(gm_host_register(device, memory, 16, &why), GM_ERR_PINNED_LIMIT);
  assert_non_null(strstr(why.message, "told to refuse"));
  pins.answer = GM_OK;
  pool_bench_ok(gm_host_register(device, memory, 16, err)); /* it left nothing behind */
  pins.release = GM_ERR_DRIVER;
  assert_int_equal(gm_host_unregister(device, memory, NULL), GM_ERR_DRIVER);
  REFUSED(gm_host_register(device, memory, 16, NULL)); /* it is still registered */
  pins.release = GM_ERR_DEVICE_LOST;
  assert_int_equal(gm_host_unregister(device, memory, NULL), GM_ERR_DEVICE_LOST);
  assert_int_equal(gm_host_unregister(device, memory, NULL), GM_ERR_NOT_FOUND);
  pool_bench_close(&bench);
}

static void test_memory_of_the_drivers_own(void **state) {
  (void)state;
  static _Alignas(4096) char lent[2 * 4096];
  void *host = NULL;
  pool_bench bench;
  open_pins(&bench);
  gm_device *device = bench.device;
  pins.host = lent;
  pool_bench_ok(gm__host_range_alloc(device, sizeof lent, &host, err));
  assert_ptr_equal(host, lent);
  assert_true(gm__host_range_has(device, lent + 5, sizeof lent - 5));
  assert_int_equal(gm_device_close(device, NULL), GM_ERR_BUSY);
  REFUSED(gm_host_register(device, lent + 4096, 16, NULL));
  pool_bench_ok(gm_host_unregister(device, host, err));
  assert_false(gm__host_range_has(device, lent, 1));
  assert_int_equal(pins.registered, 0);
  pool_bench_close(&bench);
}

/* Refused words go back to the driver, and so does memory where a registered range lies. */
static void test_the_drivers_words_are_checked(void **state) {
  (void)state;
  static _Alignas(4096) char lent[4096];
  void *const words[] = {NULL, lent + 64, (void *)(UINTPTR_MAX - 4095)};
  void *host = lent;
  pool_bench bench;
  open_pins(&bench);
  gm_device *device = bench.device;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    pins.host = words[i];
    assert_int_equal(gm__host_range_alloc(device, 8192, &host, NULL), GM_ERR_DRIVER);
  }
  pins.host = lent;
  pool_bench_ok(gm_host_register(device, lent + 100, 1, err));
  REFUSED(gm__host_range_alloc(device, 4096, &host, NULL));
  pool_bench_ok(gm_host_unregister(device, lent + 100, err));
  pins.answer = GM_ERR_PINNED_LIMIT;
  assert_int_equal(gm__host_range_alloc(device, 4096, &host, NULL), GM_ERR_PINNED_LIMIT);
  assert_ptr_equal(host, lent); /* untouched */
  assert_int_equal(pins.registered, 0);
  pool_bench_close(&bench);
}

static void test_a_device_that_cannot(void **state) {
  (void)state;
  pool_bench bench;
  gm_error why = {.status = GM_OK};
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  assert_int_equal(gm_host_register(bench.device, memory, 16, &why), GM_ERR_NOT_SUPPORTED);
  assert_string_equal(why.op, "gm_host_register");
  pool_bench_close(&bench);
}

static void *claim(void *device) {
  uintptr_t won = 0;
  for (int i = 0; i < 2000; i++) {
    if (gm_host_register(device, memory + 8 * (i % 16), 8 + (uint64_t)(i % 32), NULL) != GM_OK) continue;
    won++;
    if (gm_host_unregister(device, memory + 8 * (i % 16), NULL) != GM_OK) abort();
  }
  return (void *)won;
}

static void test_threads_claim_ranges(void **state) {
  (void)state;
  pthread_t threads[4];
  uintptr_t all = 0;
  pool_bench bench;
  open_pins(&bench);
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, claim, bench.device), 0);
  for (int i = 0; i < 4; i++) {
    void *won;
    assert_int_equal(pthread_join(threads[i], &won), 0);
    all += (uintptr_t)won;
  }
  assert_true(all > 0);
  assert_int_equal(pins.registered, 0);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ranges_that_cannot_be),
      cmocka_unit_test(test_overlap_twice_and_foreign_pointers),
      cmocka_unit_test(test_a_device_with_ranges_does_not_close),
      cmocka_unit_test(test_what_the_driver_refuses),
      cmocka_unit_test(test_memory_of_the_drivers_own),
      cmocka_unit_test(test_the_drivers_words_are_checked),
      cmocka_unit_test(test_a_device_that_cannot),
      cmocka_unit_test(test_threads_claim_ranges),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
