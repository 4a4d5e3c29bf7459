/* A pool that nobody uses gives memory back, and then goes to sleep. The clock is played: it goes on when the test
 * says so. */
#include "gm/idle.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gm/explain.h"
#include "gm/pressure.h"
#include "support/paged_card.h"
#include "support/relocation_bench.h"

uint64_t __real_gm__now_ns(void);
uint64_t __wrap_gm__now_ns(void);
uint64_t __real_gm__now_coarse_ns(void);
uint64_t __wrap_gm__now_coarse_ns(void);

static _Atomic uint64_t later; /* hours, beside which the time that the test takes is nothing */

uint64_t __wrap_gm__now_ns(void) { return __real_gm__now_ns() + later; }
uint64_t __wrap_gm__now_coarse_ns(void) { return __real_gm__now_coarse_ns() + later; }

static const uint64_t hour = UINT64_C(3600) * 1000000000;

static void poll_after(pool_bench *bench, uint64_t hours) {
  later += hours * hour;
  pool_bench_ok(gm_context_poll(bench->ctx, err));
}

static void set_idle(pool_bench *bench, gm_idle_sleep sleep, uint64_t trim_hours, uint64_t sleep_hours) {
  const gm_idle_params params = {
      .struct_size = sizeof params, .sleep = sleep, .trim_ns = trim_hours * hour, .sleep_ns = sleep_hours * hour};
  pool_bench_ok(gm_pool_idle_on_poll(bench->pool, &params, err));
}

static gm_block take(pool_bench *bench, uint64_t bytes) {
  const gm_request request = {.bytes = bytes};
  gm_block block = {0};
  assert_true(gm_alloc(bench->pool, &request, &block) <= GM_ACQUIRE_FRESH);
  return block;
}

static void give(pool_bench *bench, const gm_block *block) {
  assert_int_equal(gm_free(bench->pool, block, NULL), GM_OK);
}

static void use(pool_bench *bench) {
  const gm_block block = take(bench, 1 << 20);
  give(bench, &block);
}

static uint64_t pooled(pool_bench *bench) { return pool_bench_stats(bench).pooled_bytes; }

static void test_an_unused_pool_is_trimmed(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", NULL, NULL);
  set_idle(&bench, GM_IDLE_NO_SLEEP, 10, 0);
  use(&bench);
  assert_true(pooled(&bench) > 0);
  poll_after(&bench, 9); /* it sees the use: the time begins */
  poll_after(&bench, 9);
  assert_true(pooled(&bench) > 0);
  use(&bench);
  poll_after(&bench, 2); /* again */
  poll_after(&bench, 9);
  assert_true(pooled(&bench) > 0);
  poll_after(&bench, 2);
  assert_int_equal(pooled(&bench), 0);
  use(&bench);
  pool_bench_ok(gm_pool_idle_on_poll(bench.pool, NULL, err));
  poll_after(&bench, 100);
  poll_after(&bench, 100);
  assert_true(pooled(&bench) > 0); /* there is no policy any more */
  pool_bench_close(&bench);
}

static gm_buffer *filled(pool_bench *bench) {
  static const char text[] = "weights";
  gm_buffer *buffer = relocation_make(bench->pool, 1 << 20, GM_RELOCATABLE);
  pool_bench_ok(gm_buffer_write(buffer, 0, text, sizeof text, NULL, err));
  return buffer;
}

static void check_text(gm_buffer *buffer) {
  char text[8] = "";
  pool_bench_ok(gm_buffer_read(buffer, 0, text, sizeof text, NULL, err));
  assert_string_equal(text, "weights");
}

static void test_its_buffers_go_to_sleep(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  gm_buffer *buffer = filled(&bench);
  set_idle(&bench, GM_IDLE_SLEEP_BUFFERS, 2, 10);
  poll_after(&bench, 9);
  check_text(buffer);    /* a read is a use, too */
  poll_after(&bench, 9); /* it is seen when the time is over */
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_DEVICE);
  poll_after(&bench, 2);
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_HOST);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  poll_after(&bench, 9);
  poll_after(&bench, 9);
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_DEVICE);
  check_text(buffer);
  poll_after(&bench, 100);
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_HOST);
  gm_buffer_release(buffer, NULL);
  pool_bench_close(&bench);
}

static void test_a_locked_buffer_keeps_it_awake(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  gm_buffer *buffer = filled(&bench);
  pool_bench_ok(gm_buffer_lock(buffer, &block, err));
  set_idle(&bench, GM_IDLE_SLEEP_BUFFERS, 0, 1);
  for (int i = 0; i < 3; i++) poll_after(&bench, 5);
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_DEVICE);
  pool_bench_ok(gm_buffer_unlock(buffer, NULL, err));
  for (int i = 0; i < 3; i++) poll_after(&bench, 5);
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_HOST);
  gm_buffer_release(buffer, NULL);
  pool_bench_close(&bench);
}

static void test_a_whole_pool_sleeps_until_it_is_woken(void **state) {
  (void)state;
  pool_bench bench;
  char text[8] = "";
  gm_block none;
  open_paged_card(&bench, 64 * MIB);
  const gm_block block = take(&bench, 8 << 20);
  pool_bench_ok(gm_block_write(bench.pool, &block, 0, "weights", 8, NULL, NULL, err));
  set_idle(&bench, GM_IDLE_SLEEP_WHOLE, 1, 10);
  for (int i = 0; i < 12; i++) {
    pool_bench_ok(gm_pool_wake(bench.pool, NULL, err)); /* awake, it counts as a use */
    poll_after(&bench, 5);
  }
  assert_true(pool_bench_stats(&bench).reserved_bytes > 0);
  poll_after(&bench, 9);
  poll_after(&bench, 2);
  const gm_request request = {.bytes = 4096};
  assert_int_equal(gm_alloc(bench.pool, &request, &none), GM_ACQUIRE_EXHAUSTED);
  gm_explanation why = {.struct_size = sizeof why};
  pool_bench_ok(gm_explain(bench.pool, &request, &why, err));
  assert_int_equal(why.cause, GM_CAUSE_ASLEEP);
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  pool_bench_ok(gm_block_read(bench.pool, &block, 0, text, sizeof text, NULL, NULL, err));
  assert_string_equal(text, "weights");
  give(&bench, &block);
  pool_bench_close(&bench);
}

typedef struct reader {
  pool_bench *bench;
  gm_block block;
  atomic_bool done;
} reader;

/* Another thread wakes the pool and reads, while polls put it to sleep. */
static void *wake_and_read(void *user) {
  reader *self = user;
  for (int i = 0; i < 100; i++) {
    char text[8] = "";
    if (gm_pool_wake(self->bench->pool, NULL, NULL)) return user;
    const gm_status status = gm_block_read(self->bench->pool, &self->block, 0, text, sizeof text, NULL, NULL, NULL);
    if (status && status != GM_ERR_BUSY) return user; /* it slept again */
    if (!status && strcmp(text, "weights") != 0) return user;
  }
  atomic_store(&self->done, true);
  return NULL;
}

static void test_wakes_beside_polls(void **state) {
  (void)state;
  pool_bench bench;
  pthread_t thread;
  void *failed;
  open_paged_card(&bench, 64 * MIB);
  reader self = {.bench = &bench, .block = take(&bench, 1 << 20)};
  pool_bench_ok(gm_block_write(bench.pool, &self.block, 0, "weights", 8, NULL, NULL, err));
  set_idle(&bench, GM_IDLE_SLEEP_WHOLE, 1, 10);
  assert_int_equal(pthread_create(&thread, NULL, wake_and_read, &self), 0);
  for (int i = 0; i < 100 && !atomic_load(&self.done); i++) poll_after(&bench, 20);
  assert_int_equal(pthread_join(thread, &failed), 0);
  assert_null(failed);
  give(&bench, &self.block);
  pool_bench_close(&bench);
}

static gm_status set(pool_bench *bench, gm_idle_params params) {
  params.struct_size = sizeof params;
  return gm_pool_idle_on_poll(bench->pool, &params, NULL);
}

static void test_bad_input_is_refused(void **state) {
  (void)state;
  pool_bench bench, segments;
  const gm_pool_params no_pages = {.struct_size = sizeof no_pages, .no_vmm = true};
  const gm_pool_params keeps = {.struct_size = sizeof keeps, .flags = GM_POOL_NO_TRIM};
  const gm_idle_params unsized = {.trim_ns = 1};
  pool_bench_open(&bench, "null", NULL, NULL);
  pool_bench_open(&segments, "null", NULL, &no_pages);
  assert_int_equal(gm_pool_idle_on_poll(NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_idle_on_poll(bench.pool, &unsized, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(set(&bench, (gm_idle_params){0}), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(set(&bench, (gm_idle_params){.sleep_ns = 1}), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(set(&bench, (gm_idle_params){.trim_ns = 1, .sleep = GM_IDLE_SLEEP_WHOLE}), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(set(&bench, (gm_idle_params){.sleep_ns = 1, .sleep = (gm_idle_sleep)5}), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(set(&segments, (gm_idle_params){.sleep_ns = 1, .sleep = GM_IDLE_SLEEP_WHOLE}), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(set(&segments, (gm_idle_params){.sleep_ns = 1, .sleep = GM_IDLE_SLEEP_BUFFERS}), GM_OK);
  pool_bench_close(&segments);
  pool_bench_ok(gm_pool_destroy(bench.pool, err));
  pool_bench_ok(gm_pool_create(bench.device, &keeps, &bench.pool, err));
  assert_int_equal(set(&bench, (gm_idle_params){.trim_ns = 1}), GM_ERR_NOT_SUPPORTED);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_an_unused_pool_is_trimmed),
                                     cmocka_unit_test(test_its_buffers_go_to_sleep),
                                     cmocka_unit_test(test_a_locked_buffer_keeps_it_awake),
                                     cmocka_unit_test(test_a_whole_pool_sleeps_until_it_is_woken),
                                     cmocka_unit_test(test_wakes_beside_polls),
                                     cmocka_unit_test(test_bad_input_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
